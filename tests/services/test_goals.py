"""A goal that a person sets: kept with who and when, in every block in the same bytes, and gone again when it is taken back."""

import json

import pytest

from sessions_app.engine import goal as goals
from sessions_app.engine.mechanical import collect
from sessions_app.events.actors import Actor
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, Event, Session
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import plans
from sessions_app.selectors.goals import goal_of
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.forks import fork
from sessions_app.services.goals import InvalidGoal, set_goal
from tests.engine.histories import Story
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session
from tests.stored import store_session

TEXT = "Replace the old importer.\nNever touch `legacy.py`."
SECTION = "## Goal\nSet by a person for the whole of this work:\n> Replace the old importer.\n> Never touch `legacy.py`.\n"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def compacted(session: Session, actor: Actor) -> Compaction:
    attempt = request(actor=actor, session=fresh(session)).compaction
    run_compaction(attempt.pk)
    assert fresh(attempt).status == "completed", attempt.explanation
    grow(session, 10)
    signals.refresh(session.pk)
    return attempt


def block_of(session: Session) -> str:
    return "".join(part.part.text for message in plans.load_view(fresh(session)) for part in message.parts if part.synthetic)


def test_it_stands_in_every_block_in_the_same_bytes_until_it_is_taken_back(support_actor):
    session = long_session()
    assert set_goal(actor=support_actor, session=session, text=f"  {TEXT}  ")
    for _ in range(3):
        made = compacted(session, support_actor)
        assert SECTION in block_of(session)
        assert made.mechanical_state["goal"] == TEXT
    assert set_goal(actor=support_actor, session=session, text="")
    compacted(session, support_actor)
    assert "Set by a person" not in block_of(session)
    assert "## Goal\nAs the user first put it" in block_of(session)


def test_each_change_is_an_event_with_before_and_after_and_who(support_actor):
    session = long_session()
    assert set_goal(actor=support_actor, session=session, text=TEXT)
    assert not set_goal(actor=support_actor, session=session, text=TEXT)
    assert set_goal(actor=support_actor, session=session, text="Another.")
    told = Event.objects.filter(type="session.goal_changed").order_by("seq")
    assert [(event.before, event.after, event.actor_name) for event in told] == [
        ({"goal": ""}, {"goal": TEXT}, "ana"),
        ({"goal": TEXT}, {"goal": "Another."}, "ana"),
    ]


def test_who_may_only_read_may_not_set_it(operator_actor):
    session = long_session()
    with pytest.raises(ActionRefused):
        set_goal(actor=operator_actor, session=session, text=TEXT)
    assert fresh(session).goal == ""


@pytest.mark.parametrize("text", ["x" * 601, "a\x00b"], ids=["too long", "not storable"])
def test_what_can_be_no_goal_is_refused_in_words(support_actor, text):
    session = long_session()
    with pytest.raises(InvalidGoal, match="Nothing was changed"):
        set_goal(actor=support_actor, session=session, text=text)
    assert (fresh(session).goal, Event.objects.filter(type="session.goal_changed").exists()) == ("", False)


def test_credentials_in_it_reach_no_summary(support_actor):
    session = long_session()
    set_goal(actor=support_actor, session=session, text="Deploy with AKIAIOSFODNN7EXAMPLE today.")
    compacted(session, support_actor)
    assert "AKIAIOSFODNN7EXAMPLE" not in block_of(session)
    assert "> Deploy with" in block_of(session)


def test_a_fork_has_the_goal_of_its_origin(support_actor):
    session = long_session()
    set_goal(actor=support_actor, session=session, text=TEXT)
    assert fork(actor=support_actor, session=fresh(session)).goal == TEXT


def test_the_command_tells_sets_and_clears_it():
    session = long_session()
    out, _, end = run("goal", session.pk)
    assert out.startswith("Goal, found in message #0:\nTurn 0: please look into module_0.py")
    assert end == Exit.OK
    assert run("goal", session.pk, "--set", TEXT)[0] == f"Goal, set by a person:\n{TEXT}\n"
    assert run("goal", session.pk, "--set", TEXT)[2] == Exit.NOTHING_TO_DO
    told = json.loads(run("goal", session.pk, "--json")[0])
    assert (told["text"], told["origin"], told["index"]) == (TEXT, "set", None)
    run("goal", session.pk, "--clear")
    assert json.loads(run("goal", session.pk, "--json")[0])["origin"] == "found"
    assert run("goal", store_session().pk)[0] == "Goal, none: nobody asked for anything yet.\n"
    with pytest.raises(CommandFailure, match="may have 600") as failure:
        run("goal", session.pk, "--set", "x" * 601)
    assert failure.value.end == Exit.USAGE


def test_what_a_page_tells_of_a_session_is_what_a_compaction_finds():
    story = Story().user("Build the importer for the shop.").says("Yes.").user("Goal: read ten million rows.\nIn one pass.").says("Yes.")
    for number in range(300):
        story.user(f"And file {number}, please.").says("Done.")
    session = store_session(story.entries)
    found = goals.of(collect(story.entries))
    assert found is not None
    assert goal_of(session).text == found.text == "read ten million rows.\nIn one pass."
