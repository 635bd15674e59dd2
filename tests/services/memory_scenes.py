"""Sessions with something worth keeping, and flushes at every moment of their lives."""

import threading

import msgspec

from sessions_app.engine.entries import Entry
from sessions_app.engine.flush import Receipt
from sessions_app.engine.steps import Stopped
from sessions_app.models import Compaction, MemoryFact, MemoryFlush, Project, Session
from sessions_app.services import memory_beside, memory_extraction, memory_flush, signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story
from tests.services.compaction_scenes import PATIENCE_S, fresh, long_session, set_policy
from tests.stored import append_entries

RULES = (
    "Never touch the table of ledgers without a migration that can be taken back.",
    "I prefer small commits with one thought each, please.",
    "Let's go with PostgreSQL instead of the old store, for good.",
    "The ticket for all of this is PAY-417, and it is due in May.",
    "See https://example.com/handbook/payments for how refunds work.",
)


def project(name: str = "Payments") -> Project:
    return Project.objects.get_or_create(key=name, defaults={"name": name})[0]


def telling(*said: str) -> list[Entry]:
    """A history that begins with what a person lays down, and goes on for a while."""
    told = Story()
    for words in said or RULES:
        told.user(words).says("Understood, I will keep to that from here on.")
    for turn in range(12):
        told.user(f"Turn {turn}: please look into module_{turn}.py and say why the build of step {turn} fails.")
        told.says(f"The build of step {turn} fails because x{turn} is missing; I defined it in module_{turn}.py. " * 12)
    return told.entries


def session_with(*said: str, mode: str = "protect", within: Project | None = None, **policy) -> Session:
    """A session of a project whose first entries say these things; its flushes are of this mode."""
    session = long_session(turns=0, project=within or project())
    append_entries(session, telling(*said))
    signals.refresh(session.pk)
    set_policy(session, flush_mode=mode, **({"flush_timeout_s": 120} | policy))  # seconds, of which a busy machine may need many
    return fresh(session)


def compacted(session: Session, actor, **options) -> Compaction:
    """An attempt that ran to its end, and its flush with it."""
    compaction = request(actor=actor, session=fresh(session), **options).compaction
    run_compaction(compaction.pk)
    assert memory_beside.wait_for_all(PATIENCE_S)
    return fresh(compaction)


def facts(within: Project | None = None) -> dict[str, str]:
    """What the memory holds: kind by text."""
    rows = MemoryFact.objects.filter(project=within or project(), forgotten_at__isnull=True)
    return dict(rows.values_list("text", "kind"))


def receipt_of(compaction: Compaction) -> Receipt:
    return msgspec.convert(MemoryFlush.objects.get(pk=compaction.pk).receipt, Receipt)


def status_of(compaction: Compaction) -> str:
    return MemoryFlush.objects.get(pk=compaction.pk).status


class Gate:
    """Holds every flush at its beginning until it is opened."""

    def __init__(self, monkeypatch) -> None:
        self.calls = 0
        self.is_open = threading.Event()
        self._gather = memory_extraction.gather
        monkeypatch.setattr(memory_flush, "gather", self._wait)

    def _wait(self, task, offered, should_stop):
        self.calls += 1
        while not self.is_open.wait(0.01):
            if (stop := should_stop()) is not None:
                raise Stopped(stop)
        return self._gather(task, offered, should_stop)


__all__ = ["Gate", "compacted", "facts", "project", "receipt_of", "session_with", "status_of", "telling"]
