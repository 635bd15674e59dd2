"""Made-up values for the style guide: one of each state that a component can be in."""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sessions_app.engine.terms import Fate, Origin, Outcome, Scope
from sessions_app.models import SessionKind, SessionStatus
from sessions_app.selectors.keyset import Position
from sessions_app.selectors.session_filters import Choice, FilterChoices
from sessions_app.selectors.session_list import Meter, SessionRow


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
    )


def _row(
    status: SessionStatus, title: str, meter: Meter, now: datetime, *, chunk: tuple[int, int] | None = None, failures: int = 0
) -> SessionRow:
    return SessionRow(
        id=uuid.uuid5(uuid.NAMESPACE_URL, title), title=title, agent="claude-code", model="claude-opus-4-5-20251101",
        kind=SessionKind.IMPORTED, status=status, project="timetables", labels=("importer",), meter=meter, entries=1_204,
        compactions=3, active_at=now - timedelta(minutes=4), chunk=chunk, failures=failures, warnings=failures,
    )  # fmt: skip
