"""The ledger: every attempt of a session, newest first, and one of them opened."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import Count, Exists, F, OuterRef, Q, Sum

from sessions_app.engine.counting import estimate_text
from sessions_app.engine.steps import RungReport, SummariserTry
from sessions_app.engine.terms import Lineage, Rung, SegmentKind
from sessions_app.models import Compaction, Draft, Event, Session
from sessions_app.selectors.compaction_panel import CompactionPanel, panel_of
from sessions_app.selectors.memory import ReceiptView, receipt_of
from sessions_app.selectors.retention import FactNumbers, RetentionReport, numbers_of, report_of
from sessions_app.selectors.verdicts import Evaluation, evaluation_in

PAGE_ATTEMPTS = 50
MOST_COMPARED = 100  # of the newest to choose two from
MAX_EVENTS = 200
MAX_LISTED = 30
_POLICY = "policy: "
_RUNG_WORDS = {
    Rung.CLEAR: "clear old results",
    Rung.SUMMARISE: "summarise",
    Rung.TRIM: "trim without a summary",
    Rung.EMERGENCY: "emergency view, for one request",
}
_LONG = ("summary", "policy", "mechanical_state", "instructions", "retention", "unsupported")


@dataclass(frozen=True)
class LedgerRow:
    """One attempt, closed. Widths of the two bars are of 200; 0 where the number is not known."""

    attempt: CompactionPanel
    lineage: str
    is_active: bool
    before_width: int
    after_width: int
    facts: FactNumbers | None = None


@dataclass(frozen=True)
class LedgerPage:
    """Attempts newest first. `older` is the attempt number before which older ones lie, or None."""

    rows: tuple[LedgerRow, ...]
    older: int | None
    committed: int
    attempts: int
    saved: int | None


@dataclass(frozen=True)
class StateList:
    """A list of the mechanical state, cut to what a page can hold; `total` counts all."""

    name: str
    lines: tuple[str, ...]
    total: int


@dataclass(frozen=True)
class RungLine:
    """A rung of the ladder that an attempt tried: what it made of the view, and why that was not enough."""

    rung: str
    tokens_before: int
    tokens_after: int
    entries: int
    note: str

    @property
    def name(self) -> str:
        """The rung as a person reads it."""
        return _RUNG_WORDS[Rung(self.rung)]

    @property
    def saved(self) -> int:
        return self.tokens_before - self.tokens_after


@dataclass(frozen=True)
class TriedLine:
    """One call of a summariser. `refused`: why its answer was not used; the tokens are what a provider measured."""

    summariser: str
    model: str
    chunk_index: int
    refused: str
    prompt_tokens: int | None
    answer_tokens: int | None
    cost_usd: float | None = None  # by the list price


@dataclass(frozen=True)
class AttemptDetail:
    """One attempt, opened."""

    row: LedgerRow
    summary: str
    block: str
    block_tokens: int
    boundary_index: int | None
    profile: str
    instructions: str
    standing_instructions: str
    force: bool
    policy: tuple[tuple[str, str, str], ...]
    state: tuple[StateList, ...]
    events: tuple[Event, ...]
    evaluation: Evaluation | None  # why it fired; None where a person asked
    rungs: tuple[RungLine, ...]
    tried: tuple[TriedLine, ...]
    revert_to: int  # the generation that a revert of this one leads to; 0 for the whole history
    can_be_restored: bool
    started_from: str
    report: RetentionReport | None = None
    parent_summary: str = ""  # of the checkpoint that it was built on
    has_draft: bool = False
    memory: ReceiptView | None = None  # of the flush beside it
    estimator: str = ""  # what its view was counted by

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all calls whose price is known; None where none is."""
        known = [call.cost_usd for call in self.tried if call.cost_usd is not None]
        return sum(known) if known else None

    @property
    def has_refusals(self) -> bool:
        """Whether an answer of a summariser was not used."""
        return any(call.refused for call in self.tried)


def ledger_page(session: Session, *, before: int | None = None) -> LedgerPage:
    """A page of the ledger; two queries."""
    attempts = Compaction.objects.filter(session=session)
    rows, has_older = ledger_rows(session, beyond=before, descending=True, limit=PAGE_ATTEMPTS)
    alike = Q(tokens_before_scope=F("tokens_after_scope")) & ~Q(tokens_before_scope="")
    sums = attempts.filter(generation__isnull=False).aggregate(
        committed=Count("pk"), saved=Sum(F("tokens_before") - F("tokens_after"), filter=alike)
    )
    return LedgerPage(
        rows=rows,
        older=rows[-1].attempt.attempt if has_older else None,
        committed=sums["committed"],
        attempts=session.last_attempt,
        saved=sums["saved"],
    )


def ledger_rows(session: Session, *, beyond: int | None, descending: bool, limit: int) -> tuple[tuple[LedgerRow, ...], bool]:
    """Attempts in the order of their numbers, on the far side of one, and whether there are more; one query."""
    light = Compaction.objects.filter(session=session).annotate(facts=F("retention__total"))
    light = light.select_related("parent").defer(*_LONG, *(f"parent__{name}" for name in _LONG))
    if beyond is not None:
        light = light.filter(attempt__lt=beyond) if descending else light.filter(attempt__gt=beyond)
    found = list(light.order_by("-attempt" if descending else "attempt")[: limit + 1])
    largest = max((one.tokens_before or 0 for one in found), default=0)
    return tuple(_row(session, compaction, largest) for compaction in found[:limit]), len(found) > limit


def attempt_row(session: Session, compaction_id: uuid.UUID) -> LedgerRow | None:
    """One attempt as a line of the ledger; None when the session has no such attempt. One query."""
    light = Compaction.objects.filter(session=session, pk=compaction_id).annotate(facts=F("retention__total"))
    compaction = light.select_related("parent").defer(*_LONG, *(f"parent__{name}" for name in _LONG)).first()
    return None if compaction is None else _row(session, compaction, compaction.tokens_before or 0)


def attempt_detail(session: Session, compaction_id: uuid.UUID) -> AttemptDetail | None:
    """One attempt with its summary, state, policy and events; four queries. None when the session has no such attempt."""
    found = Compaction.objects.filter(session=session, pk=compaction_id).annotate(has_draft=Exists(Draft.objects.filter(pk=OuterRef("pk"))))
    compaction = found.select_related("parent", "memory_flush").prefetch_related("segments").first()
    if compaction is None:
        return None
    segments = [segment for segment in compaction.segments.all() if segment.kind == SegmentKind.SYNTHETIC and segment.payload]
    is_checkpoint = compaction.generation is not None
    return AttemptDetail(
        row=_row(session, compaction, compaction.tokens_before or 0),
        summary=compaction.summary,
        block="\n\n".join(str(segment.payload.get("text", "")) for segment in segments if isinstance(segment.payload, dict)),
        block_tokens=sum(segment.tokens for segment in segments),
        boundary_index=compaction.boundary_index,
        profile=compaction.profile,
        instructions=compaction.instructions,
        standing_instructions=str(compaction.policy.get("values", {}).get("standing_instructions", "")),
        force=compaction.force,
        policy=_policy(compaction.policy),
        state=state_lists(compaction.mechanical_state),
        events=tuple(Event.objects.filter(compaction_id=compaction.pk).order_by("seq")[:MAX_EVENTS]),
        evaluation=evaluation_in(compaction.evaluation),
        rungs=tuple(_rung(rung) for rung in compaction.rungs),
        tried=tuple(_tried(tried) for tried in compaction.summarisers_tried),
        revert_to=(compaction.parent.generation or 0) if compaction.parent else 0,
        can_be_restored=is_checkpoint and compaction.lineage == Lineage.CONSOLE and compaction.pk != session.active_console_id,
        started_from=f"#{compaction.parent.generation}" if compaction.parent else "the whole history",
        report=report_of(compaction),
        parent_summary=compaction.parent.summary if compaction.parent else "",
        has_draft=compaction.has_draft,
        memory=receipt_of(compaction),
        estimator=compaction.estimator,
    )


def _rung(stored: dict[str, Any]) -> RungLine:
    rung = msgspec.convert(stored, RungReport)
    return RungLine(rung.rung, rung.tokens_before, rung.tokens_after, rung.entries, rung.note)


def _tried(stored: dict[str, Any]) -> TriedLine:
    tried = msgspec.convert(stored, SummariserTry)
    usage = tried.usage
    return TriedLine(
        summariser=tried.summariser,
        model=tried.model if tried.model not in tried.summariser else "",
        chunk_index=tried.chunk_index,
        refused=tried.refused,
        prompt_tokens=usage.prompt if usage else None,
        answer_tokens=usage.output if usage else None,
        cost_usd=tried.cost_usd,
    )


@dataclass(frozen=True)
class ComparedRow:
    """One fact of two attempts. `differs`: they are not the same."""

    name: str
    one: str
    other: str

    @property
    def differs(self) -> bool:
        return self.one != self.other


@dataclass(frozen=True)
class Comparison:
    """Two attempts of a session side by side, and all that could be chosen."""

    one: AttemptDetail
    other: AttemptDetail
    rows: tuple[ComparedRow, ...]
    choices: tuple[tuple[int, str], ...]

    @property
    def shown(self) -> tuple[ComparedRow, ...]:
        """What differs, and what both were; values of the policy only where they differ."""
        return tuple(row for row in self.rows if row.differs or (row.one and not row.name.startswith(_POLICY)))


def comparison(session: Session, one: int | None, other: int | None) -> Comparison | None:
    """Two attempts by their numbers; without them the last two that have a summary. None where there are no two, or no such one."""
    rows = Compaction.objects.filter(session=session).exclude(summary="").order_by("-attempt")[:MOST_COMPARED]
    known = {
        attempt: (pk, f"#{number}" if number else f"a{attempt}") for attempt, pk, number in rows.values_list("attempt", "pk", "generation")
    }
    other = other if other is not None else next((attempt for attempt in known if attempt != one), None)
    one = one if one is not None else next((attempt for attempt in known if attempt != other), None)
    if one not in known or other not in known:
        return None
    first, second = attempt_detail(session, known[one][0]), attempt_detail(session, known[other][0])
    if first is None or second is None:
        return None
    facts = [dict(_compared(detail)) for detail in (first, second)]
    told = tuple(ComparedRow(name, facts[0].get(name, ""), facts[1].get(name, "")) for name in dict.fromkeys((*facts[0], *facts[1])))
    return Comparison(first, second, told, tuple((attempt, words) for attempt, (_, words) in known.items()))


def _compared(detail: AttemptDetail) -> Iterator[tuple[str, str]]:
    attempt = detail.row.attempt
    yield "outcome", (attempt.outcome or attempt.status).replace("_", " ")
    yield "trigger", attempt.trigger.replace("_", " ")
    yield "asked for by", attempt.requested_by
    yield "built on", detail.started_from
    yield "kept from entry", "" if detail.boundary_index is None else f"{detail.boundary_index:,}"
    yield "entries folded", f"{attempt.entries_folded:,}"
    yield "entries kept", f"{attempt.entries_kept:,}"
    yield "tokens before", _scoped(attempt.tokens_before, attempt.before_scope)
    yield "tokens after", _scoped(attempt.tokens_after, attempt.after_scope)
    yield "summary, tokens", f"{estimate_text(detail.summary):,}"
    if detail.report is not None:
        total = detail.report.total
        yield "facts in the view", f"{total.in_view:,} of {total.total:,}"
        yield "facts in the summary", f"{total.by_summary:,}"
        yield "unsupported", f"{len(detail.report.unsupported):,}"
    yield "summary by", attempt.summariser or attempt.summary_source
    yield "stress", detail.instructions
    yield "stress, always", detail.standing_instructions
    for field, value, _ in detail.policy:
        yield f"{_POLICY}{field}", value


def _scoped(amount: int | None, scope: str) -> str:
    return "" if amount is None else f"{amount:,} {scope}".strip().replace("_", " ")


def request_of(session: Session, compaction_id: uuid.UUID | None) -> dict[str, Any]:
    """What an attempt was asked for, as the compact form starts with it; nothing for one that there is not.

    Its boundary is left out: what was folded since can't be folded again.
    """
    rows = Compaction.objects.filter(session=session, pk=compaction_id) if compaction_id else Compaction.objects.none()
    return dict(rows.values("instructions", "profile", "force").first() or {})


def state_lists(state: dict[str, Any]) -> tuple[StateList, ...]:
    """The mechanical state as named lists of lines, whatever its exact shape: lists, mappings and single values."""
    lists = []
    for name, value in state.items():
        lines = _lines(value)
        if lines:
            lists.append(StateList(name.replace("_", " "), tuple(lines[-MAX_LISTED:]), len(lines)))
    return tuple(lists)


def _lines(value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {_line(one)}" for key, one in value.items() if one not in (None, "", [], {})]
    if isinstance(value, list | tuple):
        return [_line(one) for one in value]
    return [str(value)] if value not in (None, "", 0, False) else []


def _line(value: object) -> str:
    if isinstance(value, dict):
        return " · ".join(str(one) for one in value.values() if one not in (None, "", [], {}, False))
    return str(value)


def _policy(snapshot: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Field, value and where it comes from, of a policy as it was."""
    values, sources = snapshot.get("values", {}), snapshot.get("sources", {})
    if not isinstance(values, dict) or not isinstance(sources, dict):
        return ()
    return tuple((str(field).replace("_", " "), _line(value), str(sources.get(field, "default"))) for field, value in values.items())


def _row(session: Session, compaction: Compaction, largest: int) -> LedgerRow:
    """A line; its bars are drawn against `largest`, the most tokens that an attempt beside it began with."""
    largest = largest or 1
    panel = panel_of(compaction)
    return LedgerRow(
        attempt=panel,
        lineage=compaction.lineage,
        is_active=compaction.pk in (session.active_console_id, session.active_agent_id),
        before_width=round(200 * (compaction.tokens_before or 0) / largest),
        after_width=round(200 * (compaction.tokens_after or 0) / largest) if panel.scopes_match else 0,
        facts=numbers_of(compaction.facts if hasattr(compaction, "facts") else compaction.retention.get("total")),
    )
