"""What the five-step event of each ending says: status, chain, whether it was applied, how long it lasts, and who is told."""

import pytest

from sessions_app.engine.steps import Ended
from sessions_app.engine.terms import Outcome, SkipReason, Status, Trigger
from sessions_app.models import Event, EventResult
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.endings import CANCELLED, STALE, TIMED_OUT, end
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import _claim, run_compaction
from tests.services.compaction_scenes import fresh, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def skipped(reason: SkipReason) -> Ended:
    return Ended(status=Status.SKIPPED, outcome=Outcome.SKIPPED, reason=reason, explanation="Nothing to do. Nothing was changed.")


FAILED = Ended(
    status=Status.FAILED, outcome=Outcome.REJECTED_EMPTY, reason="rejected_empty", explanation="It was empty. Nothing was changed."
)
ENDINGS = [
    (skipped(SkipReason.NOTHING_TO_FOLD), False),
    (skipped(SkipReason.FEWER_THAN_THREE_ROUNDS), False),
    (skipped(SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET), True),
    (skipped(SkipReason.NO_LEGAL_BOUNDARY), True),
    (STALE, False),
    (CANCELLED, True),
    (TIMED_OUT, True),
    (FAILED, True),
]


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.THRESHOLD])
@pytest.mark.parametrize(("ended", "is_told"), ENDINGS)
def test_an_ending_without_a_checkpoint_applies_nothing_and_is_told_where_somebody_asked_or_has_to_know(
    support_actor, trigger, ended, is_told
):
    attempt = request(actor=support_actor, session=long_session(), trigger=trigger).compaction
    held = _claim(attempt.pk)
    assert end(attempt.pk, ended, token=held.token)
    assert not end(attempt.pk, FAILED, token=held.token)  # the first terminal wins
    first, last = Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).order_by("step")
    assert (first.payload["status"], last.payload["status"], last.type) == ("started", ended.status, "compaction.triggered")
    told = last.payload
    assert (told["applied"], told["durability"], told["event_chain"]) == (False, "none", ["compaction.triggered"])
    assert [event.payload["summary_source"] for event in (first, last)] == ["skipped", "skipped"]
    assert told["user_visible"] is (is_told or trigger is Trigger.MANUAL)
    assert (told["outcome"], last.reason) == (ended.outcome, str(ended.reason))
    assert told["source"] == ("manual" if trigger is Trigger.MANUAL else "automatic")
    assert last.result == (EventResult.FAILED if ended.status in {Status.FAILED, Status.TIMED_OUT} else EventResult.ALLOWED)
    counts = trigger is Trigger.THRESHOLD and ended.outcome in {Outcome.TIMED_OUT, Outcome.REJECTED_EMPTY}
    assert fresh(attempt.session).breaker_failures == int(counts)


def test_each_step_of_one_that_is_committed_says_who_wrote_the_summary(support_actor):
    attempt = request(actor=support_actor, session=long_session()).compaction
    run_compaction(attempt.pk)
    steps = Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).order_by("step")
    assert [(event.payload["status"], event.payload["summary_source"]) for event in steps] == [
        ("started", "skipped"), ("observed", "extractive"), ("observed", "extractive"), ("completed", "extractive")
    ]  # fmt: skip


def test_the_start_says_the_signal_and_what_it_is_measured_against(support_actor):
    session = long_session()
    attempt = request(actor=support_actor, session=session).compaction
    _claim(attempt.pk)
    told = Event.objects.get(compaction_id=attempt.pk, step=1).payload
    assert (told["status"], told["signal_tokens"], told["window"]) == ("started", session.signal_tokens, session.window)
    assert (told["coverage_status"], told["heartbeat_s"]) == ("unknown", 15)


def test_one_that_never_started_tells_its_end_alone(support_actor):
    attempt = request(actor=support_actor, session=long_session()).compaction
    cancel(actor=support_actor, session=attempt.session, compaction_id=attempt.pk)
    only = Event.objects.get(compaction_id=attempt.pk, step__isnull=False)
    assert (only.step, only.payload["status"], only.payload["user_visible"]) == (1, "cancelled", True)
