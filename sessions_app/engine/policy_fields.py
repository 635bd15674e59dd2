"""The fields of a policy as people read and write them: groups, labels, help, and text to value and back."""

import re
from decimal import Decimal, InvalidOperation
from enum import StrEnum

import msgspec

from sessions_app.engine.policy import CHOICES, MAX_INSTRUCTIONS_CHARS, RANGES, Policy, PolicyError, check_value


class Group(StrEnum):
    """What a field is about."""

    WHEN = "when"
    HOW_MUCH = "how_much"
    SUMMARISERS = "summarisers"
    SAFETY = "safety"
    MEMORY = "memory"


class Unit(StrEnum):
    """How a value is written."""

    PERCENT = "percent"
    TOKENS = "tokens"
    SECONDS = "seconds"
    COUNT = "count"
    FACTOR = "factor"
    SWITCH = "switch"
    CHOICE = "choice"
    NAMES = "names"
    TEXT = "text"


class PolicyField(msgspec.Struct, frozen=True, kw_only=True):
    """One field. `of` says what a share is a share of; `auto`, what an empty value means."""

    name: str
    group: Group
    label: str
    help: str
    unit: Unit
    of: str = ""
    auto: str = ""
    choices: tuple[str, ...] = ()

    @property
    def range_words(self) -> str:
        """From where to where a value may lie; empty for what is no number."""
        if self.name not in RANGES:
            return ""
        low, high = (show(self, value).removesuffix(" s") for value in RANGES[self.name])
        return f"{low} to {high}" + (f", or auto: {self.auto}" if self.auto else "")


_WHEN = (
    ("enabled", "Compact automatically", "Before a turn, once the context reaches the trigger. People may always ask for it.", Unit.SWITCH),
    ("threshold_pct", "Trigger", "The share of the context window at which an automatic compaction starts.", Unit.PERCENT, "of the window"),
    ("cap_tokens", "Trigger at most", "The trigger never lies above this, however large the window.", Unit.TOKENS),
    (
        "preflight_ratio",
        "Trigger on an estimate",
        "Where nothing was measured since the last compaction, the estimate alone starts one at this share.",
        Unit.PERCENT,
        "of the window",
    ),
    ("tier_upgrade_enabled", "Compact at a move to the top tier", "Before a router takes the session to its highest tier.", Unit.SWITCH),
    ("safety_margin", "Margin at a move", "The history counts so many times its estimate when such a move is decided.", Unit.FACTOR),
)
_HOW_MUCH = (
    ("keep_recent_fraction", "Keep word for word", "How much of the latest history is not folded.", Unit.PERCENT, "of the trigger"),
    ("target_fraction", "View after a compaction", "What the view may come to afterwards, block and all.", Unit.PERCENT, "of the trigger"),
    ("profile", "Profile", "What kind of work it is: what a summary stresses, how many messages stay.", Unit.CHOICE),
    ("protected_recent_messages", "Latest messages that stay", "So many always stay word for word, whatever their size.", Unit.COUNT),
    (
        "clear_results",
        "Clear old results first",
        "It may begin by replacing old tool results by short notes.",
        Unit.SWITCH,
    ),
)
_COUNTING = (
    (
        "estimator",
        "Count by",
        "What a compaction counts its view with: “chars” as the meter does, “bpe” by a vocabulary, for which a worker needs 100 MB.",
        Unit.CHOICE,
    ),
)
_SUMMARISERS = (
    ("summarisers", "Summarisers", "In the order in which they are tried, one a line.", Unit.NAMES),
    (
        "standing_instructions",
        "Stress in every summary",
        "Automatic compactions go by it as well. What is asked for one compaction is added to it.",
        Unit.TEXT,
    ),
    ("require_model", "Only with a model", "A session that is held here is not compacted where it has no model.", Unit.SWITCH),
    ("summary_max_tokens", "Longest summary", "What a summariser is asked to stay within.", Unit.TOKENS),
    ("max_summary_calls", "Calls of an attempt", "Beyond so many, the oldest part is summarised without a model.", Unit.COUNT),
    ("concurrency", "Calls at once", "So many parts of one attempt a model is asked side by side; 1 asks one after the other.", Unit.COUNT),
    ("scripted_delay_s", "Pause of “scripted”", "After each chunk, for demonstrations. Other summarisers never wait.", Unit.SECONDS),
)
_SAFETY = (
    (
        "coverage_blocking",
        "Refuse what no entry supports",
        "A model's summary of which most names and quotes stand in no entry is not used; the next summariser is asked.",
        Unit.SWITCH,
    ),
    ("review_before_commit", "Review before commit", "An attempt stops at a draft, which a person commits or discards.", Unit.SWITCH),
    (
        "allow_fallback",
        "Trim as a last resort",
        "Where every summary was rejected, old entries may leave the view without one.",
        Unit.SWITCH,
    ),
    ("call_timeout_s", "Time of a call", "A model that has not answered by then is given up.", Unit.SECONDS),
    ("total_timeout_s", "Time of an attempt", "After it, the attempt ends and the old view stays.", Unit.SECONDS),
    ("heartbeat_s", "Sign of life", "How often a running attempt says how far it is.", Unit.SECONDS),
)
_MEMORY = (
    (
        "flush_mode",
        "Keep facts in memory",
        "For the project, before a compaction. protect tries again what failed, best_effort does not, block compacts only once it is safe.",
        Unit.CHOICE,
    ),
    ("flush_timeout_s", "Wait under block", "So long a compaction waits to hear that facts are kept; then it is skipped.", Unit.SECONDS),
    ("flush_background_timeout_s", "Time to keep facts", "After it, the history alone stands for what was not kept yet.", Unit.SECONDS),
)
_AUTO = {"protected_recent_messages": "as the profile says", "total_timeout_s": "it grows with the number of chunks"}
_CHOICES = {name: tuple(choice.value for choice in kind) for name, kind in CHOICES.items()}


def _described() -> dict[str, PolicyField]:
    found = {}
    groups = (
        (Group.WHEN, _WHEN),
        (Group.HOW_MUCH, _HOW_MUCH + _COUNTING),
        (Group.SUMMARISERS, _SUMMARISERS),
        (Group.SAFETY, _SAFETY),
        (Group.MEMORY, _MEMORY),
    )
    for group, rows in groups:
        for name, label, told, unit, *of in rows:
            if name in Policy.__struct_fields__:
                found[name] = PolicyField(
                    name=name,
                    group=group,
                    label=label,
                    help=told,
                    unit=unit,
                    of=of[0] if of else "",
                    auto=_AUTO.get(name, ""),
                    choices=_CHOICES.get(name, ()),
                )
    return found


FIELDS = _described()
"""Every field of a policy by its name, in the order of the page."""

_NAMES = re.compile(rf"\b(?:{'|'.join(name for name in FIELDS if '_' in name)})\b")
AUTO = "auto"
NONE = "none"
"""An empty text, where something else stands above."""

MOST_CHARS = 2 * MAX_INSTRUCTIONS_CHARS  # a browser sends two characters for the end of a line
_ON, _OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")
_THOUSANDS = re.compile(r"\d{1,3}(?:[ ,.'_\u00a0\u202f]\d{3})+", re.ASCII)
_PLAIN = re.compile(r"[-+]?\d{1,15}(?:[.,]\d{1,9})?", re.ASCII)
_MULTIPLES = {"k": 1_000, "m": 1_000_000}


def read(field: PolicyField, text: str) -> object:
    """The value that a person wrote, within its range. Raises `PolicyError` in the field's own words and units."""
    value = parse(field, text)
    if field.choices and value not in field.choices:
        raise PolicyError(f"{field.label} is one of {', '.join(field.choices)}, not {text.strip()[:40]!r}.", field.name)
    if field.name in RANGES and isinstance(value, int | float):
        low, high = RANGES[field.name]
        if not low <= value <= high:
            raise PolicyError(
                f"{field.label} must lie between {show(field, low)} and {show(field, high)}, not at {show(field, value)}.", field.name
            )
    try:
        check_value(field.name, value)
    except PolicyError as error:
        raise PolicyError(in_words(str(error)), field.name) from error
    return value


def in_words(sentence: str) -> str:
    """A sentence about fields, with their labels in the place of their names."""
    return _NAMES.sub(lambda match: f"“{FIELDS[match.group()].label}”", sentence)


def parse(field: PolicyField, text: str) -> object:
    """The value that a person wrote, not yet checked against its range. Raises `PolicyError`.

    A share is written in per cent, `80` or `80 %`, or as the share itself, `0.8`: what is no more than 1 and has no sign.
    Decimals take a point or a comma.
    """
    text = text.strip()
    if len(text) > MOST_CHARS:
        raise PolicyError(f"{field.label}: that is too long.", field.name)
    if field.unit is Unit.TEXT:
        return "" if text.lower() == NONE else text.replace("\r\n", "\n").replace("\r", "\n")
    if field.unit is Unit.NAMES:
        return [name for name in re.split(r"[\s,]+", text) if name]
    if field.auto and text.lower() == AUTO:
        return None
    if field.unit is Unit.CHOICE:
        return text
    if field.unit is Unit.SWITCH:
        if text.lower() not in _ON + _OFF:
            raise PolicyError(f"{field.label} is on or off, not {text[:40]!r}.", field.name)
        return text.lower() in _ON
    return _number(field, text)


def _number(field: PolicyField, text: str) -> object:
    is_whole = field.unit in (Unit.TOKENS, Unit.COUNT) or (field.unit is Unit.SECONDS and field.name != "scripted_delay_s")
    number = _decimal(text.removesuffix("%").rstrip() if field.unit is Unit.PERCENT else text, is_whole=is_whole)
    if number is None:
        example = {Unit.PERCENT: "80 or 72.5", Unit.TOKENS: "160000, 160,000 or 160k"}.get(field.unit, "90" if is_whole else "1.2")
        raise PolicyError(f"{field.label}: {text[:40]!r} is no number that is understood here. Write it as {example}.", field.name)
    if field.unit is Unit.PERCENT:
        return float(number if number <= 1 and not text.endswith("%") else number / 100)
    if not is_whole:
        return float(number)
    if number != int(number):
        raise PolicyError(f"{field.label} is a whole number, not {text[:40]}.", field.name)
    return int(number)


def _decimal(text: str, *, is_whole: bool) -> Decimal | None:
    """A number as people of several countries write it. `1,500` and `1.500` are fifteen hundred only where no decimals are expected."""
    times = _MULTIPLES.get(text[-1:].lower(), 1) if is_whole else 1
    body = text[:-1].rstrip() if times > 1 else text
    if is_whole and times == 1 and _THOUSANDS.fullmatch(body):
        return Decimal(re.sub(r"\D", "", body))
    if not _PLAIN.fullmatch(body):
        return None
    try:
        return Decimal(body.replace(",", ".")) * times
    except InvalidOperation:
        return None


def written(field: PolicyField, value: object) -> str:
    """The value as it stands in an input: `parse` gives it back."""
    if value is None:
        return AUTO
    if isinstance(value, bool):
        return "on" if value else "off"
    if field.unit is Unit.TEXT:
        return str(value) or NONE
    if field.unit is Unit.NAMES and isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    if field.unit is Unit.PERCENT and isinstance(value, int | float):
        return f"{(Decimal(str(value)) * 100).normalize():f}"
    return str(value)


def show(field: PolicyField, value: object) -> str:
    """The value as it is read."""
    if value is None:
        return field.auto
    if field.unit is Unit.NAMES and isinstance(value, list | tuple):
        return ", then ".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return written(field, value)
    match field.unit:
        case Unit.PERCENT:
            return f"{written(field, value)} %"
        case Unit.SECONDS:
            return f"{value:g} s"
        case Unit.FACTOR:
            return f"{value:g}"
    return f"{value:,}"
