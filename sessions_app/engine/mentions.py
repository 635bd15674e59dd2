"""Things that a text names and a summary must not lose: addresses, identifiers, places."""

import re
from collections.abc import Iterator

from sessions_app.engine.extractors.base import ENDED_JOB

_URL = re.compile(r"https?://[^\s<>\"'`|\\\])}]{4,300}")
_TRAILING = ".,;:!?*_~…"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH = re.compile(r"(?<![\w-])[0-9a-f]{7,40}(?![\w-])")
_NUMBER = re.compile(r"#\d{1,7}\b")
_REPOSITORY_BEFORE = re.compile(r"[\w.-]{1,60}/[\w.-]{1,60}\Z")
_TICKET = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z0-9]{1,9}-\d{1,7}\b")
_QUANTITY = re.compile(
    r"(\d(?<![\w.,#/:$-]\d)[\d,]*(?:\.\d+)?)[ \u00a0-]?"  # the digit before what may not precede it: a digit is quickly found
    r"(%|(?:ms|µs|ns|s|sec|secs|seconds?|minutes?|mins?|hours?|hrs?|h|days?|weeks?|months?|years?|[kKMGT]i?B|bytes?|px|rem|fps|Hz|[kMG]Hz|"
    r"k?tokens?|lines?|files?|tests?|commits?|errors?|warnings?|entries|rows?|requests?|calls?|messages?|characters?|chars|items?|users?|"
    r"sessions?|commands?|functions?|packages?|tables?|pages?|steps?|times|x|percent)\b)"
)
_HOUSEHOLD_WORDS = frozenset({"GitHub", "GitLab", "JavaScript", "TypeScript", "OpenAI", "PostgreSQL", "MySQL", "YouTube", "LinkedIn"})
_SPOKEN = re.compile(r"\b(?:[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){1,8}|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{0,40}){1,8})\b")
# What a text must hold for one of them to stand there: looking for that costs next to nothing, and most texts hold none.
_BEFORE_TICKET = re.compile(r"-(?<=[A-Z0-9]-)\d")
_HUMP = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_HEXADECIMAL = bytes(ord("0") if chr(byte) in "0123456789abcdef" else ord(" ") for byte in range(256))
_SEVEN = b"0" * 7
_SUFFIX = re.compile(r"\.[a-z]")
PATH = re.compile(
    r"(?<![\w/.:@-])(?:~/|\.{1,2}/|/)?(?:[\w.@+-]{1,80}/){1,12}[\w.@+-]{1,80}"  # has a slash
    r"|(?<![\w/.:@-])[\w-]{1,60}\.(?:py|js|ts|tsx|jsx|go|rs|rb|ex|exs|java|kt|c|h|cc|cpp|cs|sh|md|json|jsonl|ya?ml|toml|sql|html|css|txt|cfg|ini|lock)\b"
)
_WHERE = re.compile(r"(?:^|\n)\s{0,4}(?:<cwd>|(?:current )?working directory:|cwd:)\s{0,3}([^\s<>]{1,300})", re.IGNORECASE)
_CD = re.compile(r"\Acd\s+(\"[/~][^\"$`]{0,300}\"|/[^\s;&|$`]{0,300}|~[^\s;&|$`]{0,300})(?=[\s;&|]|\Z)")
_BRANCH_COMMAND = re.compile(r"\bgit\s+(?:checkout|switch)\s+(?:-[bBcC]\s+)?(?!-)([\w./-]{1,120})(?=\s*(?:$|[;&|\n]))")
_BRANCH_RESULT = re.compile(r"(?:^|\n)(?:On branch |Current branch: |Switched to (?:a new )?branch ')([\w./-]{1,120})")
_COMMITTED = re.compile(r"(?:^|\n)\[([\w./-]{1,120})(?: \(root-commit\))? ([0-9a-f]{7,40})\] ([^\n]{1,200})")


_ENDED_JOB = re.compile(
    r"<task-id>([\w-]{1,60})</task-id>(?:(?!</task-notification>).){0,2000}?<status>(completed|failed|killed|stopped)</status>", re.DOTALL
)


def ended_jobs(text: str) -> Iterator[tuple[str, str]]:
    """Background jobs that a notice says have ended: the id, and how it came out."""
    if "<task-notification>" in text:
        yield from ((match.group(1), ENDED_JOB[match.group(2)]) for match in _ENDED_JOB.finditer(text[:20_000]))


def urls(text: str) -> Iterator[str]:
    """Web addresses in the text, without the punctuation that follows them."""
    if "://" in text:
        for match in _URL.finditer(text):
            yield match.group().rstrip(_TRAILING)


def identifiers(text: str, *, spoken: bool) -> Iterator[str]:
    """Hashes, UUIDs and numbers that the text names; with `spoken` also its snake_case and CamelCase words."""
    if text.count("-") >= 4:
        yield from (match.group() for match in _UUID.finditer(text))
    for match in _NUMBER.finditer(text) if "#" in text else ():
        before = text[max(0, match.start() - 121) : match.start()]
        repository = _REPOSITORY_BEFORE.search(before)
        if repository or not before[-1:].isalnum():
            yield (repository.group() if repository else "") + match.group()
    if _BEFORE_TICKET.search(text):
        yield from (match.group() for match in _TICKET.finditer(text))
    if _SEVEN in text.encode("utf-8", "surrogatepass").translate(_HEXADECIMAL):
        yield from (word for match in _HASH.finditer(text) if not (word := match.group()).isdigit() and not word.isalpha())
    if spoken and ("_" in text or _HUMP.search(text)):
        yield from (word for match in _SPOKEN.finditer(text) if (word := match.group()) not in _HOUSEHOLD_WORDS)


def names_path(text: str) -> bool:
    """Whether the text names a path."""
    return ("/" in text or _SUFFIX.search(text) is not None) and PATH.search(text) is not None


def quantities(text: str) -> Iterator[str]:
    """Numbers with their unit, as `40 ms`, whatever stood between the two."""
    for match in _QUANTITY.finditer(text):
        number, unit = match.groups()
        yield f"{number.replace(',', '')} {unit}" if unit != "%" else f"{number}%"


def working_directory(text: str) -> str:
    """The directory that an environment note names, or nothing."""
    match = _WHERE.search(text)
    return match.group(1).rstrip(".,") if match else ""


def directory_of_command(command: str) -> str:
    """The absolute directory into which a command changes first, or nothing. One that only the shell knows is none."""
    match = _CD.match(command)
    return match.group(1).strip('"') if match else ""


def branch_of_command(command: str) -> str:
    """The branch that a command switches to, or nothing. A path after `checkout` is none."""
    match = _BRANCH_COMMAND.search(command) if "git" in command else None
    return match.group(1) if match and "." not in match.group(1) else ""


def branch_of_result(text: str) -> str:
    """The branch that git says we are on, or nothing."""
    match = _BRANCH_RESULT.search(text[:2_000])
    return match.group(1) if match else ""


def commits(text: str) -> Iterator[tuple[str, str, str]]:
    """Commits that git reports as made: branch, abbreviated hash, subject."""
    if "] " in text:
        yield from (match.groups() for match in _COMMITTED.finditer(text[:8_000]))  # type: ignore[misc]
