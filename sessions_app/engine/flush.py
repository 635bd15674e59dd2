"""The receipt of a memory flush: what became of the facts that were to outlive a session, and whether that is safe."""

import re
from enum import StrEnum

import msgspec

from sessions_app.engine.entries import Usage

OBLIGATION_POLICY = 1
"""Version of the rule by which lines of a person must be kept."""


class ReceiptMode(StrEnum):
    """Who took the facts; `archive`: nobody as was asked, and the canonical history stands for them."""

    MODEL = "model"
    MECHANICAL = "mechanical"
    ARCHIVE = "archive"
    SKIPPED = "skipped"
    ERROR = "error"

    @property
    def is_extracted(self) -> bool:
        return self in (ReceiptMode.MODEL, ReceiptMode.MECHANICAL)


class FlushResult(StrEnum):
    """What a flush came to."""

    UNKNOWN = "unknown"
    SKIPPED = "skipped"
    WRITTEN = "ok_candidates_written"
    NOTHING_FOUND = "ok_noop_no_memory"
    ARCHIVE_ONLY = "ok_archive_only"
    PARSE_FAILED = "parse_failed_archived"
    PROVIDER_FAILED = "provider_failed_archived"
    APPLY_FAILED = "apply_failed_archived"
    ARCHIVE_FAILED = "archive_failed"


class ArchiveReason(StrEnum):
    """Why the history alone stands for what was to be kept."""

    TIMEOUT = "timeout"
    MODEL_ERROR = "model_error"
    INVALID_ANSWER = "invalid_answer"
    STORE_ERROR = "store_error"
    NO_PROJECT = "no_project"


class Integrity(StrEnum):
    """Whether what was stored was found again in the store."""

    OK = "ok"
    UNVERIFIED = "unverified"
    MISSING_FACTS = "missing_facts"
    HISTORY_CHANGED = "history_changed"
    MALFORMED_RESULT = "malformed_result"


class OutputCoverage(StrEnum):
    """Whether every candidate was stored."""

    OK = "ok"
    WARNING = "coverage_warning"
    UNVERIFIABLE = "unverifiable"


class ObligationStatus(StrEnum):
    """Whether every line that had to be kept was; `backfilled`: code added what a model left out."""

    OK = "ok"
    BACKFILLED = "backfilled"
    WARNING = "coverage_warning"
    UNVERIFIABLE = "unverifiable"


class ReceiptStatus(StrEnum):
    """The word that a compaction carries of its flush. Only `pending` is not final."""

    NOT_REQUIRED = "not_required"
    PENDING = "pending"
    SAFE = "safe"
    NOTHING_FOUND = "noop_no_memory"
    ARCHIVE_ONLY = "archive_only"
    DEGRADED = "degraded_forensic"
    UNSAFE = "unsafe"  # a verdict; stored as `degraded_forensic`
    FAILED = "failed_retryable"
    REPAIRED = "repaired"
    UNKNOWN = "unknown"

    @property
    def needs_repair(self) -> bool:
        return self in (ReceiptStatus.DEGRADED, ReceiptStatus.FAILED)


class MemorySafety(StrEnum):
    """Whether a compaction may go ahead without losing what was to be kept."""

    SAFE = "safe"
    DEGRADED_ARCHIVE = "degraded_archive"  # not extracted, but the history that holds it is named and unchanged
    UNSAFE = "unsafe"
    NOT_REQUIRED = "not_required"


class SemanticMemory(StrEnum):
    """How the project's memory stands after a flush."""

    HEALTHY = "healthy"
    PENDING = "pending"
    DEGRADED = "degraded"
    FAILED = "failed"
    NOT_REQUIRED = "not_required"


class ContradictoryReceipt(ValueError):  # noqa: N818  it says what is the matter
    """A receipt that says two things which can't both be so."""


_ARCHIVED = frozenset({FlushResult.ARCHIVE_ONLY, FlushResult.PARSE_FAILED, FlushResult.PROVIDER_FAILED, FlushResult.APPLY_FAILED})
_HASH = re.compile(r"[0-9a-f]{64}")


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The outcome of one flush. The constructor raises `ContradictoryReceipt` for combinations that can't be.

    The archive is the canonical history: entries `first_index` to `last_index` (inclusive; -1 and -1 for none), whose rolling
    hash `content_hash` (hex) proves them. Ids of candidates and obligations are digests of their texts.
    """

    mode: ReceiptMode
    result_status: FlushResult
    archive_reason: ArchiveReason | None = None  # set on `archive`, and on that alone
    error: str = ""  # set on `error`, and on that alone; quotes nothing of a transcript
    session_id: str = ""
    turn_id: str = ""  # of the attempt that it belongs to
    first_index: int = -1
    last_index: int = -1
    content_hash: str = ""
    duration_ms: int = 0
    model: str = ""
    calls: int = 0  # of a model
    usage: Usage | None = None
    cost_usd: float | None = None  # of all calls, by the list price

    input_entry_count: int = 0  # messages that may state something worth keeping
    prompt_entry_count: int = 0  # of those, sent to a model
    prompt_chars: int = 0
    total_prompt_chars: int = 0
    truncated: bool = False
    truncation_policy: str = ""
    segment_count: int = 0
    redactions: int = 0

    integrity_status: Integrity = Integrity.UNVERIFIED
    stored_count: int = 0  # facts of this flush that were found in the store afterwards
    new_count: int = 0  # of those, not known to the project before

    candidate_count: int = 0
    candidate_covered_count: int = 0
    candidate_missing_ids: tuple[str, ...] = ()
    candidate_beyond_count: int = 0  # older ones that were too many for one flush
    invalid_candidate_count: int = 0
    invalid_candidate_errors: tuple[str, ...] = ()
    output_coverage_status: OutputCoverage = OutputCoverage.UNVERIFIABLE

    obligation_count: int = 0
    obligation_covered_count: int = 0
    obligation_missing_ids: tuple[str, ...] = ()
    obligation_backfilled_count: int = 0
    obligation_status: ObligationStatus = ObligationStatus.UNVERIFIABLE
    obligation_policy_version: int = OBLIGATION_POLICY

    def __post_init__(self) -> None:
        for is_so, sentence in (*_of_mode(self), *_of_numbers(self), *_of_candidates(self), *_of_obligations(self)):
            if not is_so:
                raise ContradictoryReceipt(f"A receipt can't be so: {sentence}.")

    @property
    def names_archive(self) -> bool:
        """Whether it says which entries hold what was to be kept, and proves that they are the same."""
        return bool(self.content_hash) and 0 <= self.first_index <= self.last_index


Rule = tuple[bool, str]


def _of_mode(receipt: Receipt) -> tuple[Rule, ...]:
    mode, result = receipt.mode, receipt.result_status
    is_archive, is_error = mode is ReceiptMode.ARCHIVE, mode is ReceiptMode.ERROR
    return (
        (is_archive == (receipt.archive_reason is not None), "an archive has a reason, and nothing else has"),
        (is_error == bool(receipt.error), "an error says what it was, and nothing else does"),
        (is_archive == (result in _ARCHIVED), f"{mode} does not come to {result}"),
        (not is_archive or receipt.names_archive, "an archive names its entries and their hash"),
        ((mode is ReceiptMode.SKIPPED) == (result is FlushResult.SKIPPED), f"{mode} does not come to {result}"),
        (not is_error or result in (FlushResult.UNKNOWN, FlushResult.ARCHIVE_FAILED), f"an error does not come to {result}"),
        (result is not FlushResult.ARCHIVE_FAILED or is_error, "a history that changed is an error"),
        (
            not mode.is_extracted or result in (FlushResult.WRITTEN, FlushResult.NOTHING_FOUND, FlushResult.UNKNOWN),
            f"{mode} does not come to {result}",
        ),
        (mode is not ReceiptMode.MODEL or receipt.calls > 0, "no model answers without a call"),
        (mode is not ReceiptMode.MECHANICAL or receipt.calls == 0, "code alone calls no model"),
    )


def _of_numbers(receipt: Receipt) -> tuple[Rule, ...]:
    numbers = (value for value in msgspec.structs.astuple(receipt) if isinstance(value, int))
    is_range = (receipt.first_index, receipt.last_index) == (-1, -1) or 0 <= receipt.first_index <= receipt.last_index
    return (
        (all(number >= -1 for number in numbers), "a number is negative"),
        (is_range, "its range ends before it begins"),
        (not receipt.content_hash or _HASH.fullmatch(receipt.content_hash) is not None, "its hash is none"),
        (receipt.prompt_chars <= receipt.total_prompt_chars, "more was sent than there is"),
        (receipt.prompt_entry_count <= receipt.input_entry_count, "more entries were sent than there are"),
        (receipt.truncated == bool(receipt.truncation_policy), "what was left out was so by a rule, and nothing else was"),
        (receipt.new_count <= receipt.stored_count, "more is new than is stored"),
    )


def _of_candidates(receipt: Receipt) -> tuple[Rule, ...]:
    missing, result = len(receipt.candidate_missing_ids), receipt.result_status
    coverage, is_ok = receipt.output_coverage_status, receipt.integrity_status is Integrity.OK
    return (
        (receipt.candidate_covered_count + missing == receipt.candidate_count, "candidates are covered or missing"),
        (coverage is not OutputCoverage.OK or not missing, "its coverage is whole, and something is missing"),
        (coverage is not OutputCoverage.WARNING or missing > 0, "its coverage warns, and nothing is missing"),
        (result is not FlushResult.WRITTEN or receipt.candidate_count > 0, "candidates were written, and there were none"),
        (result is not FlushResult.NOTHING_FOUND or receipt.candidate_count == 0, "nothing was found, and there are candidates"),
        (len(receipt.invalid_candidate_errors) <= receipt.invalid_candidate_count, "more errors than invalid candidates"),
        (not is_ok or receipt.stored_count >= receipt.candidate_covered_count, "what is covered is not in the store"),
        (not is_ok or receipt.mode is not ReceiptMode.ERROR, "an error leaves nothing verified"),
    )


def _of_obligations(receipt: Receipt) -> tuple[Rule, ...]:
    missing, backfilled, status = len(receipt.obligation_missing_ids), receipt.obligation_backfilled_count, receipt.obligation_status
    return (
        (receipt.obligation_covered_count + missing == receipt.obligation_count, "obligations are covered or missing"),
        (backfilled <= receipt.obligation_covered_count, "more was added than is covered"),
        (status is not ObligationStatus.OK or (not missing and not backfilled), "obligations are met, and some are not"),
        (
            status is not ObligationStatus.BACKFILLED or (backfilled > 0 and not missing),
            "obligations were added, and none was or some are missing",
        ),
        (status is not ObligationStatus.WARNING or missing > 0, "obligations warn, and none is missing"),
    )


def is_safe(receipt: Receipt) -> bool:
    """Whether everything that was to be kept is in the store, and was found there. No model is needed for that."""
    obligations_met = not receipt.obligation_count or (
        receipt.obligation_status in (ObligationStatus.OK, ObligationStatus.BACKFILLED) and not receipt.obligation_missing_ids
    )
    return (
        receipt.mode.is_extracted
        and receipt.result_status is FlushResult.WRITTEN
        and receipt.stored_count >= 1
        and receipt.integrity_status is Integrity.OK
        and receipt.output_coverage_status is OutputCoverage.OK
        and not receipt.invalid_candidate_count
        and not receipt.candidate_missing_ids
        and obligations_met
    )


def is_nothing(receipt: Receipt) -> bool:
    """Whether it looked at everything and found nothing worth keeping."""
    return receipt.result_status is FlushResult.NOTHING_FOUND and not receipt.invalid_candidate_count and not receipt.obligation_count


def safety_of(receipt: Receipt | None) -> MemorySafety:
    """What `block` decides by. None: no receipt came in time."""
    if receipt is None:
        return MemorySafety.UNSAFE
    if receipt.mode is ReceiptMode.SKIPPED:
        return MemorySafety.NOT_REQUIRED
    if is_safe(receipt) or is_nothing(receipt):
        return MemorySafety.SAFE
    # What was not extracted as it should be still stands in the canonical history, which a compaction never changes.
    return MemorySafety.DEGRADED_ARCHIVE if receipt.mode is ReceiptMode.ARCHIVE else MemorySafety.UNSAFE


def is_acceptable(receipt: Receipt | None) -> bool:
    """Whether a compaction may go ahead under `block`."""
    return safety_of(receipt) is not MemorySafety.UNSAFE


def status_of(receipt: Receipt | None) -> ReceiptStatus:
    """The final word for a receipt; `unknown` for none."""
    if receipt is None:
        return ReceiptStatus.UNKNOWN
    if receipt.mode is ReceiptMode.SKIPPED:
        return ReceiptStatus.NOT_REQUIRED
    if receipt.mode is ReceiptMode.ERROR:
        return ReceiptStatus.FAILED
    if is_safe(receipt):
        return ReceiptStatus.SAFE
    if is_nothing(receipt):
        return ReceiptStatus.NOTHING_FOUND
    if receipt.result_status is FlushResult.ARCHIVE_ONLY:
        return ReceiptStatus.ARCHIVE_ONLY
    return ReceiptStatus.DEGRADED if receipt.mode is ReceiptMode.ARCHIVE else ReceiptStatus.UNSAFE


def stored_status(receipt: Receipt | None) -> ReceiptStatus:
    """The same as it is stored: an unsafe receipt is kept as degraded, and waits for its repair."""
    status = status_of(receipt)
    return ReceiptStatus.DEGRADED if status is ReceiptStatus.UNSAFE else status


def semantic_status(status: ReceiptStatus) -> SemanticMemory:
    """How the project's memory stands after a flush of this status."""
    if status in (ReceiptStatus.SAFE, ReceiptStatus.NOTHING_FOUND, ReceiptStatus.REPAIRED):
        return SemanticMemory.HEALTHY
    if status is ReceiptStatus.PENDING:
        return SemanticMemory.PENDING
    if status in (ReceiptStatus.NOT_REQUIRED, ReceiptStatus.ARCHIVE_ONLY):
        return SemanticMemory.NOT_REQUIRED
    return SemanticMemory.DEGRADED if status in (ReceiptStatus.DEGRADED, ReceiptStatus.UNSAFE) else SemanticMemory.FAILED
