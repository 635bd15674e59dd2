"""The estimator `chars`: tokens of a text from how many characters of each class it holds.

One divisor for all characters is off by a fifth on prose and by half on tables and hashes: a vocabulary takes a word
in one token, but nearly every mark and every two digits in one of their own. The weights are fitted to the o200k
vocabulary on real sessions of other agents than those whose files are read here, and checked on the latter. Counting
is a few passes over bytes, without a vocabulary, so that every process may do it for every text.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind

# Looking a member up in its class costs a call in Python 3.11, and this is asked of all parts of every entry.
_IMAGE, _DOCUMENT, _CALL = PartKind.IMAGE, PartKind.DOCUMENT, PartKind.CALL

ESTIMATOR = "chars"
ESTIMATOR_VERSION = 2

ENTRY_OVERHEAD = 3
"""Tokens that the frame of a message costs beside its parts: role, separators, ids."""

Blobs = Mapping[str, tuple[str, bytes]]
"""sha256 in hex → (media type, bytes)."""

_DIGIT, _MARK, _WHITE, _SYMBOL, _TWO_BYTES, _THREE_BYTES = range(1, 7)


def _class_of(byte: int) -> int:
    if byte in b"0123456789":
        return _DIGIT
    if byte in b" \n":
        return _WHITE
    if 0x21 <= byte <= 0x7E and not chr(byte).isalnum() and byte != ord("_"):
        return _MARK
    if byte == 0xE2 or byte >= 0xF0:
        return _SYMBOL  # how arrows, frames, bullets and emoji begin in UTF-8
    if 0xC2 <= byte <= 0xDF:
        return _TWO_BYTES  # Latin with accents, Cyrillic, Greek, Arabic, Hebrew
    return _THREE_BYTES if 0xE0 <= byte <= 0xEF else 0  # Chinese, Japanese, Korean, Indic


_CLASSES = bytes(map(_class_of, range(256)))
_UNCOUNTED = bytes(byte for byte in range(256) if not _CLASSES[byte])

# Thousandths of a token.
_PER_CHARACTER = 180
_PER_PAIR_OF_SPACES = 50
_PER_DIGIT_BEYOND, _PER_MARK_BEYOND = 750, 500
_BEYOND_ASCII = ((_SYMBOL, 1_750), (_TWO_BYTES, 150), (_THREE_BYTES, 450))
_PER_CHARACTER_OF_PROSE = 215
_PER_CHARACTER_OF_CODED_BYTES = 600
_CODED_CHARS = 200
"""From so many characters on, a text in both cases with next to no spaces and marks is taken for base64 or the like."""

_PIXELS_PER_TOKEN = 750
_LARGEST_IMAGE = 1_600  # providers scale larger pictures down before a model sees them
_UNKNOWN_IMAGE = 1_500
_PAGE_BYTES = 50_000
_PAGE_TOKENS = 2_000


def estimate_text(text: str) -> int:
    """Tokens of a text, rounded up; 0 for an empty one. Within a tenth of o200k over a whole session."""
    return -(-_thousandths(text) // 1_000)


_estimate_name = lru_cache(maxsize=1_000)(estimate_text)
"""A history calls its few tools by the same names over and over."""


def _thousandths(text: str) -> int:
    raw = text.encode("utf-8", "surrogatepass")
    # Letters go first, and with them two thirds of what is left to count in.
    classes = raw.translate(_CLASSES, _UNCOUNTED)
    length = len(text)
    digits, marks = classes.count(_DIGIT), classes.count(_MARK)
    pairs = raw.count(b"  ")
    counted = (length - 2 * pairs) * _PER_CHARACTER + pairs * _PER_PAIR_OF_SPACES + digits * _PER_DIGIT_BEYOND + marks * _PER_MARK_BEYOND
    if len(raw) != length:
        white = classes.count(_WHITE)
        for kind, weight in _BEYOND_ASCII:
            counted += classes.count(kind) * weight
    else:
        white = len(classes) - digits - marks
        if length >= _CODED_CHARS and (white + marks) * 32 < length and not text[:_CODED_CHARS].islower():
            counted = max(counted, length * _PER_CHARACTER_OF_CODED_BYTES)
    return max(counted, (length - white) * _PER_CHARACTER_OF_PROSE)


def estimate_part(part: Part, blobs: Blobs | None = None) -> int:
    """Tokens of one part. Images count by their size in pixels and documents by their pages, never by their encoding.

    Of a text that lies in a blob which is not among `blobs`, what stands inline tells how dense it is.
    """
    if part.kind is _IMAGE:
        return _estimate_image(part)
    if part.kind is _DOCUMENT and not part.length:
        return _PAGE_TOKENS * max(1, -(-part.size_bytes // _PAGE_BYTES))
    if part.encrypted:
        # Ciphertext is base64: the reasoning behind it is a quarter shorter, and as dense as other prose.
        return -(-part.length * 3 // 4 * _PER_CHARACTER_OF_PROSE // 1_000)
    name = _estimate_name(part.name) if part.kind is _CALL else 0
    if not part.chars:
        return name + estimate_text(part.text)
    if blobs and part.blob in blobs:
        return name + estimate_text(blobs[part.blob][1].decode())
    return name + -(-_thousandths(part.text) * part.chars // (max(len(part.text), 1) * 1_000))


def estimate_parts(parts: Iterable[Part], blobs: Blobs | None = None) -> int:
    """Tokens of an entry with these parts, frame included; 0 when they hold nothing."""
    tokens = sum(estimate_part(part, blobs) for part in parts)
    return tokens + ENTRY_OVERHEAD if tokens else 0


def _estimate_image(part: Part) -> int:
    if not part.width or not part.height:
        return _UNKNOWN_IMAGE
    return min(_LARGEST_IMAGE, -(-part.width * part.height // _PIXELS_PER_TOKEN))
