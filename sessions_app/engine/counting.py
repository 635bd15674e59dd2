"""The estimator `chars`: tokens of a text from how many characters of each class it holds.

One divisor for all characters is off by a fifth on prose and by half on tables and hashes: a vocabulary takes a word
in one token, but nearly every mark and every two digits in one of their own. The weights are fitted to the o200k
vocabulary on real sessions of other agents than those whose files are read here, and checked on the latter. Counting
is a few passes over bytes, without a vocabulary, so that every process may do it for every text.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from zlib import adler32

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind

# Looking a member up in its class costs a call in Python 3.11, and this is asked of all parts of every entry.
_IMAGE, _DOCUMENT, _CALL = PartKind.IMAGE, PartKind.DOCUMENT, PartKind.CALL

ESTIMATOR_VERSION = 3
"""Goes up with every change of what something counts. An entry keeps the number that it was written with, and the version of it.

3: a picture that is longer than its provider takes counts as what it is scaled to; 2: weights by classes of characters.
"""

ENTRY_OVERHEAD = 3
"""Tokens that the frame of a message costs beside its parts: role, separators, ids."""

Blobs = Mapping[str, tuple[str, bytes]]
"""sha256 in hex → (media type, bytes)."""

# Thousandths of a token.
_UNIT = 50
_PER_CHARACTER = 180
_PER_PAIR_OF_SPACES = 50
_PER_DIGIT_BEYOND, _PER_MARK_BEYOND = 750, 500
_PER_SYMBOL_BEYOND, _PER_TWO_BYTES_BEYOND, _PER_THREE_BYTES_BEYOND = 1_750, 150, 450
_PER_CHARACTER_OF_PROSE = 215
_PER_CHARACTER_OF_CODED_BYTES = 600
_CODED_CHARS = 200
"""From so many characters on, a text in both cases with next to no spaces and marks is taken for base64 or the like."""


def _is_mark(byte: int) -> bool:
    return 0x21 <= byte <= 0x7E and not chr(byte).isalnum() and byte != ord("_")


def _beyond(byte: int) -> int:
    """What a character that begins with this byte costs beyond `_PER_CHARACTER`."""
    if byte in b"0123456789":
        return _PER_DIGIT_BEYOND
    if _is_mark(byte):
        return _PER_MARK_BEYOND
    if byte == 0xE2 or byte >= 0xF0:
        return _PER_SYMBOL_BEYOND  # how arrows, frames, bullets and emoji begin in UTF-8
    if 0xC2 <= byte <= 0xDF:
        return _PER_TWO_BYTES_BEYOND  # Latin with accents, Cyrillic, Greek, Arabic, Hebrew
    return _PER_THREE_BYTES_BEYOND if 0xE0 <= byte <= 0xEF else 0  # Chinese, Japanese, Korean, Indic


# The low half of an Adler checksum is one more than the sum of all bytes, modulo 65,521. No other sum over bytes is taken as
# fast, so the weights stand in a table of bytes, in units, and of no more bytes than whose sum stays below that.
_WEIGHTS = bytes(_beyond(byte) // _UNIT for byte in range(256))
_SUMMED_AT_ONCE = 65_519 // max(_WEIGHTS)
_ALL_BUT_MARKS = bytes(byte for byte in range(256) if not _is_mark(byte))

_PIXELS_PER_TOKEN = 750
_LONGEST_SIDE, _LARGEST_IMAGE = 1_568, 1_600  # pixels, tokens: providers scale larger pictures down to both before a model sees them
_UNKNOWN_IMAGE = 1_500
_PAGE_BYTES = 50_000
_PAGE_TOKENS = 2_000


def estimate_text(text: str) -> int:
    """Tokens of a text, rounded up; 0 for an empty one. Within a tenth of o200k over a whole session."""
    return -(-_thousandths(text) // 1_000)


_LONGEST_NAME = 200
_estimate_known = lru_cache(maxsize=1_000)(estimate_text)


def _estimate_name(name: str) -> int:
    """A history calls its few tools by the same names over and over; one that is long is no name, and is not remembered."""
    return _estimate_known(name) if len(name) <= _LONGEST_NAME else estimate_text(name)


def _thousandths(text: str) -> int:
    raw = text.encode("utf-8", "surrogatepass")
    length = len(text)
    pairs = raw.count(b"  ")
    weights = raw.translate(_WEIGHTS)
    units = (adler32(weights) & 0xFFFF) - 1 if len(raw) <= _SUMMED_AT_ONCE else _sum_in_pieces(weights)
    single = length - 2 * pairs
    counted = single * _PER_CHARACTER + pairs * _PER_PAIR_OF_SPACES + units * _UNIT
    # White space is counted only where the result may depend on it: it is what takes longest, and at least the pairs are some.
    may_be_prose = counted < single * _PER_CHARACTER_OF_PROSE
    may_be_coded = length >= _CODED_CHARS and pairs * 64 < length == len(raw)
    if may_be_prose or may_be_coded:
        white = raw.count(b" ") + raw.count(b"\n")
        if may_be_coded and white * 32 < length and _is_coded(raw, text, white):
            counted = max(counted, length * _PER_CHARACTER_OF_CODED_BYTES)
        counted = max(counted, (length - white) * _PER_CHARACTER_OF_PROSE)
    return counted


def _sum_in_pieces(weights: bytes) -> int:
    view = memoryview(weights)
    return sum([(adler32(view[start : start + _SUMMED_AT_ONCE]) & 0xFFFF) - 1 for start in range(0, len(view), _SUMMED_AT_ONCE)])


def _is_coded(raw: bytes, text: str, white: int) -> bool:
    marks = len(raw.translate(None, _ALL_BUT_MARKS))
    return (white + marks) * 32 < len(text) and not text[:_CODED_CHARS].islower()


def estimate_part(part: Part, blobs: Blobs | None = None) -> int:
    """Tokens of one part. Images count by their size in pixels and documents by their pages, never by their encoding.

    Of a text that lies in a blob which is not among `blobs`, what stands inline tells how dense it is.
    """
    kind = part.kind
    if kind is _IMAGE:
        return _estimate_image(part)
    if kind is _DOCUMENT and not part.length:
        return _PAGE_TOKENS * max(1, -(-part.size_bytes // _PAGE_BYTES))
    if part.encrypted:
        # Ciphertext is base64: the reasoning behind it is a quarter shorter, and as dense as other prose.
        return -(-part.length * 3 // 4 * _PER_CHARACTER_OF_PROSE // 1_000)
    name = _estimate_name(part.name) if kind is _CALL else 0
    if not part.chars:
        return name - (-_thousandths(part.text) // 1_000)
    if blobs and part.blob in blobs:
        return name + estimate_text(blobs[part.blob][1].decode())
    return name + -(-_thousandths(part.text) * part.chars // (max(len(part.text), 1) * 1_000))


def estimate_parts(parts: Iterable[Part], blobs: Blobs | None = None) -> int:
    """Tokens of an entry with these parts, frame included; 0 when they hold nothing."""
    tokens = 0
    for part in parts:  # `sum` over a generator takes a third of the time that most entries cost
        tokens += estimate_part(part, blobs)
    return tokens + ENTRY_OVERHEAD if tokens else 0


def _estimate_image(part: Part) -> int:
    if not part.width or not part.height:
        return _UNKNOWN_IMAGE
    short, long = sorted((part.width, part.height))
    if long > _LONGEST_SIDE:
        pixels, per_token = short * _LONGEST_SIDE**2, long * _PIXELS_PER_TOKEN  # both sides shrink alike
    else:
        pixels, per_token = short * long, _PIXELS_PER_TOKEN
    return min(_LARGEST_IMAGE, -(-pixels // per_token))
