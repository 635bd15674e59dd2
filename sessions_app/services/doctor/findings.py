"""What the doctor finds, in the order in which it is told: what can be set right first."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

MOST_NAMED = 10
"""Entries and the like that a finding names; the others are counted."""


class Check(StrEnum):
    """What is looked at. Those from `ENTRY_UNREADABLE` on no repair can help."""

    WORKER_LOST = "worker_lost"
    STATUS_STUCK = "status_stuck"
    END_UNTOLD = "end_untold"
    NUMBERS_BEHIND = "numbers_behind"
    SUMS_WRONG = "sums_wrong"
    OVERRIDES_DIFFER = "overrides_differ"
    CHECKPOINT_BROKEN = "checkpoint_broken"
    INDEX_GAP = "index_gap"
    TIME_DOUBTFUL = "time_doubtful"
    BLOB_MISSING = "blob_missing"
    FORK_UNFINISHED = "fork_unfinished"
    ENTRY_UNREADABLE = "entry_unreadable"
    HISTORY_CHANGED = "history_changed"
    IMPORT_UNFINISHED = "import_unfinished"
    EVENTS_BROKEN = "events_broken"
    RESULT_LEFT_OUT = "result_left_out"
    CALL_ANSWERED = "call_answered"


_ORDER = {check: place for place, check in enumerate(Check)}
_NOTES = frozenset({Check.RESULT_LEFT_OUT, Check.CALL_ANSWERED})


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be, in three sentences: what is so, what it means, and what a repair would do.

    `repair` is empty where none can help; `meaning` says then what a person can do. `facts` are plain values for scripts.
    """

    check: Check
    what: str
    meaning: str
    repair: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def is_note(self) -> bool:
        """Whether the product lives with it: nothing has to be done."""
        return self.check in _NOTES

    @property
    def can_be_repaired(self) -> bool:
        return bool(self.repair)


@dataclass(frozen=True)
class Examined:
    """What was found in one session, what can be set right first."""

    session_id: uuid.UUID
    title: str
    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        return all(finding.is_note for finding in self.findings)


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Repairable ones first, notes last."""
    return tuple(sorted(findings, key=lambda one: (one.is_note, not one.can_be_repaired, _ORDER[one.check])))


def named(numbers: Sequence[object], *, one: str = "entry", many: str = "entries") -> str:
    """`entry 4`, `entries 4, 9 and 11`, `entries 1, 2 … (31 in all)`."""
    shown = [f"{number:,}" if isinstance(number, int) else str(number) for number in numbers[:MOST_NAMED]]
    if len(numbers) == 1:
        return f"{one} {shown[0]}"
    if len(numbers) > MOST_NAMED:
        return f"{many} {', '.join(shown)} … ({len(numbers):,} in all)"
    return f"{many} {', '.join(shown[:-1])} and {shown[-1]}"
