"""The page at `/v1/docs`: every call, from the document at `/v1/openapi.json`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.api.errors import STATUS_BY_CODE
from sessions_app.api.root import api
from sessions_app.rendering.templates import rendered

METHODS = ("get", "post", "patch", "put", "delete")


@dataclass(frozen=True)
class Parameter:
    """One thing that a call takes: in its address, its query or its body."""

    name: str
    place: str
    type: str
    is_required: bool
    words: str


@dataclass(frozen=True)
class Call:
    """One method of one address."""

    method: str
    path: str
    summary: str
    words: str
    parameters: tuple[Parameter, ...]
    anchor: str


@dataclass(frozen=True)
class Group:
    """The calls about one thing."""

    name: str
    calls: tuple[Call, ...]


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """All calls, for people."""
    return HttpResponse(rendered("api/docs.html", {"groups": groups(), "codes": STATUS_BY_CODE.items()}, request))


@cache
def groups() -> tuple[Group, ...]:
    """The calls as the OpenAPI document tells of them, in its order."""
    document: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/v1/"))
    found: dict[str, list[Call]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                found.setdefault(methods[method].get("tags", ["Other"])[0], []).append(_call(document, path, method, methods[method]))
    return tuple(Group(name, tuple(calls)) for name, calls in found.items())


def _call(document: dict[str, Any], path: str, method: str, told: dict[str, Any]) -> Call:
    parameters = [
        Parameter(one["name"], one["in"], _type(document, one["schema"]), bool(one.get("required")), _words(one))
        for one in told.get("parameters", ())
    ]
    return Call(
        method=method.upper(),
        path=path,
        summary=told.get("summary", ""),
        words=_words(told),
        parameters=(*parameters, *_body(document, told)),
        anchor=told["operationId"],
    )


def _body(document: dict[str, Any], told: dict[str, Any]) -> Iterator[Parameter]:
    for content in told.get("requestBody", {}).get("content", {}).values():
        schema = _resolved(document, content["schema"])
        for name, one in schema.get("properties", {}).items():
            yield Parameter(name, "body", _type(document, one), name in schema.get("required", ()), _words(one))


def _words(told: dict[str, Any]) -> str:
    return " ".join(str(told.get("description", "")).replace("`", "").split())


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the one that it refers to; of several, the one that is not null."""
    if "$ref" in schema:
        return _resolved(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    options = [one for one in schema.get("anyOf", schema.get("allOf", ())) if one.get("type") != "null"]
    return _resolved(document, options[0]) if options else schema


def _type(document: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a value may be, in a few words."""
    told = _resolved(document, schema)
    if "enum" in told:
        return " | ".join(map(str, told["enum"]))
    if "const" in told:
        return str(told["const"])
    name = str(told.get("format") or told.get("type", "any"))
    if name == "array":
        return f"list of {_type(document, told.get('items', {}))}"
    bounds = [str(told[bound]) if bound in told else "" for bound in ("minimum", "maximum")]
    return f"{name} {bounds[0]}–{bounds[1]}" if any(bounds) else name
