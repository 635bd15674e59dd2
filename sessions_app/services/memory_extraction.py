"""What a flush takes from the entries that a compaction folds, and the receipt that says what became of it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sessions_app.engine import flush_candidates, flush_model
from sessions_app.engine.flush import ArchiveReason, FlushResult, Integrity, ObligationStatus, OutputCoverage, Receipt, ReceiptMode
from sessions_app.engine.flush_candidates import Candidate, Candidates
from sessions_app.engine.flush_model import MOST_ERRORS, NEWEST_SEGMENTS, Extractor, Findings, Segments
from sessions_app.engine.mechanical import Collector
from sessions_app.engine.policy import Policy
from sessions_app.engine.redaction import redact_entries
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import ShouldStop, Stop, Stopped
from sessions_app.engine.terms import Trigger
from sessions_app.providers.registry import extractor_for
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import prefix_hash_before
from sessions_app.services.memory import Kept

PAGE = 500

Offered = Callable[[], MechanicalState | None]
"""What the attempt knows of the same entries, once it does: then they need not be read again. None: it never will."""


@dataclass(frozen=True)
class FlushTask:
    """What a flush is about: the entries from `first` to `last`, inclusive, whose rolling hash is `prefix_hash`."""

    compaction_id: uuid.UUID
    session_id: uuid.UUID
    project_id: uuid.UUID | None
    first: int
    last: int
    prefix_hash: bytes
    policy: Policy
    trigger: Trigger
    author: str
    excluded: frozenset[int] = frozenset()  # indexes of entries that somebody excluded: nothing of them is kept

    def extractor(self) -> Extractor | None:
        """The model to be asked. None where the policy names none that can be; a view that overflowed waits for no model either."""
        return None if self.trigger is Trigger.OVERFLOW else extractor_for(self.policy)


class HistoryChanged(Exception):  # noqa: N818  it says what is the matter
    """The entries are not those that the attempt folds: nothing stands for what they state."""


@dataclass(frozen=True)
class Gathered:
    """What was found, before it is stored. `failure`: why it is not all that was asked for."""

    candidates: tuple[Candidate, ...] = ()
    mechanical: Candidates = field(default_factory=Candidates)
    backfilled: int = 0
    findings: Findings | None = None
    segments: Segments | None = None
    redactions: int = 0
    failure: ArchiveReason | None = None


def gather(task: FlushTask, offered: Offered, should_stop: ShouldStop) -> Gathered:
    """Finds what is worth keeping. Raises `HistoryChanged`, and `Stopped` where it was cancelled; a deadline is a failure that is told."""
    if prefix_hash_before(task.session_id, task.last + 1) != task.prefix_hash:
        raise HistoryChanged
    if task.project_id is None:
        return Gathered(failure=ArchiveReason.NO_PROJECT)
    extractor = task.extractor()
    state = offered() if extractor is None else None
    segments, redactions = Segments(), 0
    if state is None:
        try:
            state, redactions = _read(task, segments if extractor is not None else None, should_stop)
        except Stopped as stopped:
            if stopped.stop is not Stop.TIMED_OUT:
                raise
            return Gathered(failure=ArchiveReason.TIMEOUT)
    mechanical = flush_candidates.from_state(state, task.first, task.last)
    redactions += mechanical.redactions
    if extractor is None or not segments.kept:
        return Gathered(mechanical.found, mechanical, redactions=redactions)
    found = flush_model.extract(segments.kept, extractor, should_stop)
    if found.failure is not None:
        # Whatever the model gave is kept beside what code found: a failure of one part costs nothing of another.
        both = {candidate.digest: candidate for candidate in (*mechanical.found, *found.candidates)}
        return Gathered(tuple(both.values()), mechanical, 0, found, segments, redactions, found.failure)
    candidates, added = flush_candidates.joined(found.candidates, mechanical)
    return Gathered(candidates, mechanical, added, found, segments, redactions)


def _read(task: FlushTask, segments: Segments | None, should_stop: ShouldStop) -> tuple[MechanicalState, int]:
    """The state after the task's entries, read in pages, and how many credentials were taken out of them."""
    collector, redactions = Collector(), 0
    for first in range(task.first, task.last + 1, PAGE):
        if (stop := should_stop()) is not None:
            raise Stopped(stop)
        entries = plans.load_entries(task.session_id, first, min(first + PAGE - 1, task.last))
        page, count = redact_entries([entry for entry in entries if entry.index not in task.excluded])
        redactions += count
        for entry in page:
            collector.add(entry)
            if segments is not None:
                segments.add(entry)
    if segments is not None:
        segments.close()
    return collector.state(), redactions


def receipt_for(task: FlushTask, gathered: Gathered, kept: Kept, duration_ms: int) -> Receipt:
    """The receipt of what was gathered and of what of it is in the store."""
    digests = [candidate.digest for candidate in gathered.candidates]
    missing = [digest for digest in digests if digest not in kept.digests]
    obligations = gathered.mechanical.obligations
    lost = [digest for digest in obligations if digest in missing]
    findings = gathered.findings
    by_model = findings is not None and findings.failure is None
    mode = ReceiptMode.MODEL if by_model else ReceiptMode.MECHANICAL
    if gathered.failure is not None:
        mode = ReceiptMode.ARCHIVE
    return Receipt(
        mode=mode,
        result_status=_result(gathered),
        archive_reason=gathered.failure,
        duration_ms=duration_ms,
        integrity_status=_integrity(gathered, missing),
        stored_count=len(digests) - len(missing),
        new_count=min(kept.new, len(digests) - len(missing)),
        candidate_count=len(digests),
        candidate_covered_count=len(digests) - len(missing),
        candidate_missing_ids=tuple(missing),
        candidate_beyond_count=gathered.mechanical.beyond,
        output_coverage_status=OutputCoverage.WARNING if missing else OutputCoverage.OK,
        obligation_count=len(obligations),
        obligation_covered_count=len(obligations) - len(lost),
        obligation_missing_ids=tuple(lost),
        obligation_backfilled_count=0 if lost else gathered.backfilled,
        obligation_status=_met(lost, gathered.backfilled),
        redactions=gathered.redactions,
        **_place(task),
        **_of_model(gathered),
    )


def _integrity(gathered: Gathered, missing: list[str]) -> Integrity:
    if missing:
        return Integrity.MISSING_FACTS
    return Integrity.MALFORMED_RESULT if gathered.failure is ArchiveReason.INVALID_ANSWER else Integrity.OK


def _met(lost: list[str], backfilled: int) -> ObligationStatus:
    if lost:
        return ObligationStatus.WARNING
    return ObligationStatus.BACKFILLED if backfilled else ObligationStatus.OK


_RESULTS = {
    ArchiveReason.TIMEOUT: FlushResult.PROVIDER_FAILED,
    ArchiveReason.MODEL_ERROR: FlushResult.PROVIDER_FAILED,
    ArchiveReason.INVALID_ANSWER: FlushResult.PARSE_FAILED,
    ArchiveReason.STORE_ERROR: FlushResult.APPLY_FAILED,
    ArchiveReason.NO_PROJECT: FlushResult.ARCHIVE_ONLY,
}


def _result(gathered: Gathered) -> FlushResult:
    if gathered.failure is not None:
        return _RESULTS[gathered.failure]
    return FlushResult.WRITTEN if gathered.candidates else FlushResult.NOTHING_FOUND


def _place(task: FlushTask) -> dict[str, Any]:
    """Which entries, of which session, for which attempt; and the hash that proves them."""
    return {
        "session_id": str(task.session_id),
        "turn_id": str(task.compaction_id),
        "first_index": task.first,
        "last_index": task.last,
        "content_hash": task.prefix_hash.hex(),
    }


def _of_model(gathered: Gathered) -> dict[str, Any]:
    found, segments = gathered.findings, gathered.segments
    if found is None or segments is None:
        return {}
    sent = sum(len(segment.text) for segment in segments.kept)
    return {
        "model": found.model,
        "calls": found.calls,
        "usage": found.usage,
        "cost_usd": found.cost_usd,
        "input_entry_count": segments.entries,
        "prompt_entry_count": sum(len(segment.words) for segment in segments.kept),
        "prompt_chars": sent,
        "total_prompt_chars": max(sent, segments.chars),
        "truncated": bool(segments.dropped),
        "truncation_policy": NEWEST_SEGMENTS if segments.dropped else "",
        "segment_count": len(segments.kept),
        "invalid_candidate_count": len(found.errors),
        "invalid_candidate_errors": tuple(found.errors[:MOST_ERRORS]),
    }


def error_receipt(task: FlushTask, words: str) -> Receipt:
    """The receipt of a flush that broke. The words quote nothing of a transcript."""
    return Receipt(mode=ReceiptMode.ERROR, result_status=FlushResult.UNKNOWN, error=words, **_place(task))


def changed_receipt(task: FlushTask) -> Receipt:
    """The receipt of a flush whose entries are not those that the attempt folds: they are no archive of anything."""
    return Receipt(
        mode=ReceiptMode.ERROR,
        result_status=FlushResult.ARCHIVE_FAILED,
        integrity_status=Integrity.HISTORY_CHANGED,
        error="the entries are not what they were",
        **_place(task),
    )


def skipped_receipt(task: FlushTask) -> Receipt:
    """The receipt of a flush that was called off with its attempt."""
    return Receipt(mode=ReceiptMode.SKIPPED, result_status=FlushResult.SKIPPED, **_place(task))
