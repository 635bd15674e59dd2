"""Turns of sessions that are held here: delivered in order and once, answered, stopped, tried again."""

import uuid

import pytest

from sessions_app import queue as tasks
from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Entry, Event, Session, SessionStatus, Turn, TurnStatus
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import plans
from sessions_app.selectors.turn_panel import turn_panel
from sessions_app.services import search_index, signals, sweeper
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns import claims
from sessions_app.services.turns.run import request_of, run_turn
from sessions_app.services.turns.send import InvalidMessage, KeyReused, TurnRefused, interrupt, retry, send, withdraw
from sessions_app.services.turns.sessions import InvalidSession, begin
from sessions_app.writers.provider_requests import openai_messages
from tests.fakes.keys import point_at
from tests.fakes.model_server import Asked, ModelServer, call, refuse, say
from tests.services.compaction_scenes import fresh, long_session, set_policy
from tests.services.turn_scenes import PROVIDERS, asked_by, said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> list[tuple[str, ...]]:
    """What would have been given to workers."""
    given: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: given.append(task))
    return given


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("sessions_app.providers.scripted_model.PAUSE_S", 0)


@pytest.fixture
def session(support_actor) -> Session:
    return begin(actor=support_actor, model="scripted", system="Be brief.")


@pytest.fixture(params=PROVIDERS)
def served(request, monkeypatch, support_actor):
    """(session, server) of a model that answers over HTTP."""
    with ModelServer() as server:
        point_at(server, request.param, monkeypatch)
        yield begin(actor=support_actor, model=f"{request.param}:some-model"), server


def run_all(session: Session) -> int:
    count = 0
    while run_turn(session.pk):
        count += 1
    return count


def types(session: Session) -> list[str]:
    return list(Event.objects.filter(stream=f"session:{session.pk}").order_by("seq").values_list("type", flat=True))


def test_a_message_is_delivered_and_answered(session, support_actor, queued):
    turn = send(actor=support_actor, session=session, text="Plan the release of 4.2.")
    assert Entry.objects.filter(session=session).count() == 1  # it is queued, and no entry yet
    assert queued == [(tasks.RUN_TURN, str(session.pk))]
    assert run_turn(session.pk)
    assert (fresh(turn).status, turn.user_index, turn.answer_index, turn.calls) == (TurnStatus.COMPLETED, 1, 2, 1)
    assert [role for role, _ in said(session)] == ["system", "user", "assistant"]
    assert fresh(session).status == SessionStatus.IDLE
    assert session.title == "Plan the release of 4.2."
    assert types(session) == [
        "session.created", "entries.appended", "turn.queued", "entries.appended", "turn.started", "entries.appended", "turn.completed",
    ]  # fmt: skip


def test_the_answer_is_stored_as_an_import_would_store_it(session, support_actor):
    send(actor=support_actor, session=session, text="Plan the release of 4.2.")
    run_turn(session.pk)
    entries = list(Entry.objects.filter(session=session).order_by("index"))
    answer = entries[-1]
    assert answer.usage["input"] > 0
    assert answer.model == "scripted"
    assert answer.tokens > 0
    assert [entry.prefix_tokens for entry in entries] == [0, entries[0].tokens, entries[0].tokens + entries[1].tokens]
    assert bytes(fresh(session).head_hash) == bytes(answer.prefix_hash)
    assert session.tokens_total == sum(entry.tokens for entry in entries)
    assert (session.signal_origin, session.signal_measured) == ("measured", answer.usage["input"])
    kept = session.signal_tokens, session.composition, session.pressure
    signals.refresh(session.pk)  # derived anew from the store: the same
    assert (fresh(session).signal_tokens, session.composition, session.pressure) == kept
    assert search_index.index_sessions([session.pk]) == 0  # it can be found already


def test_messages_are_delivered_in_order_and_once_however_many_tasks_come(session, support_actor):
    texts = [f"Message {number}" for number in range(5)]
    for text in texts:
        send(actor=support_actor, session=session, text=text)
    assert run_all(session) == 5
    assert run_all(session) == 0
    assert asked_by(session) == texts
    assert [role for role, _ in said(session)][1:] == ["user", "assistant"] * 5


def test_the_same_form_sent_twice_is_one_message(session, support_actor):
    key = uuid.uuid4()
    first = send(actor=support_actor, session=session, text="Once", key=key)
    assert send(actor=support_actor, session=session, text=" Once\r\n", key=key) == first
    run_all(session)
    assert send(actor=support_actor, session=session, text="Once", key=key).status == TurnStatus.COMPLETED
    assert Turn.objects.count() == 1


def test_a_key_that_another_message_had_is_refused_in_words_and_nothing_is_sent(session, support_actor):
    key = uuid.uuid4()
    first = send(actor=support_actor, session=session, text="Once", key=key)
    with pytest.raises(KeyReused, match=r"Message 1 had this key, and was taken: “Once”.*nothing was sent"):
        send(actor=support_actor, session=session, text="Another text", key=key)
    other = begin(actor=support_actor, model="scripted")
    with pytest.raises(KeyReused, match="another session") as refused:
        send(actor=support_actor, session=other, text="Once", key=key)
    assert "“" not in str(refused.value)  # who may read one session need not be told of another
    assert list(Turn.objects.values_list("pk", "text")) == [(first.pk, "Once")]


def test_a_queued_message_can_be_taken_back_and_a_delivered_one_can_not(session, support_actor):
    first, second = (send(actor=support_actor, session=session, text=text) for text in ("one", "two"))
    assert withdraw(actor=support_actor, session=session, turn_id=second.pk).status == TurnStatus.WITHDRAWN
    run_all(session)
    assert asked_by(session) == ["one"]
    with pytest.raises(TurnRefused, match="delivered already"):
        withdraw(actor=support_actor, session=session, turn_id=first.pk)


def test_a_turn_that_runs_is_not_claimed_again(session, support_actor):
    for text in ("one", "two"):
        send(actor=support_actor, session=session, text=text)
    assert claims.claim(session.pk) is not None
    assert claims.claim(session.pk) is None
    assert asked_by(session) == ["one"]


def test_a_message_sent_while_a_compaction_runs_waits_for_its_end(session, support_actor, queued):
    for number in range(4):
        send(actor=support_actor, session=session, text=f"Message {number}: {'words ' * 600}")
    run_all(session)
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    send(actor=support_actor, session=session, text="meanwhile")
    queued.clear()
    assert not run_turn(session.pk)
    assert [message.text for message in turn_panel(session.pk).queued] == ["meanwhile"]
    run_compaction(attempt.pk)
    assert fresh(attempt).status == Status.COMPLETED
    assert queued == [(tasks.RUN_TURN, str(session.pk))]
    assert run_all(session) == 1
    assert asked_by(session)[-1] == "meanwhile"
    assert "I see a summary" in said(session)[-1][1]


def test_a_compaction_that_waits_for_a_turn_begins_at_its_end_and_before_the_next_message(session, support_actor, queued):
    for number in range(4):
        send(actor=support_actor, session=session, text=f"Message {number}: {'words ' * 600}")
    run_all(session)
    send(actor=support_actor, session=session, text="five")
    held = claims.claim(session.pk)
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    assert attempt.status == Status.WAITING_FOR_IDLE
    send(actor=support_actor, session=session, text="six")
    queued.clear()
    claims.give_up(held)
    sweeper.sweep()
    assert queued == [(tasks.RUN_COMPACTION, str(attempt.pk))]
    assert not run_turn(session.pk)
    run_compaction(attempt.pk)
    assert run_all(session) == 1
    assert asked_by(session)[-1] == "six"


def test_the_view_that_a_model_gets_is_the_one_that_the_page_shows(served, support_actor):
    session, server = served
    server.script(say("First answer."), say("Second answer."))
    for text in ("First question", "Second question"):
        send(actor=support_actor, session=session, text=text)
    run_all(session)
    first, second = server.prompts
    assert first.texts == ["First question"]
    assert second.texts == ["First question", "First answer.", "Second question"]
    assert second.body["model"] == "some-model"
    turn = Turn.objects.get(number=2)
    assert turn.usage["output"] > 0
    assert len(turn.view_hash) == 64


def test_a_provider_that_fails_leaves_the_message_and_says_why_and_the_turn_can_be_tried_again(served, support_actor):
    session, server = served
    server.script(refuse(529), say("Here it is."))
    turn = send(actor=support_actor, session=session, text="Please")
    run_all(session)
    assert (fresh(turn).status, turn.reason) == (TurnStatus.FAILED, "overloaded")
    assert fresh(session).status == SessionStatus.FAILED
    assert said(session)[-1] == ("notice", "No answer. The provider is overloaded (HTTP 529). The message is kept; try again.")
    panel = turn_panel(session.pk)
    assert (panel.tone, panel.retry_id) == ("bad", turn.pk)
    again = retry(actor=support_actor, session=session, turn_id=turn.pk)
    run_all(session)
    assert fresh(again).status == TurnStatus.COMPLETED
    assert asked_by(session) == ["Please"]
    assert server.prompts[-1].texts == ["Please"]
    assert turn_panel(session.pk).note == ""
    with pytest.raises(TurnRefused):
        retry(actor=support_actor, session=session, turn_id=turn.pk)


@pytest.mark.parametrize(("status", "reason"), [(401, "unauthorised"), (429, "rate_limited"), (500, "unavailable"), (400, "invalid")])
def test_every_refusal_ends_the_turn_with_its_reason_and_what_waits_goes_on(served, support_actor, status, reason):
    session, server = served
    server.script(refuse(status))
    turns = [send(actor=support_actor, session=session, text=text) for text in ("one", "two")]
    assert run_all(session) == 2
    assert [(fresh(turn).status, turn.reason) for turn in turns] == [("failed", reason), ("completed", "")]
    assert asked_by(session) == ["one", "two"]


def test_an_empty_answer_is_a_failure_and_no_entry(served, support_actor):
    session, server = served
    server.script(say(""))
    turn = send(actor=support_actor, session=session, text="Please")
    run_all(session)
    assert (fresh(turn).status, turn.reason) == (TurnStatus.FAILED, "unavailable")
    assert [role for role, _ in said(session)] == ["user", "notice"]


@pytest.mark.parametrize("call_id", ["call_1", "call_" + "x" * 300])
def test_a_call_of_a_tool_is_stored_and_waits_and_the_next_message_closes_it(served, support_actor, call_id):
    session, server = served
    server.script(call("read_file", call_id, path="/etc/hosts"), say("Without it, then."))
    turn = send(actor=support_actor, session=session, text="Read the file")
    run_all(session)
    assert (fresh(turn).status, turn.reason) == (TurnStatus.COMPLETED, "wants_tools")
    assert fresh(session).status == SessionStatus.WAITING
    assert [role for role, _ in said(session)] == ["user", "assistant", "notice"]
    assert "has none" in turn_panel(session.pk).note
    send(actor=support_actor, session=session, text="You have no tools")
    run_all(session)
    assert fresh(session).status == SessionStatus.IDLE
    assert [role for role, _ in said(session)][3:] == ["tool", "user", "assistant"]
    kinds = [block.kind for block in server.prompts[-1].blocks]
    assert ("call" in kinds, "result" in kinds) == (True, True)
    assert {part.call_id for entry in plans.load_entries(session.pk) for part in entry.parts if part.call_id} == {call_id}


def fill(actor, session: Session, server: ModelServer, turns: int = 6) -> None:
    """A conversation of some length. Nothing of it is measured as much."""
    server.reply = lambda asked: say("analysis paragraph " * 300, input_tokens=100)
    for number in range(turns):
        send(actor=actor, session=session, text=f"Message {number}")
    run_all(session)


def too_long_until_compacted(asked: Asked):
    if "<compacted-history>" in "\n".join(asked.texts):
        return say("Now it fits.")
    return refuse(400, "prompt is too long: 210000 tokens > 200000 maximum", code="context_length_exceeded")


def test_an_overflow_is_answered_by_making_room_without_a_model_and_one_more_request(served, support_actor):
    session, server = served
    fill(support_actor, session, server)
    asked_before = len(server.prompts)
    server.reply = too_long_until_compacted
    turn = send(actor=support_actor, session=session, text="The latest request")
    run_all(session)
    assert (fresh(turn).status, turn.calls) == (TurnStatus.COMPLETED, 2)
    assert len(server.prompts) == asked_before + 2
    assert server.prompts[-1].texts[-1] == "The latest request"
    assert Compaction.objects.get(turn_id=turn.pk).trigger == "overflow"
    assert said(session)[-1] == ("assistant", "Now it fits.")


def test_where_automatic_compaction_is_off_an_overflow_offers_choices_and_changes_nothing(served, support_actor):
    session, server = served
    fill(support_actor, session, server)
    set_policy(session, enabled=False)
    server.reply = too_long_until_compacted
    turn = send(actor=support_actor, session=session, text="The latest request")
    run_all(session)
    assert (fresh(turn).status, turn.reason, turn.calls) == (TurnStatus.FAILED, "overflow", 1)
    assert "Compact it by hand" in turn.explanation
    assert not Compaction.objects.exists()


def test_the_scripted_model_refuses_what_is_longer_than_its_window_and_goes_on_after_room_was_made(support_actor):
    session = begin(actor=support_actor, model="scripted", window=4_000)
    set_policy(session, threshold_pct=0.95)
    for number in range(10):
        send(actor=support_actor, session=session, text=f"Message {number}: " + "some words to fill a window with, " * 60)
    assert run_all(session) == 10
    assert set(Turn.objects.values_list("status", flat=True)) == {TurnStatus.COMPLETED}
    assert Compaction.objects.filter(generation__isnull=False).exists()
    assert len(asked_by(session)) == 10
    assert "I see a summary" in said(session)[-1][1]


def test_a_session_that_an_agent_holds_takes_no_message(support_actor):
    imported = long_session(turns=2)
    with pytest.raises(InvalidMessage, match="held by its agent"):
        send(actor=support_actor, session=imported, text="Hello")


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 400_001])
def test_a_message_that_can_not_be_taken_is_refused_in_words(session, support_actor, text):
    with pytest.raises(InvalidMessage, match="Nothing was sent"):
        send(actor=support_actor, session=session, text=text)
    assert not Turn.objects.exists()


def test_a_long_message_is_kept_whole_and_sent_whole(session, support_actor):
    text = "0123456789 " * 4_000
    send(actor=support_actor, session=session, text=text)
    run_all(session)
    assert asked_by(session) == [text.strip()]
    sent = request_of(fresh(session), plans.load_view(session, whole=True))
    assert list(openai_messages(plans.load_view(session, whole=True), plans.load_blob))[1]["content"] == text.strip()
    assert sent.system == "Be brief."


@pytest.mark.parametrize("text", ["a\0b", "half \ud800 pair", "\u202egnp.exe", "<script>alert(1)</script>", "</compacted-history>"])
def test_any_text_can_be_sent(session, support_actor, text):
    send(actor=support_actor, session=session, text=text)
    assert run_all(session) == 1
    assert fresh(session).status == SessionStatus.IDLE


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"model": "nobody"}, "model"),
        ({"model": "openai:gpt-5"}, "model"),  # no key is set
        ({"model": "scripted", "window": 10}, "window"),
        ({"model": "scripted", "profile": "none"}, "profile"),
        ({"model": "scripted", "title": "x" * 201}, "title"),
    ],
)
def test_a_session_that_can_not_be_begun_names_the_field(support_actor, monkeypatch, wrong, field):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidSession) as refused:
        begin(actor=support_actor, **wrong)
    assert refused.value.field == field
    assert not Session.objects.exists()


def test_an_operator_may_not_begin_a_session(operator_actor):
    with pytest.raises(ActionRefused):
        begin(actor=operator_actor, model="scripted")


def test_the_key_of_a_provider_is_stored_nowhere(served, support_actor):
    session, _ = served
    send(actor=support_actor, session=session, text="Please")
    run_all(session)
    stored = [str(row) for model in (Turn, Entry, Event, Session) for row in model.objects.values()]
    assert not [row for row in stored if "sk-secret" in row]
    assert interrupt(actor=support_actor, session=session, turn_id=Turn.objects.get().pk).status == TurnStatus.COMPLETED
