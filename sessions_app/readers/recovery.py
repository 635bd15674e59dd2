"""What can still be had from a line that is not one JSON object: NUL runs, splices, cut lines, broken text."""

import json
import re
from typing import Any

import orjson

from sessions_app.readers.base import ProblemKind

Found = tuple[int, int, dict[str, Any] | None, tuple[ProblemKind, ...]]
"""(start, end, object or `None`, problems) of one piece, in bytes within its line."""

MAX_ATTEMPTS = 1_000
SCAN_FACTOR = 4  # characters that all attempts together may look at, as a multiple of the line's length
_BLANK = "\x00 \t\r\n"
_BROKEN = re.compile("[\x00\ud800-\udfff]")
_LARGEST = 1 << 63


def _integer(digits: str) -> int | float:
    """A number as a machine's word, or else as a float, as the fast decoder does it."""
    if len(digits) > 20:
        return float(digits)
    number = int(digits)
    return number if -_LARGEST <= number < 2 * _LARGEST else float(number)


_DECODER = json.JSONDecoder(parse_int=_integer)
_LENIENT = json.JSONDecoder(parse_int=_integer, strict=False)


def recover(raw: bytes) -> list[Found]:
    """The pieces of a line that did not decode as a whole. They cover it without a gap.

    Tries the line without its NUL runs, then every object that starts somewhere on it. Never raises.
    """
    if not raw.strip(_BLANK.encode()):
        return [(0, len(raw), None, (ProblemKind.NUL_BYTES,) if b"\x00" in raw else ())]
    nul = (ProblemKind.NUL_BYTES,) if b"\x00" in raw else ()
    clean = raw.replace(b"\x00", b"") if nul else raw
    whole = _loads(clean, _DECODER)
    if whole is None and (whole := _loads(clean, _LENIENT)) is not None:
        nul = (*nul, ProblemKind.INVALID_TEXT)  # control characters within a string
    if isinstance(whole, dict):
        return [(0, len(raw), *_cleaned(whole, nul))]
    if whole is not None:
        return [(0, len(raw), None, (*nul, ProblemKind.NOT_AN_OBJECT))]
    text = raw.decode("utf-8", "surrogateescape")
    objects = _find_objects(text)
    lost = ProblemKind.UNREADABLE if raw.endswith(b"\n") else ProblemKind.TRUNCATED
    if not objects:
        return [(0, len(raw), None, (*nul, lost))]
    return _cover(text, objects, nul, lost)


def _loads(raw: bytes, decoder: json.JSONDecoder) -> Any:
    """The value, or `None` where there is none. Takes lone surrogates and bytes that are not UTF-8."""
    try:
        return decoder.decode(raw.decode("utf-8-sig", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _find_objects(text: str) -> list[tuple[int, int, dict[str, Any]]]:
    """(start, end, object) of all objects on a line, in characters. Bounded work on hostile lines.

    An object behind a broken one counts only when it ends the line or another one follows: else it is a part of
    the broken one. A line that has no end yet is not searched: it may still be written.
    """
    found: list[tuple[int, int, dict[str, Any]]] = []
    budget = SCAN_FACTOR * len(text) + 1_000_000
    position = text.find("{")
    is_after_break = False
    for _ in range(MAX_ATTEMPTS):
        if position < 0 or budget < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            budget -= error.pos - position if isinstance(error, json.JSONDecodeError) else len(text) - position
            if not text.endswith("\n"):
                break
            is_after_break = True
            position = text.find('{"', position + 1)
            continue
        budget -= end - position
        rest = text[end : end + 100].lstrip(_BLANK)
        if not is_after_break or not rest or rest.startswith("{"):
            found.append((position, end, value))
            is_after_break = False
        position = text.find('{"', end)
    return found


def _cover(text: str, objects: list[tuple[int, int, dict[str, Any]]], nul: tuple[ProblemKind, ...], lost: ProblemKind) -> list[Found]:
    """The objects and the unreadable stretches between them; blanks belong to the object that they precede."""
    pieces: list[Found] = []
    offset = done = 0
    for start, end, value in objects:
        gap = text[done:start]
        if gap.strip(_BLANK):
            size = _size(gap)
            pieces.append((offset, offset + size, None, (*nul, ProblemKind.UNREADABLE)))
            offset, done = offset + size, start
        size = _size(text[done:end])
        pieces.append((offset, offset + size, *_cleaned(value, (*nul, ProblemKind.SPLICED))))
        offset, done = offset + size, end
    rest = text[done:]
    if rest.strip(_BLANK):
        pieces.append((offset, offset + _size(rest), None, (*nul, lost)))
    elif rest:
        start, _, kept, problems = pieces.pop()
        pieces.append((start, offset + _size(rest), kept, problems))
    return pieces


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _cleaned(value: dict[str, Any], problems: tuple[ProblemKind, ...]) -> tuple[dict[str, Any] | None, tuple[ProblemKind, ...]]:
    try:
        clean, changed = without_invalid_text(value)
    except RecursionError:
        return None, (*problems, ProblemKind.UNREADABLE)
    if size_of(clean) is None:
        return None, (*problems, ProblemKind.UNREADABLE)
    return clean, tuple(dict.fromkeys((*problems, ProblemKind.INVALID_TEXT) if changed else problems))


def without_invalid_text(value: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The object with every NUL character and lone surrogate replaced by U+FFFD, and whether there was one."""
    changed = False

    def clean(item: Any) -> Any:
        nonlocal changed
        if isinstance(item, str):
            if not _BROKEN.search(item):
                return item
            changed = True
            return _BROKEN.sub("�", item)
        if isinstance(item, dict):
            return {clean(key): clean(inner) for key, inner in item.items()}
        if isinstance(item, list):
            return [clean(inner) for inner in item]
        return item

    return clean(value), changed


def size_of(value: dict[str, Any]) -> int | None:
    """Bytes of the object written compactly: what was longer may have held more. `None`: it is nested too deeply for any use."""
    try:
        return len(orjson.dumps(value))
    except (TypeError, RecursionError):
        return None


def has_duplicate_keys(raw: bytes, value: dict[str, Any]) -> bool:
    """Whether some object in `raw`, which decoded to `value`, names a key twice (the last one was kept)."""
    if raw.count(b'":') + raw.count(b'" :') - raw.count(b'\\":') - raw.count(b'\\" :') == _count_keys(value):
        return False
    repeated = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        kept = dict(pairs)
        repeated = repeated or len(kept) < len(pairs)
        return kept

    try:
        json.loads(raw, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return repeated


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(inner) for inner in value.values() if isinstance(inner, dict | list))
    return sum(_count_keys(inner) for inner in value if isinstance(inner, dict | list))
