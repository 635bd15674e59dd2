"""Sessions that a compaction can do something with, and the policy that makes one slow."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest
from django.db import connection
from django.db.models import Model

from sessions_app.engine import view
from sessions_app.engine.entries import Entry
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.steps import ShouldStop, Stop, Stopped, SummaryAnswer, SummaryRequest
from sessions_app.models import Compaction, Event, PolicyValue, Session
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.keeper import KeeperThread
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story
from tests.stored import append_entries, store_session

Row = TypeVar("Row", bound=Model)
WINDOW = 8_000
PATIENCE_S = 60.0
"""So long is waited for what must come: a busy machine takes its time, and where it comes the patience costs nothing."""


def story(turns: int, start: int = 0) -> list[Entry]:
    """`turns` turns with a call, its result and an answer each; about 300 tokens a turn."""
    told = Story()
    for turn in range(start, start + turns):
        told.user(f"Turn {turn}: please look into module_{turn}.py and say why the build of step {turn} fails.")
        told.calls(f"call-{turn}").result(f"call-{turn}", words=f"module_{turn}.py:{turn}: error: name 'x{turn}' is not defined\n" * 12)
        told.says(f"The build of step {turn} fails because x{turn} is missing; I defined it in module_{turn}.py. " * 3)
    return told.entries


def long_session(turns: int = 12, **columns: object) -> Session:
    """A session with a small window, so that compacting it does something."""
    session = store_session(story(turns), **({"window_override": WINDOW} | columns))
    signals.refresh(session.pk)
    session.refresh_from_db()
    return session


def grow(session: Session, turns: int = 1) -> None:
    """Appends turns behind what the session has, as a growing file would."""
    session.refresh_from_db()
    first = session.entry_count
    told = enumerate(story(turns, start=first), start=first)
    moved = [msgspec.structs.replace(entry, index=index, source_id=f"e{index}") for index, entry in told]
    append_entries(session, moved)


def set_policy(session: Session, **values: object) -> None:
    for field, value in values.items():
        PolicyValue.objects.update_or_create(scope="session", scope_id=str(session.pk), field=field, defaults={"value": value})


def make_slow(session: Session, delay_s: float = 60.0) -> None:
    """Every summary of this session takes so long. What must still run when a test looks is held by `HeldSummaries` instead."""
    set_policy(session, summarisers=["scripted"], scripted_delay_s=delay_s)


class HeldSummaries:
    """Scripted summaries of this process that come when they are let, so that no test has to be faster than they are."""

    def __init__(self) -> None:
        self._let = threading.Semaphore(0)
        self._are_all_let = threading.Event()

    def let(self, count: int = 1) -> None:
        """Lets the next ones come."""
        self._let.release(count)

    def let_all(self) -> None:
        self._are_all_let.set()

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        """In place of the scripted summariser's. Raises `Stopped`."""
        while not self._are_all_let.is_set() and not self._let.acquire(timeout=0.02):
            if (stop := should_stop()) is not None:
                raise Stopped(stop)
        return ExtractiveSummariser().summarise(request, should_stop)


def looks_of(kind: type[KeeperThread], monkeypatch: pytest.MonkeyPatch) -> list[Stop | None]:
    """What keepers of this kind hear at each of their looks, from now on: promptness counted, where a clock would depend on the machine."""
    heard: list[Stop | None] = []
    look = kind._look

    def listen(keeper: KeeperThread) -> Stop | None:
        found = look(keeper)
        heard.append(found)
        return found

    monkeypatch.setattr(kind, "_look", listen)
    return heard


def run_in_thread(compaction_id: uuid.UUID) -> threading.Thread:
    """Runs an attempt as a worker's thread would."""

    def work() -> None:
        try:
            run_compaction(compaction_id)
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_until(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "the state that the test waits for did not come about"
        time.sleep(0.02)


def fresh(row: Row) -> Row:
    """The row as it is stored now; the same object."""
    row.refresh_from_db()
    return row


def steps_of(compaction: Compaction) -> list[tuple[int | None, str, Any]]:
    """Number, type and status of the attempt's five-step events, in order."""
    events = Event.objects.filter(compaction_id=compaction.pk, step__isnull=False).order_by("seq")
    return [(event.step, event.type, event.payload["status"]) for event in events]


def view_hash(session: Session) -> str:
    return view.view_hash(plans.load_view(fresh(session)))


def history_digest(session: Session) -> list[tuple[object, ...]]:
    """Everything that the entries say, in order."""
    rows = EntryRow.objects.filter(session=session).order_by("index")
    return list(rows.values_list("index", "role", "kind", "parts", "tokens", "prefix_hash"))
