"""Credentials are taken out of what a summary is made of and of what it says; only their number is kept."""

import re

import msgspec

from sessions_app.engine.entries import Entry
from sessions_app.engine.terms import PartKind

PLACEHOLDER = "[credential removed]"

_SHAPES = re.compile(
    r"""
    (?P<pem>-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z))
  | (?P<token>
        \b(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_|svcacct-)?[A-Za-z0-9_-]{16,}
      | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{16,}
      | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_-]{30,} | \bxox[abprs]-[A-Za-z0-9-]{10,}
      | \bnpm_[A-Za-z0-9]{30,} | \bpypi-[A-Za-z0-9_-]{30,} | \bhf_[A-Za-z0-9]{20,}
      | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
    )
  | (?P<bearer>\bBearer\s+)(?P<bearer_value>[A-Za-z0-9._~+/=-]{12,})
  | (?P<url>\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@'"]{1,100}:)(?P<url_value>[^\s:/@'"]{3,200})(?=@)
  | (?P<name>
        \b(?:[\w-]{0,40}[_-])?
        (?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|secret[_-]?key|client[_-]?secret)
        \\?["']?\s{0,3}[=:]\s{0,3}\\?["']?
    )
    (?P<name_value>[^\s"'\\,;&<>(){}\[\]$]{6,200})
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_HINTS = re.compile(
    r"[-_]key|api_?key|passw|pwd|secret|_token|-token|bearer|private key|://[^\s/@]*@|sk-|[srp]k_|gh[pousr]_|github_pat|glpat|AKIA|ASIA|AIza|xox|npm_|pypi-|hf_|eyJ",
    re.IGNORECASE,
)


def redact(text: str) -> tuple[str, int]:
    """The text without the credentials that it holds, and how many there were. Linear in its length."""
    if not _HINTS.search(text):
        return text, 0
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match.group("name_value") and _is_code(match):
            return match.group(0)
        count += 1
        lead = match.group("bearer") or match.group("url") or match.group("name") or ""
        return lead + PLACEHOLDER

    return _SHAPES.sub(replace, text), count


def _is_code(match: re.Match[str]) -> bool:
    """Whether what stands where a secret would is the name of something, or was taken out already."""
    lead, value, after = match.group("name"), match.group("name_value"), match.string[match.end() : match.end() + 1]
    if PLACEHOLDER.startswith(value):
        return True
    if lead[-1] in "\"'":
        return False
    is_word = re.fullmatch(r"[A-Za-z_.]+", value) is not None
    return after in ("(", "[") or (is_word and (not lead.endswith("=") or "." in value))


def redact_entry(entry: Entry) -> tuple[Entry, int]:
    """The entry without credentials in any of its texts; the same object when there are none."""
    count = 0
    parts = []
    for part in entry.parts:
        text, found = (part.text, 0) if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT) else redact(part.text)
        count += found
        parts.append(msgspec.structs.replace(part, text=text) if found else part)
    return (msgspec.structs.replace(entry, parts=tuple(parts)), count) if count else (entry, 0)
