"""Credentials are taken out of what a summary is made of and of what it says; only their number is kept."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from sessions_app.engine import plain_letters
from sessions_app.engine.entries import Entry

PLACEHOLDER = "[credential removed]"

_PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:\s|\\[nr]){0,4}(?:[A-Za-z-]{1,40}: [^\n\\]{0,200}(?:\s|\\[nr]){1,4}){0,4}"
    r"[A-Za-z0-9+/=]{16,}(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{1,15}(?=\s|\\))?"
    r"(?:(?:\s|\\[nr]){0,4}-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
_KEY = re.compile(r"(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_|svcacct-)?[A-Za-z0-9_-]{16,}")
_OF_GITHUB = re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}")
_OF_GITHUB_FINE = re.compile(r"github_pat_[A-Za-z0-9_]{20,}")
_OF_GITLAB = re.compile(r"glpat-[A-Za-z0-9_-]{16,}")
_OF_AWS = re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_OF_GOOGLE = re.compile(r"AIza[A-Za-z0-9_-]{30,}")
_OF_SLACK = re.compile(r"xox[abprs]-[A-Za-z0-9-]{10,}")
_OF_NPM = re.compile(r"npm_[A-Za-z0-9]{30,}")
_OF_PYPI = re.compile(r"pypi-[A-Za-z0-9_-]{30,}")
_OF_HUGGING_FACE = re.compile(r"hf_[A-Za-z0-9]{20,}")
_WEB_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")
_BEARER = re.compile(r"\bBearer\s{1,3}(?P<value>[A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://[^\s:/@'\"]{1,100}:(?P<value>[^\s:/@'\"]{3,200})(?=@)")
_NAMED = re.compile(
    r"""
    (?P<name>
        (?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token)[\w-]{0,20}
        \\?["'”’]?\s{0,3}[=:＝：]\s{0,3}\\?["'“‘]?
    )
    (?P<value>[^\s"'\\,;&<>(){}\[\]$“”‘’，。；、（）]{6,200})
    """,
    re.VERBOSE | re.IGNORECASE,
)


_HAS_LETTER = re.compile("[A-Za-z0-9]")  # what follows a name in words of another script is no password


def _never(_match: re.Match[str]) -> bool:
    return False


def _is_inside_a_word(match: re.Match[str]) -> bool:
    """Whether the letters only end another word, as in `task-` and `disk-`."""
    return match.string[match.start() - 1 : match.start()].isalnum() if match.start() else False


def _is_placeholder(match: re.Match[str]) -> bool:
    return PLACEHOLDER.startswith(match.group("value"))


def _is_code(match: re.Match[str]) -> bool:
    """Whether what stands where a secret would is the name of something, or was taken out already."""
    lead, value, after = match.group("name"), match.group("value"), match.string[match.end() : match.end() + 1]
    if PLACEHOLDER.startswith(value) or not _HAS_LETTER.search(value):
        return True
    if lead[-1] in "\"'“‘":
        return False
    is_word = re.fullmatch(r"[A-Za-z_.]+", value) is not None
    return after in ("(", "[") or (is_word and (not lead.endswith("=") or "." in value))


_Shapes = tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool]], ...]
"""Shapes to look for, each with what tells a harmless match of it."""


class _Trace(NamedTuple):
    """What tells cheaply, in the UTF-8 of a text, that some shapes may stand there.

    Each begins with a fixed word, or with one rare character before which the rest is looked for: the search for either
    runs at the speed of memory, and one for all words at once would not.
    """

    looks: re.Pattern[bytes]
    shapes: _Shapes
    in_lower: bool = False  # whether to look in the text in lower case


def _tokens(*shapes: re.Pattern[str]) -> _Shapes:
    return tuple((shape, _is_inside_a_word) for shape in shapes)


_TRACES = (
    _Trace(re.compile(rb"private key-----"), ((_PEM, _never),), in_lower=True),
    _Trace(re.compile(rb"k(?:(?<=sk)[-_]|(?<=[rp]k)_)[A-Za-z0-9_-]{16}"), _tokens(_KEY)),
    _Trace(
        re.compile(rb"_(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=npm_)|(?<=hf_))[A-Za-z0-9_]{20}"),
        _tokens(_OF_GITHUB, _OF_GITHUB_FINE, _OF_NPM, _OF_HUGGING_FACE),
    ),
    _Trace(re.compile(rb"-(?:(?<=glpat-)|(?<=pypi-))[A-Za-z0-9_-]{16}"), _tokens(_OF_GITLAB, _OF_PYPI)),
    _Trace(re.compile(rb"A(?:[KS]IA[A-Z0-9]{16}|Iza[A-Za-z0-9_-]{30})"), _tokens(_OF_AWS, _OF_GOOGLE)),
    _Trace(re.compile(rb"xox[abprs]-"), _tokens(_OF_SLACK)),
    _Trace(re.compile(rb"J(?<=eyJ)[A-Za-z0-9_-]{8}"), _tokens(_WEB_TOKEN)),
    _Trace(re.compile(rb"bearer"), ((_BEARER, _is_placeholder),), in_lower=True),
    # Bytes, not characters: four for each at most.
    _Trace(re.compile(rb"://[^\s:/@'\"]{1,400}:[^\s:/@'\"]{3,800}@"), ((_IN_ADDRESS, _is_placeholder),)),
    *(
        _Trace(re.compile(looks), ((_NAMED, _is_code),), in_lower=True)
        for looks in (
            rb"w(?:d(?<=pwd)|(?<=passw)(?:or)?d)",
            rb"secret",
            rb"key(?:(?<=api_key)|(?<=api-key)|(?<=apikey)|(?<=access_key)|(?<=access-key)|(?<=accesskey))",
            rb"k(?<=tok)en(?:(?<=auth_token)|(?<=auth-token)|(?<=authtoken)|(?<=access_token)|(?<=access-token)|(?<=accesstoken))",
        )
    ),
)


def redact(text: str) -> tuple[str, int]:
    """The text without the credentials that it holds, and how many there were. Linear in its length."""
    raw = text.encode("utf-8", "surrogatepass")
    is_plain = plain_letters.is_plain(raw)
    if not is_plain:
        raw = plain_letters.plain(text).encode("utf-8", "surrogatepass")
    lower = raw.lower()
    total = 0
    there = {shape: None for looks, shapes, in_lower in _TRACES if looks.search(lower if in_lower else raw) for shape in shapes}
    for shape, is_harmless in there:
        text, count = _replace(shape, text, is_harmless, is_plain=is_plain)
        total += count
    return text, total


def redact_entries(entries: Sequence[Entry]) -> tuple[list[Entry], int]:
    """The entries without credentials in any of their texts, those without any as they are, and how many there were.

    Where one may stand is found out for all at once: most texts of a history hold nothing to look for.
    """
    redacted, total = list(entries), 0
    for place in _suspects(entries):
        redacted[place], count = _redact_entry(entries[place])
        total += count
    return redacted, total


def _suspects(entries: Sequence[Entry]) -> list[int]:
    """Positions of the entries in which a credential may stand."""
    said = ["\n".join([part.text for part in entry.parts]) for entry in entries]
    texts = [text.encode("utf-8", "surrogatepass") for text in said]
    raw = b"\n".join(texts)
    if not plain_letters.is_plain(raw):
        texts = [plain_letters.plain(text).encode("utf-8", "surrogatepass") for text in said]
        raw = b"\n".join(texts)
    lower = raw.lower()
    found = [match.start() for trace in _TRACES for match in trace.looks.finditer(lower if trace.in_lower else raw)]
    if not found:
        return []
    ends = list(accumulate(len(text) + 1 for text in texts))
    return sorted({bisect_right(ends, place) for place in found})


def _redact_entry(entry: Entry) -> tuple[Entry, int]:
    count = 0
    parts = []
    for part in entry.parts:
        text, found = redact(part.text) if part.text else ("", 0)
        count += found
        parts.append(msgspec.structs.replace(part, text=text) if found else part)
    return (msgspec.structs.replace(entry, parts=tuple(parts)), count) if count else (entry, 0)


def _replace(shape: re.Pattern[str], text: str, is_harmless: Callable[[re.Match[str]], bool], *, is_plain: bool) -> tuple[str, int]:
    """The text with the shape's matches, or the `value` in them, replaced; and how many there were.

    `is_plain`: it reads as it is written. Else the shape is looked for in what it reads as.
    """
    reading = None if is_plain else plain_letters.read(text)
    group = "value" if "value" in shape.groupindex else 0
    pieces: list[str] = []
    done = 0
    for match in shape.finditer(reading.text if reading else text):
        if is_harmless(match):
            continue
        start, end = reading.span(*match.span(group)) if reading else match.span(group)
        pieces += (text[done:start], PLACEHOLDER)
        done = end
    return ("".join((*pieces, text[done:])), len(pieces) // 2) if pieces else (text, 0)
