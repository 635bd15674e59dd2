"""Made-up values for the style guide: one of each state that a component can be in."""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sessions_app.engine.terms import Fate, Lineage, Origin, Outcome, Phase, Scope, SkipReason, Status, SummarySource, Trigger
from sessions_app.models import Compaction, Session, SessionKind, SessionStatus
from sessions_app.selectors.compaction_panel import panel_of
from sessions_app.selectors.keyset import Position
from sessions_app.selectors.session_filters import Choice, FilterChoices
from sessions_app.selectors.session_list import Meter, SessionRow
from sessions_app.selectors.session_page import SessionHeader, header_of


@dataclass(frozen=True)
class Named:
    """A sample, and the state that it shows."""

    name: str
    value: object


@dataclass(frozen=True)
class Samples:
    """Everything that the style guide needs."""

    meters: tuple[Named, ...]
    rows: tuple[SessionRow, ...]
    statuses: tuple[str, ...]
    outcomes: tuple[Named, ...]
    fates: tuple[Fate, ...]
    filters: tuple[FilterChoices, ...]
    position: Position
    at: datetime
    headers: tuple[Named, ...]  # one for each state of the compact button
    gauge: SessionHeader
    panels: tuple[Named, ...]


_METER = Meter(
    tokens=88_300, window=200_000, share=0.44, fill=44, trigger=80, state="", is_estimated=False,
    scope=Scope.WHOLE_REQUEST, origin=Origin.MEASURED, measured_at="",
)  # fmt: skip
_TONES = {
    Outcome.COMMITTED: "good",
    Outcome.TRIMMED: "good",
    Outcome.SKIPPED: "",
    Outcome.CANCELLED: "",
    Outcome.STALE: "warn",
    Outcome.EMERGENCY: "warn",
}
_LONG = "A title that is longer than its column, so that it is cut and shown whole on hover"


def samples() -> Samples:
    """No query."""
    now = datetime.now(UTC)
    over = replace(_METER, tokens=194_000, share=0.97, fill=97, state="is-over")
    return Samples(
        meters=(
            Named("below the trigger", _METER),
            Named("at the trigger", replace(_METER, tokens=164_500, share=0.82, fill=82, state="is-near")),
            Named("90 % and more", over),
            Named("estimated", replace(_METER, tokens=142_000, share=0.71, fill=71, is_estimated=True, origin=Origin.ESTIMATED)),
            Named("unknown", replace(_METER, tokens=None, share=None, fill=0)),
        ),
        rows=(
            _row(SessionStatus.COMPACTING, "Rewrite the timetable importer as a streaming parser", _METER, now, chunk=(3, 7)),
            _row(
                SessionStatus.IDLE,
                f"{_LONG}, {_LONG}",
                over,
                now,
                failures=3,
            ),
        ),
        statuses=tuple(SessionStatus.values),
        outcomes=tuple(Named(outcome.value, _TONES.get(outcome, "bad")) for outcome in Outcome),
        fates=tuple(Fate),
        filters=(
            FilterChoices("sample-status", "Status", (Choice("idle", "idle"),)),
            FilterChoices("sample-agent", "Agent", (Choice("codex", "Codex"),), chosen="codex"),
        ),
        position=Position(first=101, last=200, previous="before", next="after"),
        at=now - timedelta(minutes=4),
        headers=_headers(now),
        gauge=header_of(_session(), 0),
        panels=_panels(now),
    )


def _session(**values: object) -> Session:
    """A row that is stored nowhere."""
    defaults: dict[str, object] = {
        "title": "Rewrite the timetable importer as a streaming parser",
        "agent": "claude-code",
        "last_activity_at": datetime.now(UTC),
        "window": 200_000,
        "trigger_tokens": 160_000,
        "signal_tokens": 131_200,
        "signal_measured": 130_300,
        "signal_appended": 900,
        "signal_origin": Origin.MEASURED,
        "signal_scope": Scope.WHOLE_REQUEST,
        "signal_measured_at": "2026-11-30T14:02:41Z",
        "pressure": 0.656,
        "foldable_to": 41_000,
        "composition": {"block": 8_900, "results": 79_700, "text": 28_100},
    }
    return Session(**{**defaults, **values})


def _attempt(now: datetime, status: Status, **values: object) -> Compaction:
    defaults: dict[str, object] = {
        "attempt": 3,
        "lineage": Lineage.CONSOLE,
        "trigger": Trigger.MANUAL,
        "requested_by": "ana",
        "status": status,
        "requested_at": now - timedelta(seconds=50),
        "started_at": now - timedelta(seconds=48),
        "boundary_index": 236,
        "entries_folded": 114,
        "entries_kept": 22,
        "chunk_index": 3,
        "chunk_count": 7,
        "tokens_before": 164_500,
        "tokens_before_scope": Scope.VIEW,
        "tokens_before_origin": Origin.ESTIMATED,
    }
    if status not in {Status.RUNNING, Status.REQUESTED, Status.WAITING_FOR_IDLE}:
        defaults["finished_at"] = now
    return Compaction(session_id=uuid.uuid5(uuid.NAMESPACE_URL, "sample"), **{**defaults, **values})


def _headers(now: datetime) -> tuple[Named, ...]:
    running = _attempt(now, Status.RUNNING)
    return (
        Named("ready", header_of(_session(), 0)),
        Named("busy", header_of(_session(status=SessionStatus.WORKING), 0)),
        Named("unsupported", header_of(_session(unfoldable_reason=SkipReason.FEWER_THAN_THREE_ROUNDS), 0)),
        Named("running", header_of(_session(running=running), 0)),
    )


def _panels(now: datetime) -> tuple[Named, ...]:
    committed = {
        "attempt": 2,
        "generation": 2,
        "outcome": Outcome.COMMITTED,
        "tokens_after": 38_200,
        "tokens_after_scope": Scope.VIEW,
        "tokens_after_origin": Origin.ESTIMATED,
        "summary_source": SummarySource.EXTRACTIVE,
        "summariser": "extractive",
    }
    failed = {
        "attempt": 4,
        "outcome": Outcome.FAILED,
        "reason": SkipReason.WORKER_LOST,
        "explanation": "The worker ended in mid-run. Nothing was changed; ask again.",
    }
    skipped = {
        "attempt": 5,
        "outcome": Outcome.SKIPPED,
        "reason": SkipReason.NOTHING_TO_FOLD,
        "explanation": "All of it fits into what is kept. Nothing was changed.",
    }
    return (
        Named("running", panel_of(_attempt(now, Status.RUNNING, phase=Phase.SUMMARISE))),
        Named("committed", panel_of(_attempt(now, Status.COMPLETED, **committed))),
        Named("failed", panel_of(_attempt(now, Status.FAILED, **failed))),
        Named("skipped", panel_of(_attempt(now, Status.SKIPPED, **skipped))),
    )


def _row(
    status: SessionStatus, title: str, meter: Meter, now: datetime, *, chunk: tuple[int, int] | None = None, failures: int = 0
) -> SessionRow:
    return SessionRow(
        id=uuid.uuid5(uuid.NAMESPACE_URL, title), title=title, agent="claude-code", model="claude-opus-4-5-20251101",
        kind=SessionKind.IMPORTED, status=status, project="timetables", labels=("importer",), meter=meter, entries=1_204,
        compactions=3, active_at=now - timedelta(minutes=4), chunk=chunk, failures=failures, warnings=failures,
    )  # fmt: skip
