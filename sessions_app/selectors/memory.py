"""The memory of a project as its page and its command show it, and a receipt in words."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db.models import Count, Q, QuerySet

from sessions_app.engine.flush import ArchiveReason, MemorySafety, Receipt, ReceiptMode, ReceiptStatus, safety_of
from sessions_app.engine.terms import MemoryKind
from sessions_app.models import Compaction, MemoryFact, MemoryFlush, Project, short
from sessions_app.selectors.session_filters import Choice, FilterChoices

PAGE_FACTS = 100
MOST_FLUSHES = 30
MOST_ENTRIES = 5
"""Entries of one fact that are linked."""

_TO_REPAIR = (ReceiptStatus.FAILED, ReceiptStatus.DEGRADED)


@dataclass(frozen=True)
class MemoryFilters:
    """What of a memory is shown; empty: all of it."""

    kind: str = ""
    q: str = ""
    session: uuid.UUID | None = None
    before: uuid.UUID | None = None  # the fact behind which the page begins


@dataclass(frozen=True)
class FactRow:
    """One fact. `session_title` is empty where the session is gone, and with it the entries."""

    id: uuid.UUID
    kind: str
    text: str
    session_id: uuid.UUID | None
    session_title: str
    entries: tuple[int, ...]
    more_entries: int
    author: str
    by_model: bool
    created_at: datetime

    @property
    def short_id(self) -> str:
        return short(self.id)


@dataclass(frozen=True)
class ReceiptView:
    """A receipt for people. `lines` are (name, value); `tone` is good, warn, bad or empty."""

    status: str
    tone: str
    words: str
    lines: tuple[tuple[str, str], ...]
    project_id: uuid.UUID | None
    facts: int

    @property
    def needs_repair(self) -> bool:
        return self.status in _TO_REPAIR

    @property
    def is_pending(self) -> bool:
        return self.status == ReceiptStatus.PENDING


@dataclass(frozen=True)
class FlushRow:
    """A flush that is under way, or waits for its repair."""

    compaction_id: uuid.UUID
    attempt: int
    session_id: uuid.UUID
    session_title: str
    started_at: datetime
    tries: int
    retry_at: datetime | None
    receipt: ReceiptView


@dataclass(frozen=True)
class MemoryPage:
    """Facts newest first; `older` is the fact behind which older ones lie. `total` counts all that the filters let through."""

    project: Project
    rows: tuple[FactRow, ...]
    total: int
    forgotten: int
    kinds: FilterChoices
    flushes: tuple[FlushRow, ...]
    older: uuid.UUID | None


def project_of(project_id: uuid.UUID) -> Project | None:
    """A project by its id."""
    return Project.objects.filter(pk=project_id).first()


def projects_like(text: str) -> list[Project]:
    """Projects with this name, key or id, else those whose name differs only in its capitals; a name need not be unique. At most ten."""
    try:
        return list(Project.objects.filter(pk=uuid.UUID(text)))
    except ValueError:
        exact = Project.objects.filter(Q(name=text) | Q(key=text))
        return list(exact.order_by("key")[:10]) or list(Project.objects.filter(name__iexact=text).order_by("key")[:10])


def project_names() -> list[str]:
    """Names of the projects that there are, in their order; at most ten."""
    return list(Project.objects.order_by("name").values_list("name", flat=True).distinct()[:10])


def memory_page(project: Project, filters: MemoryFilters) -> MemoryPage:
    """A page of a project's memory; five queries."""
    held = MemoryFact.objects.filter(project=project, forgotten_at__isnull=True)
    counts = {kind: number for kind, number in held.values_list("kind").annotate(number=Count("pk")) if number}
    chosen = _chosen(held, filters)
    found = list(_rows(chosen, filters.before)[: PAGE_FACTS + 1])
    return MemoryPage(
        project=project,
        rows=tuple(_fact(fact) for fact in found[:PAGE_FACTS]),
        total=chosen.count(),
        forgotten=MemoryFact.objects.filter(project=project, forgotten_at__isnull=False).count(),
        kinds=FilterChoices(
            name="kind",
            label="Kind",
            chosen=filters.kind,
            offered=tuple(Choice(kind.value, f"{kind.value} ({counts[kind.value]:,})") for kind in MemoryKind if kind.value in counts),
        ),
        flushes=tuple(_flushes(project)),
        older=found[PAGE_FACTS - 1].pk if len(found) > PAGE_FACTS else None,
    )


def fact_of(project: Project, fact_id: uuid.UUID) -> FactRow | None:
    """One fact of a project; None for one that is forgotten."""
    found = _rows(MemoryFact.objects.filter(project=project, forgotten_at__isnull=True, pk=fact_id), None).first()
    return _fact(found) if found else None


def all_facts(project: Project, filters: MemoryFilters, limit: int) -> list[FactRow]:
    """Facts newest first, at most so many; 0 for all. One query."""
    rows = _rows(_chosen(MemoryFact.objects.filter(project=project, forgotten_at__isnull=True), filters), filters.before)
    return [_fact(fact) for fact in (rows[:limit] if limit else rows)]


def facts_like(text: str) -> list[uuid.UUID]:
    """Ids of facts that are held and are this, or end or begin so; at most ten."""
    digits = text.strip().lower().replace("-", "")
    if not 6 <= len(digits) <= 32 or not all(letter in "0123456789abcdef" for letter in digits):
        return []
    held = MemoryFact.objects.filter(forgotten_at__isnull=True).order_by("pk").values_list("pk", flat=True)
    if len(digits) == 32:
        return list(held.filter(pk=uuid.UUID(hex=digits)))
    return [pk for pk in held.iterator() if pk.hex.endswith(digits) or pk.hex.startswith(digits)][:10]


def repairable(project: Project | None = None) -> list[uuid.UUID]:
    """Attempts whose flush is failed or degraded, the oldest first; of one project, or of all."""
    rows = MemoryFlush.objects.filter(status__in=_TO_REPAIR)
    if project is not None:
        rows = rows.filter(session__project=project)
    return list(rows.order_by("started_at").values_list("pk", flat=True))


def _chosen(held: QuerySet[MemoryFact], filters: MemoryFilters) -> QuerySet[MemoryFact]:
    if filters.kind:
        held = held.filter(kind=filters.kind)
    if filters.session:
        held = held.filter(session_id=filters.session)
    return held.filter(text__icontains=filters.q) if filters.q else held


def _rows(chosen: QuerySet[MemoryFact], before: uuid.UUID | None) -> QuerySet[MemoryFact]:
    rows = chosen.select_related("session").only(*_COLUMNS).order_by("-id")
    return rows.filter(pk__lt=before) if before else rows


_COLUMNS = ("kind", "text", "session__title", "entry_indexes", "author", "by_model", "created_at")


def _fact(fact: MemoryFact) -> FactRow:
    entries = fact.entry_indexes if fact.session_id else []
    return FactRow(
        id=fact.pk,
        kind=fact.kind,
        text=fact.text,
        session_id=fact.session_id,
        session_title=fact.session.title if fact.session else "",
        entries=tuple(entries[:MOST_ENTRIES]),
        more_entries=max(0, len(entries) - MOST_ENTRIES),
        author=fact.author,
        by_model=fact.by_model,
        created_at=fact.created_at,
    )


def _flushes(project: Project) -> Sequence[FlushRow]:
    rows = MemoryFlush.objects.filter(session__project=project, status__in=(*_TO_REPAIR, ReceiptStatus.PENDING))
    found = rows.select_related("session", "compaction").order_by("-started_at").only(
        *("status", "receipt", "first_index", "last_index", "mode", "started_at", "tries", "retry_at", "project_id"),
        *("session__title", "compaction__attempt"),
    )  # fmt: skip
    return [
        FlushRow(
            compaction_id=flush.pk,
            attempt=flush.compaction.attempt,
            session_id=flush.session_id,
            session_title=flush.session.title,
            started_at=flush.started_at,
            tries=flush.tries,
            retry_at=flush.retry_at,
            receipt=view_of(flush),
        )
        for flush in found[:MOST_FLUSHES]
    ]


def receipt_of(compaction: Compaction) -> ReceiptView | None:
    """The receipt of an attempt that was read with its `memory_flush`; None where no flush was due. No query."""
    flush = getattr(compaction, "memory_flush", None)
    return view_of(flush) if flush else None


_TONES = {
    ReceiptStatus.SAFE: "good",
    ReceiptStatus.NOTHING_FOUND: "good",
    ReceiptStatus.REPAIRED: "good",
    ReceiptStatus.DEGRADED: "warn",
    ReceiptStatus.FAILED: "bad",
}
_REASONS = {
    ArchiveReason.TIMEOUT: "it took longer than it may",
    ArchiveReason.MODEL_ERROR: "the model gave no answer",
    ArchiveReason.INVALID_ANSWER: "the model's answer could not be read",
    ArchiveReason.STORE_ERROR: "the database did not take it",
    ArchiveReason.NO_PROJECT: "the session belongs to no project",
}


def view_of(flush: MemoryFlush) -> ReceiptView:
    """A flush as people read it; no query."""
    receipt = msgspec.convert(flush.receipt, Receipt) if flush.receipt else None
    status = ReceiptStatus(flush.status)
    return ReceiptView(
        status=status,
        tone=_TONES.get(status, ""),
        words=_words(status, receipt),
        lines=tuple(_lines(flush, receipt)),
        project_id=flush.project_id,
        facts=receipt.stored_count if receipt else 0,
    )


def _words(status: ReceiptStatus, receipt: Receipt | None) -> str:
    """What became of it, and what is to be done, in a sentence or two."""
    if status is ReceiptStatus.PENDING or receipt is None:
        return "Facts of these entries are being kept. The receipt stands here as soon as that has ended."
    kept = f"{receipt.stored_count:,} fact{'' if receipt.stored_count == 1 else 's'}"
    known = "" if receipt.new_count == receipt.stored_count else f", {receipt.stored_count - receipt.new_count:,} known before"
    said = {
        ReceiptStatus.SAFE: f"{kept} kept in the project's memory{known}, each found there again.",
        ReceiptStatus.REPAIRED: f"At another try: {kept} kept in the project's memory{known}.",
        ReceiptStatus.NOTHING_FOUND: "All was looked at, and nothing was worth keeping beyond the session.",
        ReceiptStatus.NOT_REQUIRED: "It was called off together with its attempt.",
        ReceiptStatus.FAILED: f"Nothing was kept: {receipt.error}. The history still holds everything; repair it to try again.",
    }
    if status in said:
        return said[status]
    why = _REASONS[receipt.archive_reason] if receipt.archive_reason else "not everything that was found is in the store as it should be"
    if status is ReceiptStatus.ARCHIVE_ONLY:
        return f"The history alone stands for these entries: {why}."
    return f"{kept} kept{known}, but not as it should be: {why}. The history still holds everything; repair it to try again."


_SAFETY = {
    MemorySafety.SAFE: "may be compacted",
    MemorySafety.DEGRADED_ARCHIVE: "may be compacted, since the history is the archive",
    MemorySafety.UNSAFE: "is not compacted",
    MemorySafety.NOT_REQUIRED: "nothing has to be kept",
}
_BY = {ReceiptMode.MECHANICAL: "code, no model", ReceiptMode.ARCHIVE: "the history itself"}


def _lines(flush: MemoryFlush, receipt: Receipt | None) -> Sequence[tuple[str, str]]:
    entries = f"{flush.first_index:,} to {flush.last_index:,}"
    lines = [("Policy", flush.mode.replace("_", " ")), ("Entries", entries), ("Tries", str(flush.tries) if flush.tries > 1 else "")]
    if receipt is None:
        return [line for line in lines if line[1]]
    model = f"{receipt.model}, {receipt.calls} call{'' if receipt.calls == 1 else 's'}" if receipt.calls else ""
    taken = f"{receipt.candidate_count:,} found, {receipt.candidate_covered_count:,} in the store" if receipt.candidate_count else ""
    beyond = f"{receipt.candidate_beyond_count:,} older ones were too many" if receipt.candidate_beyond_count else ""
    invalid = f"{receipt.invalid_candidate_count:,} of the model's were refused" if receipt.invalid_candidate_count else ""
    due = f"{receipt.obligation_covered_count:,} of {receipt.obligation_count:,}" if receipt.obligation_count else ""
    if receipt.obligation_backfilled_count:
        due += f", {receipt.obligation_backfilled_count:,} added by code"
    measured = f"{receipt.usage.prompt:,} tokens in, {receipt.usage.output:,} out" if receipt.usage else ""
    cost = "" if receipt.cost_usd is None else f"${receipt.cost_usd:.4f} by list prices"
    removed = f"{receipt.redactions:,} removed" if receipt.redactions else ""
    sent = f"{receipt.prompt_entry_count:,} of {receipt.input_entry_count:,} messages, the newest" if receipt.truncated else ""
    lines += [
        ("Taken by", model or _BY.get(receipt.mode, "")),
        ("Facts", "; ".join(filter(None, (taken, invalid, beyond)))),
        ("Had to be kept", due),
        ("The model read", sent),
        ("Measured", measured),
        ("Cost", cost),
        ("Credentials", removed),
        ("Under block", _SAFETY[safety_of(receipt)]),
        ("Hash of the entries", receipt.content_hash[:16]),
    ]
    return [line for line in lines if line[1]]
