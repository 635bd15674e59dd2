"""Sessions whose context a runner holds."""

from typing import Any

from sessions_app.events.actors import system_actor
from sessions_app.models import Compaction, Event, Runner, Session
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.runners import binding, table
from tests.fakes.runner_server import RunnerServer
from tests.services.compaction_scenes import fresh, long_session

TESTS = system_actor("tests")


def runner_at(url: str, name: str = "box", **more: Any) -> Runner:
    return table.add(actor=TESTS, name=name, base_url=url, **more)


def bound_session(server: RunnerServer | str, *, turns: int = 12, name: str = "box", external_id: str = "", **columns: Any) -> Session:
    """A session with something to fold, bound to a runner at that address."""
    url = server if isinstance(server, str) else server.url
    runner = Runner.objects.filter(name=name).first() or runner_at(url, name)
    return binding.bind(actor=TESTS, session=long_session(turns, **columns), runner=runner, external_id=external_id)


def compacted(session: Session, **options: Any) -> Compaction:
    """The end of an attempt that was asked for now and run here."""
    compaction = request(actor=TESTS, session=session, **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def types_of(session: Session) -> list[str]:
    """What happened to a session, in order."""
    return list(Event.objects.filter(stream=f"session:{session.pk}").order_by("seq").values_list("type", flat=True))
