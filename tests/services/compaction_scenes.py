"""Sessions that a compaction can do something with, and the policy that makes one slow."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from django.db import connection
from django.db.models import Model

from sessions_app.engine import view
from sessions_app.engine.entries import Entry
from sessions_app.models import Compaction, Event, PolicyValue, Session
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story
from tests.stored import append_entries, store_session

Row = TypeVar("Row", bound=Model)
WINDOW = 8_000


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


def make_slow(session: Session, delay_s: float = 30.0) -> None:
    """Every summary of this session takes so long."""
    set_policy(session, summarisers=["scripted"], scripted_delay_s=delay_s)


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


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
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
