"""What of an entry can be searched: its text as people read it, capped."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import zstandard

from sessions_app.engine.entries import Part, decode_parts
from sessions_app.engine.terms import PartKind
from sessions_app.models import Blob

FIRST_CHARS, LAST_CHARS = 65_536, 8_192
"""So much of a part is indexed: its beginning and its end."""

ENTRY_CHARS = 262_144
"""So much of an entry is indexed, however many parts it has."""


def blob_texts(hashes: Iterable[str]) -> dict[str, str]:
    """Long texts by the hash of their blob; one query for a thousand of them."""
    found: dict[str, str] = {}
    wanted = list(hashes)
    for start in range(0, len(wanted), 500):
        rows = Blob.objects.filter(pk__in=wanted[start : start + 500]).values_list("pk", "data", "compressed", "size")
        for key, data, is_compressed, size in rows.iterator():
            raw = zstandard.ZstdDecompressor().decompress(bytes(data), max_output_size=size) if is_compressed else bytes(data)
            found[key] = raw.decode(errors="replace")
    return found


def blobs_of(parts: Iterable[Part]) -> Iterator[str]:
    """The hashes of those blobs that hold a text."""
    return (part.blob for part in parts if part.blob and part.chars and not part.encrypted)


def parts_of(stored: str) -> tuple[Part, ...]:
    """The parts of an entry's row; none where they can't be read."""
    try:
        return decode_parts(stored)
    except ValueError:
        return ()


def searchable(parts: Iterable[Part], long_texts: Mapping[str, str]) -> tuple[str, bool]:
    """An entry's text for the index, and whether it says more than that.

    A long text that `long_texts` lacks counts as its beginning, which stands in the part.
    """
    texts: list[str] = []
    left, is_capped = ENTRY_CHARS, False
    for part in parts:
        if part.encrypted or part.kind in {PartKind.IMAGE, PartKind.DOCUMENT}:
            continue
        whole = _readable(part, long_texts.get(part.blob, part.text) if part.blob and part.chars else part.text)
        text = whole if len(whole) <= FIRST_CHARS + LAST_CHARS else f"{whole[:FIRST_CHARS]}\n{whole[-LAST_CHARS:]}"
        is_capped |= len(text) < len(whole) or len(text) > left
        if text := text[:left]:
            texts.append(text)
            left -= len(text)
    return "\n".join(texts).replace("\0", " "), is_capped


def _readable(part: Part, text: str) -> str:
    """Arguments of a call are JSON: what they say is searched, not how it is escaped."""
    if part.kind is not PartKind.CALL:
        return text
    try:
        said = "\n".join(_strings(orjson.loads(text))) if text else ""
    except orjson.JSONDecodeError:
        said = text
    return f"{part.name}\n{said}"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (f"{key}: {said}" if place == 0 else said for place, said in enumerate(_strings(item)))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)
