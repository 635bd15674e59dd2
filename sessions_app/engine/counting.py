"""The estimator `chars`: tokens from lengths, with a divisor for each kind of part.

The divisors are characters per token of the o200k vocabulary, measured on real agent sessions. Nothing here reads
a text: lengths are enough, so that a whole text may lie in a blob.
"""

from collections.abc import Iterable

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind

ESTIMATOR = "chars"
ESTIMATOR_VERSION = 1

ENTRY_OVERHEAD = 3
"""Tokens that the frame of a message costs beside its parts: role, separators, ids."""

_HUNDREDTHS_OF_CHARACTERS_PER_TOKEN = {
    PartKind.TEXT: 391,
    PartKind.THINKING: 470,
    PartKind.CALL: 360,
    PartKind.RESULT: 339,
}
_PIXELS_PER_TOKEN = 750
_LARGEST_IMAGE = 1_600  # providers scale larger pictures down before a model sees them
_UNKNOWN_IMAGE = 1_500
_PAGE_BYTES = 50_000
_PAGE_TOKENS = 2_000


def estimate_chars(chars: int, kind: PartKind = PartKind.TEXT) -> int:
    """Tokens of a text of that many characters, rounded up; 0 for none. Kinds without a divisor count as text."""
    return -(-chars * 100 // _HUNDREDTHS_OF_CHARACTERS_PER_TOKEN.get(kind, 391))


def estimate_text(text: str, kind: PartKind = PartKind.TEXT) -> int:
    """Tokens of a text, rounded up; 0 for an empty one."""
    return estimate_chars(len(text), kind)


def estimate_part(part: Part) -> int:
    """Tokens of one part. Images count by their size in pixels and documents by their pages, never by their encoding."""
    if part.kind is PartKind.IMAGE:
        return _estimate_image(part)
    if part.kind is PartKind.DOCUMENT and not part.length:
        return _PAGE_TOKENS * max(1, -(-part.size_bytes // _PAGE_BYTES))
    if part.kind is PartKind.CALL:
        return estimate_chars(len(part.name) + part.length, PartKind.CALL)
    # Ciphertext is base64: the reasoning behind it is a quarter shorter.
    length = part.length * 3 // 4 if part.encrypted else part.length
    return estimate_chars(length, part.kind)


def estimate_parts(parts: Iterable[Part]) -> int:
    """Tokens of an entry with these parts, frame included; 0 when they hold nothing."""
    tokens = sum(map(estimate_part, parts))
    return tokens + ENTRY_OVERHEAD if tokens else 0


def _estimate_image(part: Part) -> int:
    if not part.width or not part.height:
        return _UNKNOWN_IMAGE
    return min(_LARGEST_IMAGE, -(-part.width * part.height // _PIXELS_PER_TOKEN))
