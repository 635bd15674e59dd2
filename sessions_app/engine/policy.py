"""When a session is compacted and how much of it is kept: the policy, its ranges, and where each value comes from."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import msgspec

from sessions_app.engine.terms import Estimator, FlushMode, Profile
from sessions_app.engine.texts import is_storable

DEFAULT_WINDOW = 128_000
SCOPES = ("installation", "project", "session")
"""Where a value can be set, from the widest to the narrowest; the narrowest wins."""

PROTECTED_MESSAGES = {Profile.CODING: 12, Profile.RESEARCH: 12, Profile.SUPPORT: 12}
SUMMARISERS = ("extractive", "scripted")
"""Those that call no model. A model is named `anthropic:MODEL` or `openai:MODEL`, with `@TOKENS` where its window is not known."""

_MODEL_NAME = re.compile(r"(?:anthropic|openai):([\w][\w.:/+-]{0,100})(?:@(\d{3,8}))?", re.ASCII)
MAX_SUMMARY_CALLS = 64
MOST_SUMMARISERS = 8
LEAST_TARGET_TOKENS = 500
"""A block of a compaction under this can't hold its own frame and eight headings."""

MAX_INSTRUCTIONS_CHARS = 2_000
"""Of what a summary is to stress, whether it is asked for once or always."""

WINDOWS = (1_000, 10_000_000)
"""Tokens, from and to: what a window that somebody states may be."""


class PolicyError(ValueError):
    """A value that a policy can't have, in words for people. `fields` are those at fault; more than one contradict each other."""

    def __init__(self, sentence: str, *fields: str) -> None:
        self.fields = fields
        super().__init__(sentence)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How one session is compacted. Fractions are of 1, times are seconds, budgets are tokens."""

    enabled: bool = True  # automatic compaction; a person may always ask
    threshold_pct: float = 0.80  # of the window
    cap_tokens: int = 250_000
    preflight_ratio: float = 0.85  # of the window: where an estimate alone starts a compaction
    safety_margin: float = 1.2  # times the history, when a session moves to the highest tier of models
    tier_upgrade_enabled: bool = True
    keep_recent_fraction: float = 0.25  # of the trigger
    target_fraction: float = 0.60  # of the trigger: what a view may come to after a compaction
    profile: Profile = Profile.CONVERSATION
    protected_recent_messages: int | None = None  # None: as the profile says
    estimator: Estimator = Estimator.CHARS  # what an attempt counts the view with; meter and trigger always count by characters
    summary_max_tokens: int = 3_000
    max_summary_calls: int = MAX_SUMMARY_CALLS  # of a model, in one attempt; beyond it the oldest part is summarised without one
    concurrency: int = 3  # calls of a model at once, in one attempt
    call_timeout_s: int = 90
    total_timeout_s: int | None = None  # None: it grows with the number of chunks
    heartbeat_s: int = 15
    summarisers: tuple[str, ...] = ("extractive",)
    standing_instructions: str = ""  # what every summary stresses, whoever or whatever asks for it
    clear_results: bool = True  # whether an automatic compaction may replace old results by placeholders
    review_before_commit: bool = False  # whether a result waits as a draft until somebody commits it
    allow_fallback: bool = True  # whether a trim may follow when every summary was rejected
    coverage_blocking: bool = True  # whether a model's summary is refused of which most stands in no entry
    require_model: bool = False  # whether a session that is held here is compacted only where it has a model
    flush_mode: FlushMode = FlushMode.OFF  # memory outlives a session and is seen in all of its project, so somebody has to want it
    flush_timeout_s: int = 15  # how long `block` waits for a receipt
    flush_background_timeout_s: int = 120  # what a flush itself may take
    scripted_delay_s: float = 0.0  # pause per chunk of the `scripted` summariser

    @property
    def protected_messages(self) -> int:
        """How many of the latest messages always stay verbatim."""
        if self.protected_recent_messages is not None:
            return self.protected_recent_messages
        return PROTECTED_MESSAGES.get(self.profile, 0)

    def trigger_tokens(self, window: int) -> int:
        """The number of tokens, inclusive, at which automatic compaction starts."""
        return min(int(self.threshold_pct * window), self.cap_tokens)

    def trigger_field(self, window: int) -> str:
        """The field that decides the trigger: the share of the window, or the cap."""
        return "cap_tokens" if self.cap_tokens < int(self.threshold_pct * window) else "threshold_pct"

    def target_tokens(self, window: int) -> int:
        """What a view may come to after a compaction."""
        return int(self.target_fraction * self.trigger_tokens(window))

    def total_timeout(self, chunk_count: int) -> int:
        """Seconds after which an attempt with that many chunks ends `timed_out`."""
        return self.total_timeout_s or min(900, max(120, 60 - (-60 * chunk_count // self.lanes)))

    @property
    def lanes(self) -> int:
        """How many chunks are summarised at once: one where no model is asked."""
        return self.concurrency if any(name not in SUMMARISERS for name in self.summarisers) else 1


class ResolvedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy and, for every field, where its value was set: a scope, `profile` or `default`."""

    policy: Policy
    sources: dict[str, str]


RANGES: Mapping[str, tuple[float, float]] = {
    "threshold_pct": (0.10, 0.95),
    "cap_tokens": (1_000, 2_000_000),
    "preflight_ratio": (0.10, 1.0),
    "safety_margin": (1.0, 3.0),
    "keep_recent_fraction": (0.05, 0.90),
    "target_fraction": (0.10, 0.95),
    "protected_recent_messages": (0, 1_000),
    "summary_max_tokens": (200, 50_000),
    "max_summary_calls": (2, MAX_SUMMARY_CALLS),
    "concurrency": (1, 16),
    "call_timeout_s": (1, 900),
    "total_timeout_s": (1, 900),
    "heartbeat_s": (1, 60),
    "flush_timeout_s": (0, 300),
    "flush_background_timeout_s": (1, 900),
    "scripted_delay_s": (0, 60),
}


def resolve(values: Iterable[tuple[str, str, object]]) -> ResolvedPolicy:
    """The effective policy of (scope, field, value) triples, given in any order.

    Raises `PolicyError`, a `ValueError` in words for people, on an unknown scope or field, a value of the wrong type or
    out of its range, and values that contradict each other.
    """
    by_rank: dict[str, tuple[int, object]] = {}
    for scope, field, value in values:
        if scope not in SCOPES:
            raise PolicyError(f"There is no scope {scope!r}; a policy value is set for the {', a '.join(SCOPES)}.")
        rank = SCOPES.index(scope)
        if field not in by_rank or rank >= by_rank[field][0]:
            by_rank[field] = (rank, check_value(field, value))
    policy = msgspec.convert({field: value for field, (_, value) in by_rank.items()}, Policy)
    for is_contradiction, sentence, *fields in _CONTRADICTIONS:
        if is_contradiction(policy):
            raise PolicyError(sentence, *fields)
    sources = {field: SCOPES[by_rank[field][0]] if field in by_rank else "default" for field in Policy.__struct_fields__}
    if policy.protected_recent_messages is None and policy.profile in PROTECTED_MESSAGES:
        sources["protected_recent_messages"] = "profile"
    return ResolvedPolicy(policy=policy, sources=sources)


def changed(policy: Policy, values: Mapping[str, object]) -> Policy:
    """The policy with other values. Raises `ValueError` as `resolve` does."""
    given = [(SCOPES[0], field, value) for field, value in msgspec.to_builtins(policy).items()]
    return resolve([*given, *((SCOPES[-1], field, value) for field, value in values.items())]).policy


def check_value(field: str, value: object) -> object:
    """The value, if the field may have it; else `PolicyError`."""
    if field not in Policy.__struct_fields__:
        raise PolicyError(f"A policy has no field {field!r}.", field)
    try:
        checked = getattr(msgspec.convert({field: value}, Policy), field)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{field} cannot be {_shown(value)}{_expected(field, str(error))}.", field) from error
    low, high = RANGES.get(field, (None, None))
    if low is not None and high is not None and checked is not None and not low <= checked <= high:
        raise PolicyError(f"{field} must lie between {low:,} and {high:,}, not at {_shown(checked)}.", field)
    if field == "summarisers":
        _check_summarisers(checked)
    if field == "standing_instructions":
        _check_instructions(checked)
    return value


CHOICES: Mapping[str, type[StrEnum]] = {"profile": Profile, "estimator": Estimator, "flush_mode": FlushMode}
_KINDS = {"float": "a number", "int": "a whole number", "bool": "true or false", "str": "a text", "array": "a list of names"}


def _expected(field: str, error: str) -> str:
    """What a value of another kind should have been, in words."""
    if field in CHOICES:
        return f": it is one of {', '.join(CHOICES[field])}"
    wanted = re.search(r"Expected `(\w+)", error)
    return f": it is {_KINDS[wanted[1]]}" if wanted and wanted[1] in _KINDS else ""


def _shown(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 10**15 else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _check_instructions(text: str) -> None:
    if len(text) > MAX_INSTRUCTIONS_CHARS:
        told = f"standing_instructions may have {MAX_INSTRUCTIONS_CHARS:,} characters; these have {len(text):,}."
        raise PolicyError(told, "standing_instructions")
    if not is_storable(text):
        raise PolicyError("standing_instructions hold a character that no database stores.", "standing_instructions")


def _check_summarisers(names: tuple[str, ...]) -> None:
    if not names:
        raise PolicyError("A policy needs at least one summariser.", "summarisers")
    if len(names) > MOST_SUMMARISERS:
        raise PolicyError(f"A policy names at most {MOST_SUMMARISERS} summarisers, not {len(names)}.", "summarisers")
    for place, name in enumerate(names):
        match = _MODEL_NAME.fullmatch(name)
        if name not in SUMMARISERS and not match:
            known = f"known are {', '.join(SUMMARISERS)}, anthropic:MODEL and openai:MODEL, with @TOKENS where the window is not known"
            raise PolicyError(f"There is no summariser {_shown(name)}; {known}.", "summarisers")
        if match and match.group(2) and not WINDOWS[0] <= int(match.group(2)) <= WINDOWS[1]:
            raise PolicyError(f"The window after the @ of {name} must lie between {WINDOWS[0]:,} and {WINDOWS[1]:,} tokens.", "summarisers")
        if name in names[:place]:
            raise PolicyError(f"The summariser {name} stands there twice.", "summarisers")


_CONTRADICTIONS: tuple[tuple[Callable[[Policy], bool], str, str, str], ...] = (
    (
        lambda policy: policy.keep_recent_fraction >= policy.target_fraction,
        "keep_recent_fraction must be smaller than target_fraction: what is kept verbatim would already exceed the target.",
        "keep_recent_fraction",
        "target_fraction",
    ),
    (
        lambda policy: policy.total_timeout_s is not None and policy.total_timeout_s < policy.call_timeout_s,
        "total_timeout_s must not be shorter than call_timeout_s.",
        "total_timeout_s",
        "call_timeout_s",
    ),
    (
        lambda policy: policy.target_fraction * policy.cap_tokens < LEAST_TARGET_TOKENS,
        f"target_fraction of cap_tokens must come to {LEAST_TARGET_TOKENS} tokens at least: no compaction could bring a view down to less.",
        "target_fraction",
        "cap_tokens",
    ),
)


_WINDOWS: tuple[tuple[str, int], ...] = (
    ("[1m]", 1_000_000),
    ("claude", 200_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-5", 272_000),  # 400,000 with the answer; a prompt may fill this much
    ("codex", 272_000),
    ("gpt-oss", 131_072),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini", 1_048_576),
    ("grok-4-fast", 2_000_000),
    ("grok-4", 256_000),
    ("grok-code", 256_000),
    ("qwen3-coder", 262_144),
    ("kimi-k2", 262_144),
    ("glm-4.6", 200_000),
    ("glm", 128_000),
    ("deepseek", 128_000),
)
"""Tokens that a prompt may fill, by the start of the model's name (or, in brackets, by its end). First match wins."""


def model_of(summariser: str) -> tuple[str, int]:
    """(model, window in tokens) of a summariser's name. Raises `ValueError` where it names no model."""
    match = _MODEL_NAME.fullmatch(summariser)
    if match is None:
        raise ValueError(f"{summariser!r} names no model.")
    return match.group(1), int(match.group(2)) if match.group(2) else window_for(match.group(1))


def window_for(model: str) -> int:
    """The window of a model in tokens; `DEFAULT_WINDOW` when the table does not know it.

    A provider's prefix (`anthropic/…`, `us.anthropic.…`) is skipped.
    """
    name = model.lower().rsplit("/", 1)[-1]
    for mark, window in _WINDOWS:
        if mark.startswith("["):
            if name.endswith(mark):
                return window
        elif name.startswith(mark) or f".{mark}" in name:
            return window
    return DEFAULT_WINDOW
