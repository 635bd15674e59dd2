"""JSON as it comes and goes."""

import json
from typing import Annotated, Any

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from pydantic import AfterValidator

from sessions_app.engine import foreign_json

JSON = "application/json"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("NUL is no character of a text")
    return text


Word = Annotated[str, AfterValidator(_without_nul)]
"""A text to look for: no database compares one that holds NUL."""


class BodyParser(Parser):
    """Reads bodies as every JSON that others wrote is read: one error for whatever is wrong, halves of characters as U+FFFD."""

    def parse_body(self, request: HttpRequest) -> Any:
        return foreign_json.decode(request.body)


class Renderer(BaseRenderer):
    """Plain values as JSON in UTF-8."""

    media_type = JSON

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:  # noqa: ARG002  the library's signature
        return dumps(data)


def file_answer(words: str) -> dict[str, Any]:
    """What the API's document says of a call that answers a file."""
    return {
        "responses": {
            200: {"description": words, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
        }
    }


def dumps(data: Any) -> bytes:
    """JSON of plain values, dates, ids and enums. Text that UTF-8 cannot say is escaped."""
    try:
        return orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # half a character, or a number beyond 64 bits
        return json.dumps(data, default=str).encode()


def json_response(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    """An answer of JSON."""
    return HttpResponse(dumps(data), status=status, content_type=JSON, headers=headers)
