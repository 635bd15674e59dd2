"""Entries that a newer version wrote, or somebody by hand: shown with a note, and planned or sent by nothing."""

import pytest
from django.urls import reverse

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, Entry, Session, ViewSegment
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]

WORDS = {
    "role": {"role": "robot"},
    "kind": {"kind": "dream"},
    "calls": {"call_id": "c", "more_call_ids": {}},
}
NOTE = "words that this version does not know"


@pytest.fixture
def session() -> Session:
    """Held here, without a checkpoint."""
    return long_session(kind="inline", provider="scripted", model="scripted", agent="palimpsest")


def harm(session: Session, index: int, **columns) -> None:
    assert Entry.objects.filter(session=session, index=index).update(**columns) == 1


@pytest.mark.parametrize("word", ["role", "kind"])
def test_pages_show_what_such_an_entry_says_and_that_it_is_not_known(session, client, support, word):
    said = plans.load_entries(session.pk, 3, 3)
    text = next(said).text[:20]
    harm(session, 3, **WORDS[word])
    client.force_login(support)
    for layout in ("canonical", "split", "view"):
        html = client.get(reverse("session-detail", args=[session.pk]), {"layout": layout, "at": 1}).content.decode()
        assert NOTE in html or layout == "view"
        assert text in html or layout == "view"
    assert client.get(reverse("session-detail", args=[session.pk]), {"tab": "raw"}).status_code == 200
    shown = run("view", session.pk, "--canonical")
    assert (NOTE in shown[0], shown[2]) == (True, Exit.OK)
    for wanted in ("jsonl", "markdown"):
        export = client.get(reverse("session-export", args=[session.pk]), {"format": wanted})
        assert NOTE in b"".join(export.streaming_content).decode()


@pytest.mark.parametrize("columns", [WORDS["role"], WORDS["kind"], WORDS["calls"]], ids=["role", "kind", "calls"])
def test_nothing_is_planned_with_it(session, support_actor, columns):
    harm(session, 3, **columns)
    signals.refresh(session.pk)  # whatever is written to the session goes on
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    run_compaction(attempt.pk)
    assert (fresh(attempt).status, attempt.reason) == ("failed", "broken_view")
    assert attempt.explanation.startswith("Entry 3 can't be read")
    assert not Compaction.objects.filter(generation__isnull=False).exists()


@pytest.mark.parametrize("columns", [WORDS["role"], WORDS["kind"]], ids=["role", "kind"])
def test_nothing_is_sent_with_it(session, support_actor, columns):
    harm(session, 3, **columns)
    turn = send(actor=support_actor, session=fresh(session), text="What is left?")
    assert run_turn(session.pk)
    assert (fresh(turn).status, turn.reason, turn.calls) == ("failed", "broken_view", 0)
    with pytest.raises(CommandFailure, match="Entry 3 can't be read") as failure:
        run("view", session.pk)
    assert failure.value.end == Exit.FAILED


def test_a_view_that_does_not_hold_it_is_sent(session, support_actor):
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    grow(session, 4)
    harm(session, 3, role="robot")
    turn = send(actor=support_actor, session=fresh(session), text="What is left?")
    assert run_turn(session.pk)
    assert fresh(turn).status == "completed"


def test_the_dialog_says_what_is_wrong(session, client, support):
    harm(session, 3, role="robot")
    client.force_login(support)
    answer = client.get(reverse("compaction-create", args=[session.pk]))
    assert (answer.status_code, "Entry 3 can&#x27;t be read" in answer.content.decode()) == (409, True)


def test_what_was_measured_is_no_reason_to_send_nothing(session, support_actor):
    harm(session, 3, usage={"input": "many"})
    turn = send(actor=support_actor, session=fresh(session), text="What is left?")
    assert run_turn(session.pk)
    assert fresh(turn).status == "completed"
    assert next(plans.load_entries(session.pk, 3, 3)).usage is None


def test_a_plan_with_an_unknown_word_is_a_broken_plan(session, support_actor):
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    assert ViewSegment.objects.filter(position=0).update(kind="dream") == 1
    with pytest.raises(plans.BrokenPlan, match="checkpoint #1"):
        plans.load_view(fresh(session))
