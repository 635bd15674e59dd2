"""Things that a text names and a summary must not lose: addresses, identifiers, places."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

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
_WORD = re.compile(r"\w+")
_SPOKEN = re.compile(r"[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){1,8}|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{0,40}){1,8}")
# What a text must hold for one of them to stand there: looking for that costs next to nothing, and most texts hold none.
_HUMP = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_HEXADECIMAL = bytes(ord("0") if chr(byte) in "0123456789abcdef" else ord(" ") for byte in range(256))
_SEVEN = b"0" * 7
_IN_QUANTITY = re.compile(rb" 0[0,]*[ -]?[u%]")


def _around_quantity(byte: int) -> str:
    """What a character can be of a quantity: `0` a digit, `u` how a unit begins, a space what a number may follow."""
    char = chr(byte)
    if char in "0123456789":
        return "0"
    if char in ",.":
        return ","
    if char in "-%":
        return char
    if char in "GHKMTbcdefhiklmnprstuwxy":
        return "u"
    return "x" if char.isalpha() or char in "_#/:$" else " "


_AROUND_QUANTITY = "".join(map(_around_quantity, range(256))).encode()
_IN_UUID = re.compile(r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IN_TICKET = re.compile(r"-(?:" + "|".join(rf"(?<=[A-Z][A-Z0-9]{{{length}}}-)" for length in range(1, 10)) + r")\d")
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


class Named(msgspec.Struct):
    """What one text names, each list in the order of `urls`, `identifiers` and `quantities`."""

    urls: list[str] = []
    identifiers: list[str] = []
    quantities: list[str] = []


def named_in(texts: Sequence[str], spoken: Sequence[bool]) -> dict[int, Named]:
    """What each of many texts names, by its position; texts that name nothing are left out.

    Those in ASCII, most by far, are searched as one, with a line break between them, over which none of what is looked for
    reaches: to begin a search costs more than to go through a text of the usual length.
    """
    places = [place for place, text in enumerate(texts) if text.isascii()]
    found = _named_in_ascii([texts[place] for place in places], places)
    for place, text in enumerate(texts) if len(places) < len(texts) else ():
        if not text.isascii() and (named := _named(text)) != _NOTHING:
            found[place] = named
    for place, text in enumerate(texts):
        if spoken[place] and (words := list(_spoken(text))):
            found.setdefault(place, Named()).identifiers += words
    return found


_NOTHING = Named()


def _named(text: str) -> Named:
    return Named(urls=list(urls(text)), identifiers=list(identifiers(text, spoken=False)), quantities=list(quantities(text)))


def _named_in_ascii(texts: Sequence[str], places: Sequence[int]) -> dict[int, Named]:
    """`named_in` without what only a person says. `places`: by which each text is known."""
    joined = "\n".join(texts)
    ends = list(accumulate([len(text) + 1 for text in texts]))
    found: dict[int, Named] = {}

    def of(number: int) -> Named:
        return found.get(places[number]) or found.setdefault(places[number], Named())

    for match in _URL.finditer(joined) if "://" in joined else ():
        of(bisect_right(ends, match.start())).urls.append(match.group().rstrip(_TRAILING))
    for number in _holding(_IN_UUID, joined, ends):
        if words := _UUID.findall(texts[number]):
            of(number).identifiers += words
    for position, word in _numbers(joined):
        of(bisect_right(ends, position)).identifiers.append(word)
    for number in _holding(_IN_TICKET, joined, ends):
        if words := _TICKET.findall(texts[number]):
            of(number).identifiers += words
    for position, word in _hashes(joined):
        of(bisect_right(ends, position)).identifiers.append(word)
    for position, quantity in _quantities(joined):
        of(bisect_right(ends, position)).quantities.append(quantity)
    return found


def _holding(trace: re.Pattern[str], joined: str, ends: Sequence[int]) -> Iterable[int]:
    """Positions of the texts in which the trace stands, each once, in order."""
    return dict.fromkeys(bisect_right(ends, match.start()) for match in trace.finditer(joined))


def urls(text: str) -> Iterator[str]:
    """Web addresses in the text, without the punctuation that follows them."""
    if "://" in text:
        for match in _URL.finditer(text):
            yield match.group().rstrip(_TRAILING)


def identifiers(text: str, *, spoken: bool) -> Iterator[str]:
    """Hashes, UUIDs and numbers that the text names; with `spoken` also its snake_case and CamelCase words."""
    if text.count("-") >= 4:
        yield from _UUID.findall(text)
    yield from (number for _, number in _numbers(text))
    if _IN_TICKET.search(text):
        yield from _TICKET.findall(text)
    yield from (word for _, word in _hashes(text))
    if spoken:
        yield from _spoken(text)


def _numbers(text: str) -> Iterator[tuple[int, str]]:
    for match in _NUMBER.finditer(text) if "#" in text else ():
        before = text[max(0, match.start() - 121) : match.start()]
        repository = _REPOSITORY_BEFORE.search(before)
        if repository or not before[-1:].isalnum():
            yield match.start(), (repository.group() if repository else "") + match.group()


def _hashes(text: str) -> Iterator[tuple[int, str]]:
    """Hashes with where they stand. Runs of their digits are found in bytes, one for each character, at the speed of memory."""
    runs = text.encode("ascii", "replace").translate(_HEXADECIMAL)
    start = runs.find(_SEVEN)
    while start >= 0:
        if match := _HASH.match(text, start):
            word = match.group()
            if not word.isdigit() and not word.isalpha():
                yield start, word
        # A run that goes on is no hash, nor is what it ends with.
        end = runs.find(b" ", start + len(_SEVEN))
        start = runs.find(_SEVEN, end) if end >= 0 else -1


def _spoken(text: str) -> Iterator[str]:
    if "_" in text or _HUMP.search(text):
        for word in _WORD.findall(text):
            if ("_" in word or not word.islower()) and _SPOKEN.fullmatch(word) and word not in _HOUSEHOLD_WORDS:
                yield word


def names_path(text: str) -> bool:
    """Whether the text names a path."""
    return ("/" in text or _SUFFIX.search(text) is not None) and PATH.search(text) is not None


def quantities(text: str) -> Iterator[str]:
    """Numbers with their unit, as `40 ms`, whatever stood between the two."""
    return (quantity for _, quantity in _quantities(text))


def _quantities(text: str) -> Iterator[tuple[int, str]]:
    for match in _quantities_in_ascii(text) if text.isascii() else _QUANTITY.finditer(text):
        number, unit = match.groups()
        yield match.start(), f"{number.replace(',', '')} {unit}" if unit != "%" else f"{number}%"


def _quantities_in_ascii(text: str) -> Iterator[re.Match[str]]:
    """The matches in a text in ASCII. Of its digits only those are looked at around which a quantity may stand."""
    classes = b" " + text.encode().translate(_AROUND_QUANTITY)  # one further on than in the text: what goes before is where the digit is
    if b"%0" in classes:
        yield from _QUANTITY.finditer(text)
        return
    for trace in _IN_QUANTITY.finditer(classes):
        if match := _QUANTITY.match(text, trace.start()):
            yield match


def working_directory(text: str) -> str:
    """The directory that an environment note names, or nothing."""
    if text.isascii() and "cwd" not in (lower := text.lower()) and "directory:" not in lower:
        return ""
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
    head = text[:2_000]
    match = _BRANCH_RESULT.search(head) if "branch" in head else None
    return match.group(1) if match else ""


def commits(text: str) -> Iterator[tuple[str, str, str]]:
    """Commits that git reports as made: branch, abbreviated hash, subject."""
    if text.startswith("[") or "\n[" in text:
        yield from (match.groups() for match in _COMMITTED.finditer(text[:8_000]))  # type: ignore[misc]
