"""A long session of many turns with a tiny window: compacted again and again, across a restart, and nothing of it is lost."""

import itertools

import pytest

from project.embedded import BackgroundWork
from sessions_app.engine.prompts import PREVIOUS_MARKER
from sessions_app.engine.terms import Kind, Lineage, Outcome
from sessions_app.models import Compaction, Entry, Session, Turn, TurnStatus
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin
from tests.fakes.keys import point_at
from tests.fakes.model_server import Asked, ModelServer, say
from tests.services.compaction_scenes import fresh, set_policy, wait_until
from tests.services.turn_scenes import PROVIDERS, asked_by, indexes_are_whole, process_of, said

pytestmark = pytest.mark.django_db(transaction=True)

BULK = "analysis paragraph " * 400
SYSTEM = "You draft the quarterly report."
TURNS = 8
CAP = 3_000


class Model:
    """Answers turns at length, and summaries with three of the eight headings. Both are measured by what was really sent."""

    def __init__(self) -> None:
        self.turns: list[Asked] = []
        self.summaries: list[Asked] = []

    def __call__(self, asked: Asked):
        if asked.body["model"] == "summary-model":
            self.summaries.append(asked)
            number = len(self.summaries)
            return say(
                "## Primary request and intent\nBuild the Q3 report; never email it without approval.\n\n"
                f"## Current work\nDrafting section {number}.\n\n## Next step\nContinue drafting."
            )
        self.turns.append(asked)
        return say(f"answer {len(self.turns)}: {BULK}")


@pytest.fixture(params=PROVIDERS)
def scene(request, monkeypatch, support_actor):
    """(session, model): one cap for the trigger that two answers reach."""
    model = Model()
    with ModelServer(reply=model) as server:
        point_at(server, request.param, monkeypatch)
        session = begin(actor=support_actor, model=f"{request.param}:turn-model", system=SYSTEM)
        set_policy(session, cap_tokens=CAP, summarisers=[f"{request.param}:summary-model@30000", "extractive"])
        signals.refresh(session.pk)
        yield session, model


def boundary(session: Session) -> int:
    compaction = fresh(session).active_console
    return compaction.boundary_index or 0 if compaction else 0


def ask(actor, session: Session, number: int) -> Turn:
    return send(actor=actor, session=session, text=f"user step {number}: keep drafting the Q3 report")


def test_a_long_session_is_compacted_again_and_again_and_goes_on_after_a_restart(scene, support_actor):
    session, model = scene
    boundaries = []
    work = BackgroundWork(sweeps=False)
    work.start()
    for number in range(TURNS // 2):
        turn = ask(support_actor, session, number)
        wait_until(lambda turn=turn: not fresh(turn).is_open)
        assert turn.status == TurnStatus.COMPLETED, turn.explanation
        boundaries.append(boundary(session))
    assert work.stop()
    assert boundaries[-1] > 0

    later = [ask(support_actor, session, number) for number in range(TURNS // 2, TURNS)]  # nobody takes them; they wait
    process = process_of(session)  # which knows nothing but what is stored
    told, _ = process.communicate(timeout=150)
    assert (process.returncode, told.split()) == (0, ["done"] * len(later)), told
    assert [fresh(turn).status for turn in later] == [TurnStatus.COMPLETED] * len(later)
    boundaries.append(boundary(session))

    assert len(model.turns) == TURNS  # exactly one request to the model a turn
    assert boundaries == sorted(boundaries)
    assert len({index for index in boundaries if index}) >= 2
    assert any(PREVIOUS_MARKER in text for asked in model.summaries for text in (*asked.texts, asked.system))
    _check_what_was_sent(model)
    _check_history(session)
    _check_checkpoints(session, boundaries[-1])


def _check_what_was_sent(model: Model) -> None:
    """The provider gets block and tail: bounded, and with the intent of everything before."""
    last = model.turns[-1]
    assert last.system == SYSTEM
    first = last.texts[0]
    assert "<compacted-history>" in first
    assert "never email it without approval" in first  # what the summary said
    for number in range(TURNS - 2):
        assert f"user step {number}" in "\n".join(last.texts)  # every message of the user, by position
    assert f"user step {TURNS - 1}" in last.texts[-1]
    assert max(len(asked.raw) for asked in model.turns) < 4 * len(BULK)  # never the whole history
    assert len(model.turns[-1].raw) < sum(len(asked.raw) for asked in model.turns) / 2


def _check_history(session: Session) -> None:
    """The canonical history holds everything that was said, once, and the dividers."""
    assert asked_by(session) == [f"user step {number}: keep drafting the Q3 report" for number in range(TURNS)]
    answers = [text for role, text in said(session) if role == "assistant"]
    assert answers == [f"answer {number}: {BULK}" for number in range(1, TURNS + 1)]
    assert indexes_are_whole(session)
    dividers = Entry.objects.filter(session=session, kind=Kind.COMPACTED).count()
    assert dividers == Compaction.objects.filter(session=session, generation__isnull=False).count() >= 2


def _check_checkpoints(session: Session, last_boundary: int) -> None:
    """What is stored is what is in force, and each checkpoint builds on the one before."""
    committed = list(Compaction.objects.filter(session=session, generation__isnull=False).order_by("generation"))
    assert {compaction.outcome for compaction in committed} == {Outcome.COMMITTED}
    assert all(later.parent_id == earlier.pk for earlier, later in itertools.pairwise(committed))
    assert committed[-1].boundary_index == last_boundary
    assert plans.load_chain(fresh(session), Lineage.CONSOLE)[-1].boundary_index == last_boundary
    assert {compaction.trigger for compaction in committed} == {"threshold"}
