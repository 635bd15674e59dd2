"""`Idempotency-Key` on calls that create something."""

import hashlib
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.wire import JSON, dumps
from sessions_app.services import idempotency
from sessions_app.services.idempotency import Answer

HEADER = "Idempotency-Key"
MAX_CHARS = 255


def created(data: Any, *, status: int = 201, location: str = "") -> Answer:
    """What a call that creates answers: plain values, and the address of what was made."""
    return Answer(status, dumps(data).decode(), location)


def create_once(request: HttpRequest, create: Callable[[], Answer], *, body: bytes | None = None) -> HttpResponse:
    """Calls `create` and answers what it says. With an `Idempotency-Key`, the same request is answered the same for 24 hours.

    Ask the gate before: what `create` writes is undone when it raises, also the event of a refusal. It runs in a
    transaction and should be short. `body` stands for the request's own where that is a stream of files.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return _response(create())
    if not 1 <= len(key) <= MAX_CHARS or not key.isprintable():
        raise ApiError("invalid_input", f"{HEADER} has 1 to {MAX_CHARS} printable characters. Nothing was created.", field=HEADER)
    asked = f"{request.method} {request.get_full_path()}\n".encode("utf-8", "surrogatepass")
    fingerprint = hashlib.sha256(asked + (request.body if body is None else body)).hexdigest()
    return _response(idempotency.once(actor=actor_of(request), key=key, fingerprint=fingerprint, create=create))


def _response(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status, content_type=JSON)
    if answer.location:
        response["Location"] = answer.location
    if answer.repeated:
        response["Idempotency-Replayed"] = "true"
    return response
