"""Runners as pages, commands and the API name them."""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from sessions_app.models import Runner, Session
from sessions_app.models.compaction import Compaction

PAGE_ROWS = 500
UNKNOWN_OUTCOME = "unknown_outcome"


@dataclass(frozen=True)
class RunnerRow:
    """A runner as lists show it. `tone`: good, bad or empty."""

    id: uuid.UUID
    name: str
    kind: str
    base_url: str
    credential_variable: str
    health: str
    last_error: str
    last_seen_at: datetime | None
    checked_at: datetime | None
    capabilities: tuple[str, ...]
    sessions: int

    @property
    def tone(self) -> str:
        return {"up": "good", "down": "bad"}.get(self.health, "")


@dataclass(frozen=True)
class RunnerLine:
    """What a session's page says of its runner. `undecided`: number of the attempt whose outcome there nobody knows."""

    id: uuid.UUID
    name: str
    health: str
    last_error: str
    last_seen_at: datetime | None
    external_id: str
    session_id: uuid.UUID
    undecided: int | None = None

    @property
    def tone(self) -> str:
        return {"up": "good", "down": "bad"}.get(self.health, "")


def runner_named(text: str) -> Runner | None:
    """The runner of this name or id; None when there is none. One query."""
    try:
        return Runner.objects.filter(pk=uuid.UUID(text)).first()
    except ValueError:
        return Runner.objects.filter(name=text).first() if "\0" not in text else None


def runner_with_id(runner_id: uuid.UUID) -> Runner | None:
    """The runner's row; None when there is none."""
    return Runner.objects.filter(pk=runner_id).first()


def runner_rows() -> tuple[RunnerRow, ...]:
    """All runners by name. One query."""
    return tuple(_rows(Runner.objects.annotate(bound=Count("sessions")).order_by("name")[:PAGE_ROWS]))


def runner_row(runner_id: uuid.UUID) -> RunnerRow | None:
    """One runner; None when there is none of that id."""
    return next(_rows(Runner.objects.annotate(bound=Count("sessions")).filter(pk=runner_id)), None)


def runner_line(session: Session) -> RunnerLine | None:
    """What a session's page says of its runner; None, without a query, where it has none. Two queries."""
    runner = Runner.objects.filter(pk=session.runner_id).first() if session.runner_id else None
    if runner is None:
        return None
    open_ones = Compaction.objects.filter(session_id=session.pk, reason=UNKNOWN_OUTCOME, decided_at__isnull=True)
    return RunnerLine(
        id=runner.pk,
        name=runner.name,
        health=runner.health,
        last_error=runner.last_error,
        last_seen_at=runner.last_seen_at,
        external_id=session.external_id,
        session_id=session.pk,
        undecided=open_ones.order_by("-attempt").values_list("attempt", flat=True).first(),
    )


def _rows(runners: Iterable[Runner]) -> Iterator[RunnerRow]:
    for runner in runners:
        yield RunnerRow(
            id=runner.pk,
            name=runner.name,
            kind=runner.kind,
            base_url=runner.base_url,
            credential_variable=runner.credential_variable,
            health=runner.health,
            last_error=runner.last_error,
            last_seen_at=runner.last_seen_at,
            checked_at=runner.checked_at,
            capabilities=tuple(str(one) for one in runner.capabilities),
            sessions=runner.bound,  # type: ignore[attr-defined]
        )
