"""Receipts of a flush: what can't be said at once, what is safe, and which word each comes to."""

import msgspec
import pytest

from sessions_app.engine.entries import Usage
from sessions_app.engine.flush import (
    ArchiveReason,
    ContradictoryReceipt,
    FlushResult,
    Integrity,
    MemorySafety,
    ObligationStatus,
    OutputCoverage,
    Receipt,
    ReceiptMode,
    ReceiptStatus,
    SemanticMemory,
    is_acceptable,
    is_safe,
    safety_of,
    semantic_status,
    status_of,
    stored_status,
)

HASH = "a" * 64
PLACE = {"session_id": "s", "turn_id": "t", "first_index": 0, "last_index": 9, "content_hash": HASH}
STORED = PLACE | {
    "mode": ReceiptMode.MECHANICAL,
    "result_status": FlushResult.WRITTEN,
    "integrity_status": Integrity.OK,
    "stored_count": 3,
    "new_count": 2,
    "candidate_count": 3,
    "candidate_covered_count": 3,
    "output_coverage_status": OutputCoverage.OK,
    "obligation_count": 2,
    "obligation_covered_count": 2,
    "obligation_status": ObligationStatus.OK,
}
MODEL = STORED | {"mode": ReceiptMode.MODEL, "model": "m", "calls": 1}
ARCHIVE = PLACE | {
    "mode": ReceiptMode.ARCHIVE,
    "result_status": FlushResult.PROVIDER_FAILED,
    "archive_reason": ArchiveReason.MODEL_ERROR,
}
ERROR = PLACE | {"mode": ReceiptMode.ERROR, "result_status": FlushResult.UNKNOWN, "error": "ValueError"}
SKIPPED = PLACE | {"mode": ReceiptMode.SKIPPED, "result_status": FlushResult.SKIPPED}
NOTHING = PLACE | {
    "mode": ReceiptMode.MECHANICAL,
    "result_status": FlushResult.NOTHING_FOUND,
    "integrity_status": Integrity.OK,
    "output_coverage_status": OutputCoverage.OK,
    "obligation_status": ObligationStatus.OK,
}


@pytest.mark.parametrize("said", [STORED, MODEL, ARCHIVE, ERROR, SKIPPED, NOTHING])
def test_what_can_be_so_is_taken_and_survives_its_storage(said):
    receipt = Receipt(**said)
    assert msgspec.convert(msgspec.to_builtins(receipt), Receipt) == receipt


@pytest.mark.parametrize(
    ("said", "change"),
    [
        (STORED, {"archive_reason": ArchiveReason.TIMEOUT}),
        (ARCHIVE, {"archive_reason": None}),
        (ARCHIVE, {"result_status": FlushResult.WRITTEN}),
        (ARCHIVE, {"content_hash": ""}),
        (ARCHIVE, {"first_index": -1, "last_index": -1}),
        (STORED, {"result_status": FlushResult.ARCHIVE_ONLY}),
        (STORED, {"error": "broken"}),
        (ERROR, {"error": ""}),
        (ERROR, {"result_status": FlushResult.WRITTEN}),
        (ERROR, {"integrity_status": Integrity.OK}),
        (STORED, {"result_status": FlushResult.ARCHIVE_FAILED}),
        (SKIPPED, {"result_status": FlushResult.UNKNOWN}),
        (STORED, {"result_status": FlushResult.SKIPPED}),
        (MODEL, {"calls": 0}),
        (STORED, {"calls": 1}),
        (STORED, {"stored_count": -2}),
        (STORED, {"first_index": 9, "last_index": 0}),
        (STORED, {"content_hash": "no hash"}),
        (MODEL, {"prompt_chars": 5, "total_prompt_chars": 4}),
        (MODEL, {"prompt_entry_count": 5, "input_entry_count": 4}),
        (MODEL, {"truncated": True}),
        (MODEL, {"truncation_policy": "newest_segments"}),
        (STORED, {"new_count": 4}),
        (STORED, {"candidate_missing_ids": ("x",)}),
        (STORED, {"candidate_count": 4, "candidate_missing_ids": ("x",)}),
        (STORED, {"output_coverage_status": OutputCoverage.WARNING}),
        (STORED, {"candidate_count": 0, "candidate_covered_count": 0}),
        (NOTHING, {"candidate_count": 1, "candidate_covered_count": 1}),
        (MODEL, {"invalid_candidate_errors": ("item 1 says nothing",)}),
        (STORED, {"stored_count": 2}),
        (STORED, {"obligation_missing_ids": ("x",)}),
        (STORED, {"obligation_backfilled_count": 3, "obligation_status": ObligationStatus.BACKFILLED}),
        (STORED, {"obligation_backfilled_count": 1}),
        (STORED, {"obligation_status": ObligationStatus.BACKFILLED}),
        (STORED, {"obligation_status": ObligationStatus.WARNING}),
    ],
)
def test_two_things_that_can_not_both_be_so_are_refused(said, change):
    with pytest.raises(ContradictoryReceipt, match="A receipt can't be so: "):
        Receipt(**(said | change))


MISSING = {
    "stored_count": 2,
    "candidate_covered_count": 2,
    "candidate_missing_ids": ("x",),
    "output_coverage_status": OutputCoverage.WARNING,
    "integrity_status": Integrity.MISSING_FACTS,
}
LOST = {"obligation_covered_count": 1, "obligation_missing_ids": ("x",), "obligation_status": ObligationStatus.WARNING}
BACKFILLED = {"obligation_backfilled_count": 1, "obligation_status": ObligationStatus.BACKFILLED}
NO_OBLIGATIONS = {"obligation_count": 0, "obligation_covered_count": 0, "obligation_status": ObligationStatus.UNVERIFIABLE}
INVALID = {"invalid_candidate_count": 1, "invalid_candidate_errors": ("item 2 says nothing",)}
TABLE = [
    # (what it says, what it comes to, how safe that is)
    (STORED, ReceiptStatus.SAFE, MemorySafety.SAFE),
    (MODEL, ReceiptStatus.SAFE, MemorySafety.SAFE),
    (MODEL | {"usage": Usage(input=1, output=1)}, ReceiptStatus.SAFE, MemorySafety.SAFE),
    (MODEL | BACKFILLED, ReceiptStatus.SAFE, MemorySafety.SAFE),
    (STORED | NO_OBLIGATIONS, ReceiptStatus.SAFE, MemorySafety.SAFE),
    (NOTHING, ReceiptStatus.NOTHING_FOUND, MemorySafety.SAFE),
    (MODEL | MISSING, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | {"integrity_status": Integrity.UNVERIFIED}, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | {"integrity_status": Integrity.MALFORMED_RESULT}, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | {"output_coverage_status": OutputCoverage.UNVERIFIABLE}, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | INVALID, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (NOTHING | MODEL | {"result_status": FlushResult.UNKNOWN}, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | LOST, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (MODEL | {"obligation_status": ObligationStatus.UNVERIFIABLE}, ReceiptStatus.UNSAFE, MemorySafety.UNSAFE),
    (ARCHIVE, ReceiptStatus.DEGRADED, MemorySafety.DEGRADED_ARCHIVE),
    (ARCHIVE | {"result_status": FlushResult.PARSE_FAILED}, ReceiptStatus.DEGRADED, MemorySafety.DEGRADED_ARCHIVE),
    (ARCHIVE | {"result_status": FlushResult.APPLY_FAILED}, ReceiptStatus.DEGRADED, MemorySafety.DEGRADED_ARCHIVE),
    (ARCHIVE | {"result_status": FlushResult.ARCHIVE_ONLY}, ReceiptStatus.ARCHIVE_ONLY, MemorySafety.DEGRADED_ARCHIVE),
    (ERROR, ReceiptStatus.FAILED, MemorySafety.UNSAFE),
    (ERROR | {"result_status": FlushResult.ARCHIVE_FAILED}, ReceiptStatus.FAILED, MemorySafety.UNSAFE),
    (SKIPPED, ReceiptStatus.NOT_REQUIRED, MemorySafety.NOT_REQUIRED),
]


@pytest.mark.parametrize(("said", "status", "safety"), TABLE)
def test_each_receipt_comes_to_one_word_and_one_verdict(said, status, safety):
    receipt = Receipt(**said)
    assert (status_of(receipt), safety_of(receipt)) == (status, safety)
    assert is_safe(receipt) is (status is ReceiptStatus.SAFE)
    assert is_acceptable(receipt) is (safety is not MemorySafety.UNSAFE)


def test_an_unsafe_receipt_is_stored_as_degraded_and_waits_for_its_repair_with_those_that_failed():
    stored = {status_of(Receipt(**said)): stored_status(Receipt(**said)) for said, *_ in TABLE}
    assert stored[ReceiptStatus.UNSAFE] is ReceiptStatus.DEGRADED
    assert {status for status in ReceiptStatus if status.needs_repair} == {ReceiptStatus.DEGRADED, ReceiptStatus.FAILED}
    assert all(before == after for before, after in stored.items() if before is not ReceiptStatus.UNSAFE)


def test_without_a_receipt_nothing_is_safe():
    assert (status_of(None), safety_of(None), is_acceptable(None)) == (ReceiptStatus.UNKNOWN, MemorySafety.UNSAFE, False)


def test_how_the_memory_stands_after_each_status():
    stands = {status: semantic_status(status) for status in ReceiptStatus}
    assert {status for status, one in stands.items() if one is SemanticMemory.HEALTHY} == {
        ReceiptStatus.SAFE,
        ReceiptStatus.NOTHING_FOUND,
        ReceiptStatus.REPAIRED,
    }
    assert stands[ReceiptStatus.PENDING] is SemanticMemory.PENDING
    assert stands[ReceiptStatus.DEGRADED] is SemanticMemory.DEGRADED
    assert stands[ReceiptStatus.FAILED] is SemanticMemory.FAILED
    assert stands[ReceiptStatus.ARCHIVE_ONLY] is stands[ReceiptStatus.NOT_REQUIRED] is SemanticMemory.NOT_REQUIRED
