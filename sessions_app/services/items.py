"""Items that a program hands in, in the flat shapes of model interfaces, as entries of a history."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.engine.texts import storable
from sessions_app.models import new_id
from sessions_app.services.turns.appending import Draft, text_part

MAX_NAME_CHARS = 200
MOST_PARTS = 1_000
_TEXTS = frozenset({"input_text", "output_text", "text", "reasoning_text", "summary_text"})
_MEDIA = {"input_image": PartKind.IMAGE, "image": PartKind.IMAGE, "input_file": PartKind.DOCUMENT, "document": PartKind.DOCUMENT}


class InvalidItem(Exception):  # noqa: N818  it says what is the matter
    """What was handed in is no such item; nothing was stored. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was stored.")


class _Message(msgspec.Struct):
    role: Literal["system", "user", "assistant"]
    content: str | list[dict[str, Any]]
    model: str = ""
    agent: str = ""
    is_meta: bool = False


class _Call(msgspec.Struct):
    name: str
    call_id: str
    arguments: str | dict[str, Any] = ""
    model: str = ""
    agent: str = ""


class _Output(msgspec.Struct):
    call_id: str
    output: Any
    is_error: bool = False


class _Reasoning(msgspec.Struct):
    summary: list[dict[str, Any]] = []
    content: list[dict[str, Any]] | None = None
    encrypted_content: str | None = None
    model: str = ""
    agent: str = ""


class _Error(msgspec.Struct):
    message: str
    source: str = ""
    code: str = ""


def draft_of(item_type: str, data: Mapping[str, Any]) -> Draft:
    """The entry that an item becomes. Fields beyond those that are known are passed over. Raises `InvalidItem`."""
    reader = _READERS.get(item_type)
    if reader is None:
        raise InvalidItem("type", f"There is no item of type {item_type[:60]!r}; the types are {', '.join(_READERS)}.")
    shape, make = reader
    try:
        read = msgspec.convert(dict(data), shape)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        raise InvalidItem(place.rstrip("`"), f"{item_type}: {why}.") from error
    return make(read)


def _message(item: _Message) -> Draft:
    parts = (text_part(item.content),) if isinstance(item.content, str) else _parts(item.content)
    return _draft(Role(item.role), Kind.MESSAGE, parts, model=item.model or item.agent, meta=item.is_meta)


def _call(item: _Call) -> Draft:
    arguments = item.arguments if isinstance(item.arguments, str) else msgspec.json.encode(item.arguments).decode()
    part = Part(kind=PartKind.CALL, text=storable(arguments), name=_name("name", item.name), call_id=_name("call_id", item.call_id))
    return _draft(Role.ASSISTANT, Kind.CALL, (part,), model=item.model or item.agent)


def _output(item: _Output) -> Draft:
    call_id = _name("call_id", item.call_id)
    if isinstance(item.output, list) and all(isinstance(part, dict) and "type" in part for part in item.output):
        told = _parts(item.output)
        text = "\n\n".join(part.text for part in told if part.kind is PartKind.TEXT)
        media = [msgspec.structs.replace(part, call_id=call_id) for part in told if part.kind is not PartKind.TEXT]
    else:
        text, media = item.output if isinstance(item.output, str) else msgspec.json.encode(item.output).decode(), []
    result = Part(kind=PartKind.RESULT, text=storable(text), call_id=call_id, is_error=item.is_error)
    return _draft(Role.TOOL, Kind.RESULT, (result, *media))


def _reasoning(item: _Reasoning) -> Draft:
    told = [storable(str(part.get("text", ""))) for part in (*item.summary, *(item.content or ()))]
    parts = [Part(kind=PartKind.THINKING, text=text) for text in told if text]
    if item.encrypted_content:
        parts.append(Part(kind=PartKind.THINKING, encrypted=True, size_bytes=len(item.encrypted_content)))
    if not parts:
        raise InvalidItem("summary", "reasoning: it says nothing.")
    return _draft(Role.ASSISTANT, Kind.THINKING, tuple(parts), model=item.model or item.agent)


def _error(item: _Error) -> Draft:
    about = " ".join(filter(None, (item.source, item.code)))
    return _draft(Role.NOTICE, Kind.ERROR, (text_part(f"{about}: {item.message}" if about else item.message),))


_READERS: dict[str, tuple[Any, Callable[[Any], Draft]]] = {
    "message": (_Message, _message),
    "function_call": (_Call, _call),
    "function_call_output": (_Output, _output),
    "reasoning": (_Reasoning, _reasoning),
    "error": (_Error, _error),
}
ITEM_TYPES = tuple(_READERS)


def _draft(role: Role, kind: Kind, parts: tuple[Part, ...], *, model: str = "", meta: bool = False) -> Draft:
    return Draft(role=role, kind=kind, parts=parts, source_id=f"item:{new_id()}", model=storable(model), meta=meta)


def _name(field: str, text: str) -> str:
    if not text or len(text) > MAX_NAME_CHARS:
        raise InvalidItem(field, f"{field} has 1 to {MAX_NAME_CHARS} characters.")
    return storable(text)


def _parts(content: list[dict[str, Any]]) -> tuple[Part, ...]:
    if len(content) > MOST_PARTS:
        raise InvalidItem("content", f"A message may have {MOST_PARTS:,} parts; this one has {len(content):,}.")
    return tuple(_part(number, told) for number, told in enumerate(content))


def _part(number: int, told: dict[str, Any]) -> Part:
    kind = told.get("type")
    if kind in _TEXTS and isinstance(told.get("text"), str):
        return text_part(told["text"])
    if kind in _MEDIA:
        media_type, size = _measured(told)
        return Part(kind=_MEDIA[kind], media_type=media_type, size_bytes=size)
    known = ", ".join((*sorted(_TEXTS), *_MEDIA))
    raise InvalidItem(f"content.{number}", f"A part of a message is one of {known}, a text with its text.")


def _measured(told: dict[str, Any]) -> tuple[str, int]:
    """(media type, bytes) of an image or a document. Its payload is not kept."""
    source = told.get("source") if isinstance(told.get("source"), dict) else told
    assert isinstance(source, dict)
    address = source.get("image_url") or source.get("url") or source.get("file_data") or ""
    address = address.get("url", "") if isinstance(address, dict) else address
    media_type, data = str(source.get("media_type") or ""), source.get("data") or ""
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.partition(",")
        media_type = media_type or head.removeprefix("data:").partition(";")[0]
    try:
        size = len(base64.b64decode(data, validate=True)) if isinstance(data, str) else 0
    except (binascii.Error, ValueError):
        size = 0
    return storable(media_type)[:100], size
