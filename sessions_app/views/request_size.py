"""How much a request may carry, said in a sentence before anything of it is looked at."""

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from sessions_app.middleware import Answer, EitherWay
from sessions_app.views.errors import TEMPLATE

UPLOADS = ("/imports/", "/v1/imports")
FRAME_BYTES = 1_000_000
"""What a form with files says around them."""


def largest_body(path: str) -> int:
    """Bytes of the largest request that is taken at an address."""
    return (settings.UPLOAD_MAX_BYTES if path.startswith(UPLOADS) else settings.DATA_UPLOAD_MAX_MEMORY_SIZE) + FRAME_BYTES


class BoundedBodies(EitherWay):
    """Middleware that answers 413 by what a request says of its length. The server throws away what is longer, see `project`."""

    def __call__(self, request: HttpRequest) -> Answer:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > largest_body(request.path):
            refused = _refusal(request)
            return _awaited(refused) if iscoroutinefunction(self.get_response) else refused
        return self.get_response(request)


bounded_bodies = BoundedBodies


async def _awaited(response: HttpResponse) -> HttpResponse:
    return response


def _refusal(request: HttpRequest) -> HttpResponse:
    if request.path.startswith(UPLOADS):
        limit = settings.UPLOAD_MAX_BYTES // 1_000_000
        sentence = (
            f"What was sent is larger than {limit} MB, so nothing was imported. Send fewer files at a time, "
            "or use the command “manage.py import_sessions”, which takes any size."
        )
    else:
        sentence = "What was sent is larger than this page takes. Nothing was changed."
    told = {"status": 413, "title": "Too large", "sentence": sentence, "request_id": getattr(request, "request_id", "")}
    return HttpResponse(render_to_string(TEMPLATE, told), status=413)
