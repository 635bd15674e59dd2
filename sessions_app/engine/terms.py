"""The vocabulary of the engine: every state, kind and reason is one of these words, nowhere a bare string."""

from enum import StrEnum


class Role(StrEnum):
    """Who an entry speaks for. `notice` is shown to people and never sent to a model."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTICE = "notice"


class Kind(StrEnum):
    """What an entry is, within its role."""

    MESSAGE = "message"
    CALL = "call"
    RESULT = "result"
    THINKING = "thinking"
    COMPACTED = "compacted"  # a divider: here a compaction took place
    SUMMARY = "summary"  # an agent's own summary of what went before
    REMINDER = "reminder"  # text that the agent injected on the user's side
    ATTACHMENT = "attachment"
    ERROR = "error"
    OTHER = "other"


class PartKind(StrEnum):
    """What one part of an entry holds; each kind has its own estimator."""

    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    IMAGE = "image"
    DOCUMENT = "document"


class Fate(StrEnum):
    """What became of an entry in a model view. Every entry has exactly one."""

    VERBATIM = "verbatim"
    PINNED = "pinned"
    SUMMARISED = "summarised"
    TRIMMED = "trimmed"
    CLEARED = "cleared"
    EXCLUDED = "excluded"
    OFF_BRANCH = "off_branch"
    DISPLAY_ONLY = "display_only"

    @property
    def words(self) -> str:
        """The fate as a person reads it."""
        return self.value.replace("_", " ")


class Lineage(StrEnum):
    """Who made a checkpoint: this console, or the agent itself."""

    CONSOLE = "console"
    AGENT = "agent"


class Trigger(StrEnum):
    MANUAL = "manual"
    THRESHOLD = "threshold"
    PREFLIGHT = "preflight"
    OVERFLOW = "overflow"
    TIER_UPGRADE = "tier_upgrade"
    MODEL_SWITCH = "model_switch"
    EXTERNAL = "external"


class Status(StrEnum):
    """Where an attempt stands. Exactly one terminal status ends each started attempt."""

    REQUESTED = "requested"
    WAITING_FOR_IDLE = "waiting_for_idle"
    RUNNING = "running"
    DRAFTED = "drafted"  # its result waits for a person; nothing runs, and another attempt may
    COMPLETED = "completed"
    SKIPPED = "skipped"
    STALE = "stale"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    EMERGENCY_EPHEMERAL = "emergency_ephemeral"  # one request was served from a trimmed view, of which nothing is stored

    @property
    def is_terminal(self) -> bool:
        return self not in OPEN_STATUSES and self is not Status.DRAFTED


OPEN_STATUSES = frozenset({Status.REQUESTED, Status.WAITING_FOR_IDLE, Status.RUNNING})


class Outcome(StrEnum):
    """What a finished attempt came to."""

    COMMITTED = "committed"
    TRIMMED = "trimmed"
    SKIPPED = "skipped"
    REJECTED_EMPTY = "rejected_empty"
    REJECTED_TRUNCATED = "rejected_truncated"
    REJECTED_INFLATED = "rejected_inflated"
    STALE = "stale"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    EMERGENCY = "emergency"


class SkipReason(StrEnum):
    """Why nothing was folded, or why an attempt ended without a checkpoint."""

    EMPTY_SESSION = "empty_session"
    FEWER_THAN_THREE_ROUNDS = "fewer_than_three_rounds"
    NO_LEGAL_BOUNDARY = "no_legal_boundary"
    NOTHING_TO_FOLD = "nothing_to_fold"
    WOULD_NOT_SHRINK = "would_not_shrink"
    NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET = "non_history_envelope_exhausts_budget"
    STALE_PREIMAGE = "stale_preimage"
    UNSAFE_FLUSH_RECEIPT = "unsafe_flush_receipt"
    WORKER_LOST = "worker_lost"
    NEVER_IDLE = "never_idle"


class Phase(StrEnum):
    """The steps of an attempt, in order, as progress shows them."""

    LEASE = "lease"
    PLAN = "plan"
    SUMMARISE = "summarise"
    VERIFY = "verify"
    COMMIT = "commit"


class Rung(StrEnum):
    """The steps of the ladder, cheapest first. Each is tried only where the one before did not make enough room."""

    CLEAR = "clear"  # old results and binaries give way to a placeholder
    SUMMARISE = "summarise"
    TRIM = "trim"  # the boundary moves on without a summary; mechanical state and the user's messages stay
    EMERGENCY = "emergency"  # a trim for one request, which nothing stores


class SummarySource(StrEnum):
    LLM = "llm"
    MIXED = "mixed"
    EXTRACTIVE = "extractive"
    TRIM = "trim"
    EXTERNAL = "external"
    SKIPPED = "skipped"


class CoverageStatus(StrEnum):
    """What came of the check of a summary against the entries that it stands for."""

    PASS = "pass"  # noqa: S105  no password
    PASS_WITH_BACKFILL = "pass_with_backfill"  # noqa: S105  the summary lost what matters, and code added it
    WARN = "warn"  # something is lost that matters, or the summary says what no entry does
    FAIL_BLOCKED = "fail_blocked"  # so much of it that it was not committed
    UNKNOWN = "unknown"  # there was nothing to check


class Origin(StrEnum):
    """Where a number comes from."""

    MEASURED = "measured"
    REPORTED = "reported"
    ESTIMATED = "estimated"


class Scope(StrEnum):
    """What a number of tokens counts. Numbers of unlike scope are never subtracted."""

    VIEW = "view"
    WHOLE_REQUEST = "whole_request"
    CONVERSATION = "conversation"  # as some agents report it: without system prompt and tools
    SUMMARY_CALL = "summary_call"


class SegmentKind(StrEnum):
    SYNTHETIC = "synthetic"
    RANGE = "range"
    ENTRY = "entry"


class Profile(StrEnum):
    """What kind of work a session is; it decides what a summary stresses and how much is protected."""

    CONVERSATION = "conversation"
    CODING = "coding"
    RESEARCH = "research"
    SUPPORT = "support"


class Estimator(StrEnum):
    """What an attempt counts a view with."""

    CHARS = "chars"  # the stored numbers, from classes of characters
    BPE = "bpe"  # a vocabulary: slower, and only where a worker counts


class FlushMode(StrEnum):
    """Whether facts worth keeping go to the project's memory before a compaction, and what a failure of that means."""

    OFF = "off"
    PROTECT = "protect"  # beside the compaction; what failed is tried again later
    BEST_EFFORT = "best_effort"  # beside the compaction, once
    BLOCK = "block"  # without a safe receipt there is no compaction


class MemoryKind(StrEnum):
    """What a fact is."""

    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    DECISION = "decision"
    COMMAND = "command"
    IDENTIFIER = "identifier"
    REFERENCE = "reference"
    FACT = "fact"  # anything else that a model found worth keeping

    @property
    def is_binding(self) -> bool:
        """Whether work goes wrong where it is forgotten: such lines of a person must be kept."""
        return self in (MemoryKind.CONSTRAINT, MemoryKind.PREFERENCE, MemoryKind.DECISION)
