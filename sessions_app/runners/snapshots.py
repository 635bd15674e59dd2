"""Snapshots of a context that an agent reports: everything but the bytes of images and files, which no view needs."""

import re
from typing import Any

MAX_DEPTH = 60
_MARKER = "[{} content omitted from the compaction snapshot]"
_MADE = re.compile(r"\[[^\[\]]{1,100} content omitted from the compaction snapshot\]")
_DATA_URI = re.compile(r"data:([^;,\s]{0,100})(?:;[^,;]{0,100})*;base64,", re.IGNORECASE)
_MEDIA_TYPES = ("media_type", "mime_type", "mimeType", "mediaType")
_MEDIA_BLOCKS = frozenset({"image", "input_image", "document", "file", "input_file", "audio", "input_audio", "video", "base64", "media"})
_MEDIA_KEYS = frozenset({"source", "inline_data", "inlineData", "input_audio", "file"})
_PAYLOADS = frozenset({"data", "file_data", "bytes", "base64"})


class TooDeep(ValueError):
    """A snapshot that is nested more deeply than any context is."""


def without_payloads(value: Any, *, key: str = "", depth: int = 0) -> Any:
    """A copy in which each payload is replaced by a marker that names its media type. Done twice, it changes nothing more.

    A payload is the `data` of a block that holds media, of its `source`, or an address that begins with `data:`, at any depth.
    The value itself stays as it is. Raises `TooDeep`.
    """
    if depth > MAX_DEPTH:
        raise TooDeep("The snapshot is nested too deeply.")
    if isinstance(value, list):
        return [without_payloads(item, key=key, depth=depth + 1) for item in value]
    if isinstance(value, dict):
        return {name: _field(value, name, held, key, depth) for name, held in value.items()}
    if isinstance(value, str) and key != "text" and (address := _DATA_URI.match(value)):
        return _marker(address[1])
    return value


def _field(block: dict[str, Any], name: str, held: Any, key: str, depth: int) -> Any:
    if name in _PAYLOADS and isinstance(held, str) and held and _is_media(block, key):
        address = _DATA_URI.match(held)
        return held if _MADE.fullmatch(held) else _marker(_media_type(block) or (address[1] if address else ""))
    return without_payloads(held, key=name, depth=depth + 1)


def _is_media(block: dict[str, Any], key: str) -> bool:
    kind = block.get("type")
    return bool(_media_type(block)) or key in _MEDIA_KEYS or (isinstance(kind, str) and kind in _MEDIA_BLOCKS)


def _media_type(block: dict[str, Any]) -> str:
    told = next((block[name] for name in _MEDIA_TYPES if isinstance(block.get(name), str)), "")
    return told if 0 < len(told) <= 100 and told.isprintable() and not set(told) & set("[]") else ""


def _marker(media_type: str) -> str:
    return _MARKER.format(media_type or "binary")
