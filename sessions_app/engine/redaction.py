"""Credentials are taken out of what a summary is made of and of what it says; only their number is kept."""

import re
from collections.abc import Callable, Sequence

import msgspec

from sessions_app.engine.entries import Entry

PLACEHOLDER = "[credential removed]"

_PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:\s|\\[nr]){0,4}(?:[A-Za-z-]{1,40}: [^\n\\]{0,200}(?:\s|\\[nr]){1,4}){0,4}"
    r"[A-Za-z0-9+/=]{16,}(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{1,15}(?=\s|\\))?"
    r"(?:(?:\s|\\[nr]){0,4}-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
_TOKENS = (
    (("sk-", "sk_", "rk_", "pk_"), re.compile(r"(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_|svcacct-)?[A-Za-z0-9_-]{16,}")),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}")),
    (("github_pat_",), re.compile(r"github_pat_[A-Za-z0-9_]{20,}")),
    (("glpat-",), re.compile(r"glpat-[A-Za-z0-9_-]{16,}")),
    (("AKIA", "ASIA"), re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
    (("AIza",), re.compile(r"AIza[A-Za-z0-9_-]{30,}")),
    (("xox",), re.compile(r"xox[abprs]-[A-Za-z0-9-]{10,}")),
    (("npm_",), re.compile(r"npm_[A-Za-z0-9]{30,}")),
    (("pypi-",), re.compile(r"pypi-[A-Za-z0-9_-]{30,}")),
    (("hf_",), re.compile(r"hf_[A-Za-z0-9]{20,}")),
    (("eyJ",), re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
)
"""Token shapes, each with the letters that it starts with: looking for letters is much cheaper than for a shape."""

_BEARER = re.compile(r"\bBearer\s{1,3}(?P<value>[A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://[^\s:/@'\"]{1,100}:(?P<value>[^\s:/@'\"]{3,200})(?=@)")
_NAMES = (
    "password", "passwd", "pwd", "secret", "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "auth_token",
    "auth-token", "authtoken", "access_token", "access-token", "accesstoken",
)  # fmt: skip
_NAMED = re.compile(
    r"""
    (?P<name>
        (?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token)[\w-]{0,20}
        \\?["']?\s{0,3}[=:]\s{0,3}\\?["']?
    )
    (?P<value>[^\s"'\\,;&<>(){}\[\]$]{6,200})
    """,
    re.VERBOSE | re.IGNORECASE,
)


Scan = tuple[re.Pattern[str], Callable[[re.Match[str]], bool]]
"""A shape to look for, and what tells a harmless match of it."""


def redact(text: str) -> tuple[str, int]:
    """The text without the credentials that it holds, and how many there were. Linear in its length."""
    total = 0
    for shape, is_harmless in _scans(text):
        text, count = _replace(shape, text, is_harmless)
        total += count
    return text, total


def redact_entries(entries: Sequence[Entry]) -> tuple[list[Entry], int]:
    """The entries without credentials in any of their texts, those without any as they are, and how many there were.

    What may be in them is found out for all at once: most pages of a history hold nothing to look for.
    """
    if not _scans("\n".join(part.text for entry in entries for part in entry.parts)):
        return list(entries), 0
    redacted, total = [], 0
    for entry in entries:
        clean, count = _redact_entry(entry)
        redacted.append(clean)
        total += count
    return redacted, total


def _redact_entry(entry: Entry) -> tuple[Entry, int]:
    count = 0
    parts = []
    for part in entry.parts:
        text, found = redact(part.text) if part.text else ("", 0)
        count += found
        parts.append(msgspec.structs.replace(part, text=text) if found else part)
    return (msgspec.structs.replace(entry, parts=tuple(parts)), count) if count else (entry, 0)


def _scans(text: str) -> list[Scan]:
    """The shapes that may stand in the text: tokens that do, and others whose first letters do."""
    lower = text.lower()
    found: list[Scan] = [(_PEM, _never)] if "private key-----" in lower else []
    found += [(shape, _is_inside_a_word) for starts, shape in _TOKENS if _stands_in(text, starts, shape)]
    if "bearer" in lower:
        found.append((_BEARER, _is_placeholder))
    if "://" in lower and "@" in lower:
        found.append((_IN_ADDRESS, _is_placeholder))
    if any(name in lower for name in _NAMES):
        found.append((_NAMED, _is_code))
    return found


def _stands_in(text: str, starts: Sequence[str], shape: re.Pattern[str]) -> bool:
    """Whether the shape matches anywhere: only where one of its starts stands can it."""
    for start in starts:
        place = text.find(start)
        while place >= 0:
            if shape.match(text, place):
                return True
            place = text.find(start, place + 1)
    return False


def _never(_match: re.Match[str]) -> bool:
    return False


def _replace(shape: re.Pattern[str], text: str, is_harmless: Callable[[re.Match[str]], bool]) -> tuple[str, int]:
    """The text with the shape's matches, or the `value` in them, replaced; and how many there were."""
    count = 0
    group = "value" if "value" in shape.groupindex else 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if is_harmless(match):
            return match.group()
        count += 1
        return match.string[match.start() : match.start(group)] + PLACEHOLDER + match.string[match.end(group) : match.end()]

    return shape.sub(replace, text), count


def _is_inside_a_word(match: re.Match[str]) -> bool:
    """Whether the letters only end another word, as in `task-` and `disk-`."""
    return match.string[match.start() - 1 : match.start()].isalnum() if match.start() else False


def _is_placeholder(match: re.Match[str]) -> bool:
    return PLACEHOLDER.startswith(match.group("value"))


def _is_code(match: re.Match[str]) -> bool:
    """Whether what stands where a secret would is the name of something, or was taken out already."""
    lead, value, after = match.group("name"), match.group("value"), match.string[match.end() : match.end() + 1]
    if PLACEHOLDER.startswith(value):
        return True
    if lead[-1] in "\"'":
        return False
    is_word = re.fullmatch(r"[A-Za-z_.]+", value) is not None
    return after in ("(", "[") or (is_word and (not lead.endswith("=") or "." in value))
