"""Answers that are sent while they are made."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header


def download(request: HttpRequest, name: str, chunks: Iterator[bytes], *, size: int | None = None) -> StreamingHttpResponse:
    """Bytes as a file of this name; `size`, where it is known, lets a browser show how far it is."""
    response = StreamingHttpResponse(one_by_one(request, chunks), content_type="application/octet-stream")
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name)
    if size is not None:
        response["Content-Length"] = str(size)
    return response


def one_by_one(request: HttpRequest, chunks: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The chunks in a form that the server sends as they come: of a plain iterator, an asynchronous one first collects the whole."""
    return _awaited(chunks) if isinstance(request, ASGIRequest) else chunks


async def _awaited(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(chunks, None))
    while (chunk := await following()) is not None:
        yield chunk
