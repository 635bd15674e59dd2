"""An automatic attempt that came to nothing is not made again until something changed that it depends on, and says so."""

import json
import uuid

import pytest
from django.urls import reverse

from sessions_app.engine import triggers
from sessions_app.engine.terms import Outcome, SkipReason, Status
from sessions_app.events.actors import system_actor
from sessions_app.models import Compaction, Session, SessionKind, SessionStatus
from sessions_app.services import signals
from sessions_app.services.compactions.automatic import before_turn
from sessions_app.services.overrides import pin
from sessions_app.services.policies import change
from tests.engine.attempts import FILLER
from tests.engine.histories import Story
from tests.fakes.keys import point_at
from tests.fakes.model_server import ModelServer, say
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session
from tests.stored import store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
ADMIN = system_actor("ben")


def full_of_rules() -> Session:
    """The system prompt alone is over the target: nothing that is folded helps."""
    story = Story().system(f"You are an agent. {FILLER * 360}")
    for turn in range(20):
        story.user(f"Request {turn}.").says(f"Request {turn} is met. {FILLER * 8}")
    session = store_session(story.entries, window_override=10_000, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")
    signals.refresh(session.pk)
    return fresh(session)


def turn(session: Session, actor):
    return before_turn(session=fresh(session), actor=actor, turn_id=uuid.uuid4())


def test_what_can_not_be_compacted_is_tried_once_and_then_told(support_actor, client, support):
    session = full_of_rules()
    first = turn(session, support_actor).compaction
    assert (first.status, first.reason) == (Status.SKIPPED, SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET)
    grow(session, 1)
    for _ in range(3):
        decision = turn(session, support_actor)
        assert (decision.compaction, decision.verdict.fires, decision.verdict.reason) == (None, False, triggers.Reason.IN_VAIN)
    assert Compaction.objects.filter(session=session).count() == 1
    told = json.loads(run("why", session.pk, as_json=True)[0])["evaluation"]
    assert told["reason"] == "same_attempt_came_to_nothing"
    assert f"a{first.attempt}: What has to stay word for word leaves no room" in told["explanation"]
    client.force_login(support)
    html = client.get(reverse("session-detail", args=[session.pk])).content.decode()
    assert "the same compaction came to nothing before" in html


def test_a_change_of_the_policy_lets_it_try_again(support_actor):
    session = full_of_rules()
    turn(session, support_actor)
    change(actor=ADMIN, scope="session", scope_id=session.pk, values={"target_fraction": 0.95, "keep_recent_fraction": 0.05})
    assert turn(session, support_actor).compaction is not None


def test_a_pin_or_another_model_lets_it_try_again(support_actor):
    session = full_of_rules()
    turn(session, support_actor)
    pin(actor=support_actor, session=fresh(session), index=4)
    assert turn(session, support_actor).compaction is not None
    assert turn(session, support_actor).compaction is None
    Session.objects.filter(pk=session.pk).update(model="another")
    assert turn(session, support_actor).compaction is not None


def test_a_model_is_not_paid_again_for_a_summary_that_is_too_large(support_actor, monkeypatch):
    with ModelServer(reply=lambda _: say("## Next step\n" + "word " * 30_000)) as server:
        point_at(server, "openai", monkeypatch)
        session = long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")
        values = {"summarisers": ["openai:scripted-model@60000"], "allow_fallback": False, "clear_results": False}
        change(actor=ADMIN, scope="session", scope_id=session.pk, values=values)
        assert turn(session, support_actor).compaction.outcome == Outcome.REJECTED_INFLATED
        paid = len(server.prompts)
        decision = turn(session, support_actor)
        assert (decision.verdict.reason, len(server.prompts)) == (triggers.Reason.IN_VAIN, paid)
        # Another turn moves the boundary: that is another attempt.
        grow(session, 3)
        signals.refresh(session.pk)
        assert turn(session, support_actor).compaction.outcome == Outcome.REJECTED_INFLATED
        assert len(server.prompts) > paid


def test_a_failure_that_may_pass_is_tried_again(support_actor, monkeypatch):
    session = long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")
    with monkeypatch.context() as patch:
        patch.setattr("sessions_app.services.compactions.run.engine_run", lambda *_, **__: 1 / 0)
        turn(session, support_actor)
    assert turn(session, support_actor).compaction.status == Status.COMPLETED
