"""Text as it reads: letters, digits and hyphens that Unicode has a second time, for compatibility, as their plain ones.

`ａｐｉ_key` and `api_Key` with the sign for kelvin read as `api_key`, and what nobody sees inside of a word is no part of it. Only what
may stand in a name or a token is looked at: punctuation, which most texts of some scripts are full of, stays.
"""

import re
import unicodedata
from collections import defaultdict
from typing import NamedTuple

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_BLOCKS = (
    *((0xAA, 0xBA), (0x132, 0x1F3), (0x2B0, 0x2E3), (0x1D2C, 0x1DBB), (0x1E9A, 0x1E9A), (0x2070, 0x20A8), (0x2102, 0x217F)),
    *((0x2460, 0x24EA), (0x2C7C, 0x2C7D), (0x3250, 0x33FF), (0xA7F2, 0xA7F4), (0xFB00, 0xFB06), (0xFE33, 0xFE63), (0xFF0D, 0xFF5A)),
    *((0x107A5, 0x107A5), (0x1D400, 0x1D7FF), (0x1F100, 0x1F190), (0x1CCD6, 0x1CCF9), (0x1FBF0, 0x1FBF9)),
)
"""Where such characters stand: first and last, inclusive."""

_UNSEEN = "\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_HYPHENS = "\u2010\u2011"


def _table() -> dict[str, str]:
    """Each character with what it reads as."""
    found = {}
    for first, last in _BLOCKS:
        for letter in map(chr, range(first, last + 1)):
            reads = unicodedata.normalize("NFKC", letter)
            if reads != letter and _PLAIN.issuperset(reads):
                found[letter] = reads
    ends = re.findall(r"(.)(?:-(.))?", _UNSEEN)
    unseen = {chr(code): "" for first, last in ends for code in range(ord(first), ord(last or first) + 1)}
    return found | unseen | dict.fromkeys(_HYPHENS, "-")


_TABLE = _table()
_ALL = re.compile(f"[{''.join(_TABLE)}]")


def _looks() -> dict[int, re.Pattern[bytes]]:
    """How one is found in UTF-8, by its first byte: the search for one byte runs at the speed of memory."""
    tails: dict[bytes, dict[bytes, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for letter in sorted(_TABLE):
        raw = letter.encode()
        tails[raw[:1]][raw[1:-1]].append(re.escape(raw[-1:]))
    return {
        lead[0]: re.compile(
            re.escape(lead) + b"(?:" + b"|".join(re.escape(middle) + b"[" + b"".join(lasts) + b"]" for middle, lasts in rest.items()) + b")"
        )
        for lead, rest in tails.items()
    }


_LOOKS = _looks()
_NO_LEADS = bytes(code for code in range(256) if code not in _LOOKS)


class Reading(NamedTuple):
    """What a text reads as, and for each of its characters the position of that which it stands for."""

    text: str
    origins: list[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text that was read characters `start` to before `end` stand; never none of them."""
        return self.origins[start], self.origins[end - 1] + 1


def is_plain(raw: bytes) -> bool:
    """Whether a text, in UTF-8, reads as it is written: nearly all do."""
    if raw.isascii():
        return True
    return not any(_LOOKS[lead].search(raw) for lead in set(raw.translate(None, _NO_LEADS)))


def plain(text: str) -> str:
    """What a text reads as."""
    return _ALL.sub(lambda match: _TABLE[match[0]], text)


def read(text: str) -> Reading:
    """The same, with where each character is from. Linear."""
    pieces: list[str] = []
    origins: list[int] = []
    done = 0
    for match in _ALL.finditer(text):
        at, reads = match.start(), _TABLE[match[0]]
        pieces += (text[done:at], reads)
        origins += (*range(done, at), *[at] * len(reads))
        done = at + 1
    pieces.append(text[done:])
    origins += range(done, len(text))
    return Reading("".join(pieces), origins)
