"""The eight sections of a summary: reading them from any writer's text, checking them, writing them."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from sessions_app.engine.terms import Outcome


class Section(StrEnum):
    """The sections, in the order in which they stand."""

    INTENT = "Primary request and intent"
    DECISIONS = "Key concepts and decisions"
    FILES = "Artifacts and files"
    ERRORS = "Errors and fixes"
    USER_MESSAGES = "All user messages"
    PENDING = "Pending tasks"
    CURRENT = "Current work"
    NEXT = "Next step"


ORDER = tuple(Section)

NOTHING = "Nothing recorded."
"""The body of a section that has nothing to say."""

_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+)?(?:\*\*)?(?:\d{1,2}[.)]\s*)?(?:\*\*)?([A-Za-z][A-Za-z ,/&()-]{3,60}?)\s*:?\s*(?:\*\*)?\s*:?\s*$"
)
_WORDS = {
    Section.INTENT: ("primary request", "request and intent", "goal"),
    Section.DECISIONS: ("key concepts", "key technical concepts", "key decisions", "concepts and decisions", "decisions"),
    Section.FILES: ("artifacts and files", "files and code", "files", "artifacts"),
    Section.ERRORS: ("errors and fixes", "errors", "problem solving"),
    Section.USER_MESSAGES: ("all user messages", "user messages"),
    Section.PENDING: ("pending tasks", "pending", "open tasks"),
    Section.CURRENT: ("current work", "current state"),
    Section.NEXT: ("next step", "optional next step", "next steps"),
}
_LONGEST_HEADING = 120
_FENCE = re.compile(r"^\s*```")
_PREAMBLE = re.compile(r"<analysis>.*?</analysis>", re.DOTALL)


class Rejection(StrEnum):
    """Why a summary may not be used."""

    EMPTY = "empty"
    TRUNCATED = "truncated"
    ECHO = "looks_like_the_input"
    NOT_A_SUMMARY = "error_or_page_instead_of_a_summary"
    INFLATED = "larger_than_the_input"
    TOO_LONG = "longer_than_asked_for"
    UNSUPPORTED = "coverage_blocked"

    @property
    def outcome(self) -> Outcome:
        return {
            Rejection.EMPTY: Outcome.REJECTED_EMPTY,
            Rejection.TRUNCATED: Outcome.REJECTED_TRUNCATED,
            Rejection.ECHO: Outcome.FAILED,
            Rejection.NOT_A_SUMMARY: Outcome.FAILED,
            Rejection.INFLATED: Outcome.REJECTED_INFLATED,
            Rejection.TOO_LONG: Outcome.REJECTED_INFLATED,
            Rejection.UNSUPPORTED: Outcome.FAILED,
        }[self]

    @property
    def words(self) -> str:
        return {
            Rejection.EMPTY: "the summary was empty",
            Rejection.TRUNCATED: "the summary was cut off at its length limit",
            Rejection.ECHO: "the summary was a copy of the conversation and not a summary of it",
            Rejection.NOT_A_SUMMARY: "what came was an error message or a web page and not a summary",
            Rejection.INFLATED: "the summary was larger than what it should replace",
            Rejection.TOO_LONG: "the summary was far longer than was asked for",
            Rejection.UNSUPPORTED: "most of what the summary names and quotes stands in no entry",
        }[self]


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A summary by section. `preamble` is what stood before the first heading; `missing` the headings not found."""

    bodies: dict[Section, str]
    preamble: str = ""

    @property
    def missing(self) -> tuple[Section, ...]:
        return tuple(section for section in ORDER if section not in self.bodies)


def parse(text: str) -> Parsed:
    """Reads the sections of a summary, ours or another writer's, with `#`, bold or numbered headings. Never raises."""
    lines: dict[Section | None, list[str]] = {None: []}
    current: Section | None = None
    fenced = False
    for line in _PREAMBLE.sub("", text).splitlines():
        fenced ^= bool(_FENCE.match(line))
        found = None if fenced else _section_of(line)
        if found is None:
            lines[current].append(line)
            continue
        current = found
        lines.setdefault(current, [])
    bodies = {section: "\n".join(body).strip() for section, body in lines.items() if section is not None}
    return Parsed(bodies=bodies, preamble="\n".join(lines[None]).strip())


def _section_of(line: str) -> Section | None:
    if not re.match(r"\s{0,3}(?:#|\*\*|\d)", line) or len(line) > _LONGEST_HEADING:
        return None
    match = _HEADING.match(" ".join(line.split()))
    if match is None:
        return None
    words = " ".join(match.group(1).lower().replace("&", "and").split())
    return next((section for section, names in _WORDS.items() if any(words.startswith(name) for name in names)), None)


def render(bodies: Mapping[Section, str]) -> str:
    """All eight sections in order; an empty one says that there is nothing."""
    return "\n\n".join(f"## {section.value}\n{bodies.get(section, '').strip() or NOTHING}" for section in ORDER)


def with_bodies(text: str, changed: Mapping[Section, str]) -> str:
    """The text with other bodies of these sections. The rest stays as it is; a section that it lacks is put at the end."""
    found: list[str] = []
    seen: set[Section] = set()
    skips = fenced = False
    for line in _PREAMBLE.sub("", text).splitlines():
        fenced ^= bool(_FENCE.match(line))
        section = None if fenced else _section_of(line)
        skips = section in changed if section is not None else skips
        if section is not None and skips and section not in seen:
            seen.add(section)
            found += [line, changed[section], ""]
        elif not skips:
            found.append(line)
    for section in (section for section in ORDER if section in changed and section not in seen):
        found += ["", f"## {section.value}", changed[section]]
    return "\n".join(found).strip()


def validate(
    text: str,
    *,
    truncated: bool,
    tokens: int,
    replaced_tokens: int,
    asked_tokens: int = 0,
    inputs: Iterable[str] = (),
    earlier: Iterable[str] = (),
) -> Rejection | None:
    """Why the summary may not be used, or None.

    `tokens` is its size, `replaced_tokens` the size of what it stands for, `asked_tokens` what it was to stay within (0: do
    not compare). `inputs` are the texts of the entries that it was made of, `earlier` the summaries that it was to take up, for
    telling a copy from a summary; what a program writes from the entries' own sentences is not asked for either.
    """
    plain = " ".join(text.split())
    parsed = parse(text)
    if not any(body and body != NOTHING for body in (*parsed.bodies.values(), parsed.preamble)):
        return Rejection.EMPTY
    if truncated:
        return Rejection.TRUNCATED
    if replaced_tokens and tokens >= replaced_tokens:
        return Rejection.INFLATED
    if not parsed.bodies and _is_page_or_error(plain):  # whoever writes our headings has understood what was wanted
        return Rejection.NOT_A_SUMMARY
    if _is_copy(plain, inputs, least=COPIED_WITH_HEADINGS if parsed.bodies else COPIED) or _repeats(plain, earlier):
        return Rejection.ECHO
    if asked_tokens and tokens > asked_tokens * LONGEST:
        return Rejection.TOO_LONG
    return None


LONGEST = 2
"""So many times the length that was asked for is no slip any more: nobody bounds what such a provider gives."""

COPIED, COPIED_WITH_HEADINGS = 0.5, 0.75
"""The share of samples from which on a text is a copy. A summary by section may quote much, and its material has headings, too."""

_PROBES, _PROBE_CHARS = 16, 30
_MATERIAL = re.compile(r"</?(?:material|untrusted-data)\b", re.IGNORECASE)
_MARK = re.compile(r"\[(?:#\d{1,9} (?:the (?:user|agent|system)\]|the agent called )|partial record \d{1,4}\]|the conversation since\])")
_MOST_MARKS = 2
"""A summary has no reason to write what we put before each message of its material; once or twice it may quote it."""


def _is_copy(plain: str, inputs: Iterable[str], *, least: float) -> bool:
    """Whether so much of the summary, by samples, stands in what was given to read. Short answers may well repeat a sentence."""
    if len(plain) <= _SHORTEST_COPY:
        return False
    if _MATERIAL.search(plain) or len(_MARK.findall(plain)) > _MOST_MARKS:
        return True
    last = len(plain) - _PROBE_CHARS
    probes = {plain[last * number // (_PROBES - 1) :][:_PROBE_CHARS] for number in range(_PROBES)}
    read = " ".join(" ".join(given.split()) for given in inputs)
    return sum(probe in read for probe in probes) >= len(probes) * least


def _repeats(plain: str, earlier: Iterable[str]) -> bool:
    """Whether it is one of the earlier summaries word for word, with nothing of the others or of what came since."""
    told = {" ".join(text.split()) for text in earlier}
    return len(plain) > _SHORTEST_COPY and len(told) > 1 and plain in told


_SHORTEST_COPY = 400
_LONGEST_ERROR = 600
_PAGE = re.compile(r"^(?:```\w*\s*)?<(?:!doctype\b|html\b|head\b|body\b|\?xml\b)", re.IGNORECASE)
_ERROR = re.compile(
    r"^(?:```\w*\s*)?(?:"
    r"\{\s*\"(?:error|errors|detail|code|status)\"|\{\s*\"type\"\s*:\s*\"error\""
    r"|(?:[\w-]{1,40}[ :])?(?:error|exception|traceback)\b(?: code)?(?:\s*[:(\[]|\s+\d{3}\b)"
    r"|(?:http\W{0,3})?(?:4\d\d|5\d\d)\b\W{0,3}(?:\w+ ){0,3}"
    r"(?:error|gateway|unavailable|timeout|time-out|requests|overloaded|found|forbidden)\b"
    r"|(?:rate limit|too many requests|service (?:is )?(?:temporarily )?unavailable|bad gateway|gateway time-?out|internal server error"
    r"|the (?:server|service|model|engine) is (?:currently |temporarily )?(?:overloaded|unavailable|busy)|upstream connect error)\b"
    r"|(?:i'm |i am )?(?:sorry|unable)\b[^.]{0,60}\b(?:can(?:no|')t|unable|assist|help|to)\b|i can(?:no|')t (?:help|assist|summari)"
    r")",
    re.IGNORECASE,
)
"""How a proxy, a server or a model that declines begins. A summary may well tell of errors, and begins otherwise or is longer."""


def _is_page_or_error(plain: str) -> bool:
    """Whether it is a web page, or a short text that says that there is no answer."""
    return bool(_PAGE.match(plain)) or (len(plain) <= _LONGEST_ERROR and bool(_ERROR.match(plain.replace("’", "'"))))


_TRIM_NOTE = re.compile(r"^No summary was made of the \d[\d,]* entries before #\d+\..*(?:\n|$)", re.MULTILINE)


def of_trim(previous_summary: str, entries: int, boundary_index: int) -> str:
    """What stands in a summary's place when none was made: one note, and the summary before it."""
    note = f"No summary was made of the {entries:,} entries before #{boundary_index}. What code recorded of them stands below."
    earlier = _TRIM_NOTE.sub("", previous_summary).strip()
    return f"{note}\n\n{earlier}" if earlier else note


def warnings(text: str) -> tuple[str, ...]:
    """What is wrong with a usable summary, in plain sentences."""
    missing = parse(text).missing
    if not missing:
        return ()
    names = ", ".join(f"“{section.value}”" for section in missing)
    return (f"The summary lacks {'this section' if len(missing) == 1 else 'these sections'}: {names}.",)
