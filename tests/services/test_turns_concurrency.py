"""Many senders, many workers, and workers that are killed: every message is delivered once, in order, and nothing is doubled."""

import signal
import threading
import time
import uuid

import pytest
from django.db import connection
from django.db.models.functions import Now

from project.embedded import BackgroundWork
from sessions_app.models import Entry, Session, SessionStatus, Turn, TurnStatus
from sessions_app.providers import calls
from sessions_app.services import sweeper
from sessions_app.services.compactions import keeper
from sessions_app.services.turns.keeping import TurnKeeper
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import KeyReused, interrupt, send
from sessions_app.services.turns.sessions import begin
from tests.fakes.keys import point_at
from tests.fakes.model_server import Fault, ModelServer, say
from tests.services.compaction_scenes import PATIENCE_S, fresh, looks_of, wait_until
from tests.services.turn_scenes import asked_by, indexes_are_whole, process_of, run_beside, said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(monkeypatch):
    with ModelServer() as running:
        point_at(running, "openai", monkeypatch)
        yield running


@pytest.fixture
def session(server, support_actor) -> Session:
    return begin(actor=support_actor, model="openai:some-model")


@pytest.fixture
def no_worker(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)


def beside(*work) -> None:
    """Runs them at the same time, each with a connection of its own."""

    def run(do) -> None:
        try:
            do()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(do,)) for do in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lapse() -> None:
    """As if half a minute had passed since the worker was last seen."""
    Turn.objects.filter(status=TurnStatus.RUNNING).update(lease_expires_at=Now())


def test_two_senders_at_once_and_many_tasks_deliver_everything_in_the_order_of_its_numbers(session, support_actor, no_worker):
    def sender(name: str):
        return lambda: [send(actor=support_actor, session=session, text=f"{name} {number}") for number in range(6)]

    beside(sender("ana"), sender("ben"))
    numbers = list(Turn.objects.order_by("number").values_list("number", "text"))
    assert [number for number, _ in numbers] == list(range(1, 13))

    def worker() -> None:
        while Turn.objects.filter(status=TurnStatus.QUEUED).exists():
            if not run_turn(session.pk):
                time.sleep(0.02)  # a task that finds nothing ends; it does not ask again at once

    beside(worker, worker, worker)
    assert asked_by(session) == [text for _, text in numbers]
    assert [role for role, _ in said(session)] == ["user", "assistant"] * 12
    assert indexes_are_whole(session)
    assert set(Turn.objects.values_list("status", "calls")) == {(TurnStatus.COMPLETED, 1)}


def test_of_many_who_send_with_one_key_at_once_one_text_is_taken_once_and_the_others_are_told(session, support_actor, no_worker):
    key, other = uuid.uuid4(), begin(actor=support_actor, model="openai:some-model")
    taken, told = [], []

    def sender(where: Session, text: str):
        def work() -> None:
            try:
                taken.append(send(actor=support_actor, session=where, text=text, key=key).text)
            except KeyReused as error:
                told.append(str(error))

        return work

    beside(*(sender(session, text) for text in ("one", "one", "two")), sender(other, "one"), sender(other, "three"))
    (turn,) = Turn.objects.all()
    assert set(taken) == {turn.text}
    assert len(taken) + len(told) == 5
    assert all("othing was sent" in sentence for sentence in told)


def test_messages_sent_during_a_turn_are_answered_one_after_the_other_by_the_workers(server, session, support_actor):
    may_answer = threading.Event()
    server.reply = lambda asked: say("Slowly.") if may_answer.wait(PATIENCE_S) else say("Too late.")
    work = BackgroundWork(sweeps=False)
    work.start()
    try:
        for text in ("one", "two", "three"):
            send(actor=support_actor, session=session, text=text)
        wait_until(lambda: Turn.objects.filter(status=TurnStatus.RUNNING).exists())
        assert fresh(session).status == SessionStatus.WORKING
        may_answer.set()
        wait_until(lambda: Turn.objects.filter(status=TurnStatus.COMPLETED).count() == 3)
    finally:
        may_answer.set()
        assert work.stop()
    assert asked_by(session) == ["one", "two", "three"]
    assert [role for role, _ in said(session)] == ["user", "assistant"] * 3


def test_text_is_stored_while_it_comes_and_once_as_an_entry(server, session, support_actor, no_worker):
    pieces = threading.Semaphore(2)
    server.script(say("one two three four", pieces=4, paced_by=pieces))
    turn = send(actor=support_actor, session=session, text="Count")
    thread = run_beside(session)
    wait_until(lambda: fresh(turn).answer_text.startswith("one two"))
    assert turn.status == TurnStatus.RUNNING
    assert turn.answered_at is not None
    assert Entry.objects.filter(session=session).count() == 1
    pieces.release(2)
    thread.join()
    assert fresh(turn).answer_text == ""
    assert said(session)[-1] == ("assistant", "one two three four")


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.HANG])
def test_a_turn_is_stopped_within_a_second_whatever_its_provider_does(server, session, support_actor, no_worker, fault, monkeypatch):
    """Counted in looks of its keeper: one that was under way, and the next."""
    looks = looks_of(TurnKeeper, monkeypatch)
    server.script(say("never", fault=fault))
    turn = send(actor=support_actor, session=session, text="Hello?")
    thread = run_beside(session)
    wait_until(lambda: len(server.prompts) == 1)
    interrupt(actor=support_actor, session=session, turn_id=turn.pk)
    looks_before = len(looks)
    thread.join()
    assert len(looks) - looks_before <= 2
    assert 2 * keeper.POLL_S + calls.LOOK_S < 1
    assert (fresh(turn).status, turn.may_be_retried) == (TurnStatus.CANCELLED, True)
    assert fresh(session).status == SessionStatus.IDLE
    assert [role for role, _ in said(session)] == ["user", "notice"]


def test_what_had_come_of_a_stopped_answer_stays_and_the_next_message_goes_on(server, session, support_actor, no_worker):
    server.script(say("one two three four five six", pieces=6, paced_by=threading.Semaphore(2)), say("Understood."))
    turn = send(actor=support_actor, session=session, text="Count")
    thread = run_beside(session)
    wait_until(lambda: "two" in fresh(turn).answer_text)
    interrupt(actor=support_actor, session=session, turn_id=turn.pk)
    thread.join()
    assert (fresh(turn).status, turn.may_be_retried) == (TurnStatus.CANCELLED, False)
    role, text = said(session)[1]
    assert (role, text.startswith("one two")) == ("assistant", True)
    send(actor=support_actor, session=session, text="Enough")
    run_turn(session.pk)
    assert server.prompts[-1].texts == ["Count", text, "Enough"]


def test_a_worker_that_is_killed_in_the_middle_leaves_the_message_and_no_half_of_an_answer(server, session, support_actor, no_worker):
    server.script(say("a slow answer in pieces", pieces=20, paced_by=threading.Semaphore(2)))
    turns = [send(actor=support_actor, session=session, text=text) for text in ("one", "two")]
    process = process_of(session)
    wait_until(lambda: fresh(turns[0]).answer_text != "")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert fresh(turns[0]).status == TurnStatus.RUNNING
    assert sweeper.sweep().turns_lost == 0  # its lease may still be renewed, for all that anybody knows
    lapse()
    assert sweeper.sweep().turns_lost == 1
    assert sweeper.sweep().turns_lost == 0
    assert (fresh(turns[0]).status, turns[0].reason) == (TurnStatus.FAILED, "worker_lost")
    assert fresh(session).status == SessionStatus.FAILED
    assert [role for role, _ in said(session)] == ["user", "notice"]
    assert "What had come of the answer" in said(session)[-1][1]  # what had come is told, and sent to no model
    while run_turn(session.pk):
        pass
    assert fresh(turns[1]).status == TurnStatus.COMPLETED
    assert asked_by(session) == ["one", "two"]
    assert server.prompts[-1].texts[-1].endswith("two")
    assert indexes_are_whole(session)


def test_a_worker_that_lost_its_turn_writes_nothing_more(server, session, support_actor, no_worker):
    pieces = threading.Semaphore(0)
    server.script(say("late", paced_by=pieces))
    turn = send(actor=support_actor, session=session, text="Hello?")
    thread = run_beside(session)
    wait_until(lambda: len(server.prompts) == 1)
    lapse()
    assert sweeper.sweep().turns_lost == 1
    pieces.release(9)
    thread.join()
    assert fresh(turn).status == TurnStatus.FAILED
    assert [role for role, _ in said(session)] == ["user", "notice"]


def test_the_end_of_the_product_ends_a_turn_and_its_message_can_be_tried_again(server, session, support_actor):
    server.script(say("never", fault=Fault.HANG))
    work = BackgroundWork(sweeps=False)
    work.start()
    turn = send(actor=support_actor, session=session, text="Hello?")
    wait_until(lambda: len(server.prompts) == 1)
    assert work.stop()
    assert (fresh(turn).status, turn.reason, turn.may_be_retried) == (TurnStatus.FAILED, "worker_lost", True)


def test_a_message_that_no_task_came_for_is_queued_again(session, support_actor, monkeypatch):
    given: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: given.append(task))
    turn = send(actor=support_actor, session=session, text="Hello?")
    given.clear()
    sweeper.sweep()
    assert given == []
    assert sweeper.sweep(at_start=True).turns_requeued == 1
    assert given == [("sessions_app.run_turn", str(session.pk))]
    assert run_turn(session.pk)
    assert fresh(turn).status == TurnStatus.COMPLETED
