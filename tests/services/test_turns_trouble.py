"""What goes wrong around a turn: a database that is away as it ends, a history that takes nothing in, an answer that says nothing."""

import pytest
from django.db import OperationalError

from sessions_app.engine.entries import Usage
from sessions_app.models import Event, Session, Turn, TurnStatus
from sessions_app.providers.base import ModelAnswer, StopReason
from sessions_app.selectors.turn_panel import turn_panel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns import endings
from sessions_app.services.turns import run as turns
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import retry, send
from sessions_app.services.turns.sessions import begin
from tests.fakes.keys import point_at
from tests.fakes.model_server import ModelServer, say
from tests.services.compaction_scenes import fresh, long_session
from tests.services.turn_scenes import PROVIDERS, said

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


@pytest.fixture(autouse=True)
def _no_pauses_between_tries(monkeypatch):
    monkeypatch.setattr(turns, "PAUSES_S", (0, 0, 0))


@pytest.fixture
def session(support_actor) -> Session:
    return begin(actor=support_actor, model="scripted")


def failing(real, times: int):
    """The function, which fails so many times first."""
    left = [times]

    def do(*args, **named):
        if left[0]:
            left[0] -= 1
            raise OperationalError("server closed the connection unexpectedly")
        return real(*args, **named)

    return do


def test_an_answer_is_stored_although_the_database_was_away_when_it_came(session, support_actor, monkeypatch):
    turn = send(actor=support_actor, session=session, text="Hello")
    monkeypatch.setattr(turns, "end", failing(turns.end, 3))
    assert run_turn(session.pk)
    assert fresh(turn).status == TurnStatus.COMPLETED
    assert turn.answered_at is not None
    assert [role for role, _ in said(session)] == ["user", "assistant"]


def test_a_database_that_stays_away_leaves_the_turn_to_the_sweep(session, support_actor, monkeypatch):
    turn = send(actor=support_actor, session=session, text="Hello")
    monkeypatch.setattr(turns, "end", failing(turns.end, 9))
    with pytest.raises(OperationalError):
        run_turn(session.pk)
    assert fresh(turn).status == TurnStatus.RUNNING


@pytest.mark.parametrize("number", [10**20, -5])
def test_an_answer_whose_measure_no_database_takes_is_kept_without_it(session, support_actor, monkeypatch, number):
    def measured(self, request, *, on_text=lambda _: None, **_):
        usage = Usage(input=number, output=3)
        return ModelAnswer(text="Yes.", stop=StopReason.END, model="scripted", usage=usage)

    monkeypatch.setattr(turns, "call", measured)
    turn = send(actor=support_actor, session=session, text="Hello")
    assert run_turn(session.pk)
    assert fresh(turn).status == TurnStatus.COMPLETED
    assert [text for role, text in said(session) if role == "assistant"] == ["Yes."]


def test_an_answer_that_cannot_be_stored_at_all_ends_its_turn_at_once_with_a_true_sentence(session, support_actor, monkeypatch):
    turn = send(actor=support_actor, session=session, text="Hello")
    with monkeypatch.context() as patched:
        patched.setattr(endings, "_answer_entries", lambda *_: 1 / 0)
        assert run_turn(session.pk)
    assert (fresh(turn).status, turn.reason) == (TurnStatus.FAILED, "not_stored")
    assert "could not be stored" in turn.explanation
    retry(actor=support_actor, session=fresh(session), turn_id=turn.pk)
    assert run_turn(session.pk)


def test_a_message_that_there_is_no_place_for_fails_in_words_and_can_be_tried_again(session, support_actor):
    send(actor=support_actor, session=session, text="One")
    run_turn(session.pk)
    count = fresh(session).entry_count
    Session.objects.filter(pk=session.pk).update(entry_count=count - 1)
    turn = send(actor=support_actor, session=session, text="Two")
    assert not run_turn(session.pk)
    assert (fresh(turn).status, turn.reason, turn.user_index) == (TurnStatus.FAILED, "not_delivered", None)
    assert Event.objects.filter(type="turn.failed", reason="not_delivered").count() == 1
    panel = turn_panel(session.pk)
    assert ("manage.py doctor --repair" in panel.note, panel.retry_id) == (True, turn.pk)
    assert not run_turn(session.pk)
    Session.objects.filter(pk=session.pk).update(entry_count=count)
    retry(actor=support_actor, session=fresh(session), turn_id=turn.pk)
    assert run_turn(session.pk)
    assert [text for role, text in said(session) if role == "user"] == ["One", "Two"]


def test_that_a_view_was_sent_first_is_told_with_the_request_or_not_at_all(support_actor, monkeypatch):
    session = long_session(kind="inline", provider="scripted", model="scripted", agent="palimpsest")
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    send(actor=support_actor, session=fresh(session), text="Hello")
    with monkeypatch.context() as patched:
        patched.setattr(turns, "append_step", lambda *_, **__: 1 / 0)
        run_turn(session.pk)
    turn = Turn.objects.get()
    assert (turn.status, turn.calls, turn.compaction_id) == (TurnStatus.FAILED, 0, None)
    retry(actor=support_actor, session=fresh(session), turn_id=turn.pk)
    run_turn(session.pk)
    assert Event.objects.filter(type="compaction.replayed").count() == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_of_spaces_is_none(support_actor, monkeypatch, provider):
    with ModelServer() as server:
        point_at(server, provider, monkeypatch)
        session = begin(actor=support_actor, model=f"{provider}:some-model")
        server.script(say("\n "), say("Yes."))
        turn = send(actor=support_actor, session=session, text="Hello?")
        run_turn(session.pk)
        assert (fresh(turn).status, turn.reason) == (TurnStatus.FAILED, "unavailable")
        retry(actor=support_actor, session=fresh(session), turn_id=turn.pk)
        run_turn(session.pk)
    assert [(role, text) for role, text in said(session) if role != "notice"] == [("user", "Hello?"), ("assistant", "Yes.")]
