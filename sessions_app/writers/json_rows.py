"""Rows whose values are rewritten one by one: all others keep their bytes."""

import json
from typing import Any

import msgspec

Fields = dict[str, msgspec.Raw]
"""The fields of one object, each value as the bytes that it has in the source."""

_FIELDS = msgspec.json.Decoder(Fields)
_ENCODER = msgspec.json.Encoder()
_AROUND = b" \t\r\n\0"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def fields_of(raw: bytes | msgspec.Raw) -> Fields | None:
    """The fields of an object, or `None` for bytes that are not exactly one. Of a name that occurs twice the last is taken."""
    data = bytes(raw).removeprefix(_BYTE_ORDER_MARK).strip(_AROUND)
    if not data.startswith(b"{"):
        return None
    try:
        return _FIELDS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _loosely(data)
    except RecursionError:
        return None


def _loosely(data: bytes) -> Fields | None:
    """Objects with lone surrogates: agents written in JavaScript read and write them. They come out escaped."""
    try:
        found = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return {name: msgspec.Raw(json.dumps(value, separators=(",", ":")).encode()) for name, value in found.items()}


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def value_of(fields: Fields, name: str) -> Any:
    """The value of a field, decoded; `None` where it is missing or can't be."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_at(fields: Fields, name: str) -> str:
    """The text in a field; empty where it is missing or no text."""
    value = value_of(fields, name)
    return value if isinstance(value, str) else ""


def raw_of(value: object) -> msgspec.Raw:
    """A value as the bytes of a field."""
    return msgspec.Raw(_ENCODER.encode(value))


def line_of(fields: Fields) -> bytes:
    """The object as one line."""
    return _ENCODER.encode(fields) + b"\n"
