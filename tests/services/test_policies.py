"""A save of a policy is all or nothing, one event, and reaches every session it concerns without holding anybody up."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.policy import PolicyError
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, Event, PolicyRevision, PolicyValue, Project, Session
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import plans
from sessions_app.services import policies
from sessions_app.services.policies import AT_ONCE, ChangedMeanwhile, change, spread
from tests.stored import store_session

pytestmark = pytest.mark.django_db
ADA = Actor(kind=ActorKind.USER, id="1", name="ada", role="admin")
BEN = Actor(kind=ActorKind.USER, id="2", name="ben", role="admin")


def triggers() -> set[int]:
    return set(Session.objects.values_list("trigger_tokens", flat=True))


def test_one_save_is_one_event_with_before_and_after_of_each_field():
    change(actor=ADA, scope="installation", values={"cap_tokens": 90_000, "enabled": False})
    change(actor=ADA, scope="installation", values={"cap_tokens": 80_000, "heartbeat_s": 5}, unset=["enabled"])
    event = Event.objects.filter(type=EventType.POLICY_CHANGED).last()
    assert event is not None
    assert Event.objects.filter(type=EventType.POLICY_CHANGED).count() == 2
    assert event.before == {"cap_tokens": 90_000, "enabled": False}
    assert event.after == {"cap_tokens": 80_000, "heartbeat_s": 5}
    assert (event.target_kind, event.target_id, event.actor_name) == ("installation", "", "ada")


def test_what_changes_nothing_is_no_event():
    change(actor=ADA, scope="installation", values={"cap_tokens": 90_000})
    saved = change(actor=ADA, scope="installation", values={"cap_tokens": 90_000}, unset=["enabled"])
    assert saved.changed == ()
    assert Event.objects.filter(type=EventType.POLICY_CHANGED).count() == 1


@pytest.mark.parametrize(
    ("values", "at_fault"),
    [
        ({"cap_tokens": 90_000, "threshold_pct": float("nan")}, ("threshold_pct",)),
        ({"cap_tokens": 90_000, "threshold_pct": 10**400}, ("threshold_pct",)),
        ({"cap_tokens": 90_000, "heartbeat_s": True}, ("heartbeat_s",)),
        ({"cap_tokens": 90_000, "keep_recent_fraction": 0.7}, ("keep_recent_fraction", "target_fraction")),
        ({"cap_tokens": 90_000, "total_timeout_s": 30}, ("total_timeout_s", "call_timeout_s")),
    ],
)
def test_one_wrong_value_stores_none_of_them(values, at_fault):
    with pytest.raises(PolicyError) as caught:
        change(actor=ADA, scope="installation", values=values)
    assert caught.value.fields == at_fault
    assert not PolicyValue.objects.exists()
    assert not PolicyRevision.objects.exists()
    assert not Event.objects.exists()


def test_a_contradiction_below_names_the_session_that_it_would_break():
    session = store_session(title="Night shift")
    change(actor=ADA, scope="session", scope_id=session.pk, values={"keep_recent_fraction": 0.5})
    with pytest.raises(PolicyError, match="the session “Night shift”"):
        change(actor=ADA, scope="installation", values={"target_fraction": 0.4})


def test_the_later_of_two_who_changed_the_same_is_told_and_stores_nothing():
    change(actor=BEN, scope="installation", values={"cap_tokens": 120_000})
    with pytest.raises(ChangedMeanwhile, match="ben changed cap_tokens") as caught:
        change(actor=ADA, scope="installation", values={"cap_tokens": 100_000, "heartbeat_s": 5}, seen={})
    assert caught.value.fields == ("cap_tokens",)
    assert plans.policy_for().policy.cap_tokens == 120_000
    assert plans.policy_for().policy.heartbeat_s == 15


def test_two_who_changed_different_fields_do_not_disturb_each_other():
    change(actor=BEN, scope="installation", values={"cap_tokens": 120_000}, seen={})
    change(actor=ADA, scope="installation", values={"heartbeat_s": 5}, seen={})
    assert (plans.policy_for().policy.cap_tokens, plans.policy_for().policy.heartbeat_s) == (120_000, 5)


def test_support_may_not_set_even_a_sessions_policy(support_actor):
    session = store_session()
    with pytest.raises(ActionRefused):
        change(actor=support_actor, scope="session", scope_id=session.pk, values={"cap_tokens": 90_000})


def test_a_wide_change_costs_the_same_however_many_sessions_there_are():
    counts = []
    for number in (AT_ONCE + 1, 100):
        while Session.objects.count() < number:
            store_session()
        with CaptureQueriesContext(connection) as queries:
            saved = change(actor=ADA, scope="installation", values={"cap_tokens": 50_000 + number})
        assert saved.due == number
        counts.append(len(queries))
    assert counts[1] <= counts[0] < 25


def test_a_wide_change_reaches_every_session_and_only_once():
    for _ in range(AT_ONCE + 10):
        store_session()
    change(actor=ADA, scope="installation", values={"cap_tokens": 50_000})
    assert triggers() == {102_400}
    assert spread(for_s=60) == AT_ONCE + 10
    assert triggers() == {50_000}
    assert spread(for_s=60) == 0
    assert not PolicyRevision.objects.filter(is_spread=False).exists()


def test_a_spread_that_is_stopped_goes_on_where_it_was():
    for _ in range(AT_ONCE + 5):
        store_session()
    change(actor=ADA, scope="installation", values={"cap_tokens": 50_000})
    renewed = [spread(for_s=0) for _ in range(AT_ONCE + 5)]
    assert renewed == [1] * (AT_ONCE + 5)
    assert triggers() == {50_000}
    assert spread(for_s=60) == 0


def test_a_newer_wide_change_takes_the_place_of_older_ones():
    for _ in range(AT_ONCE + 1):
        store_session()
    change(actor=ADA, scope="installation", values={"cap_tokens": 50_000})
    change(actor=ADA, scope="installation", values={"cap_tokens": 60_000})
    assert PolicyRevision.objects.filter(is_spread=False).count() == 1
    assert spread(for_s=60) == AT_ONCE + 1
    assert triggers() == {60_000}


def test_a_small_project_is_renewed_with_the_change_itself():
    project = Project.objects.create(key="p", name="P")
    inside = [store_session(project=project) for _ in range(3)]
    store_session()
    assert change(actor=ADA, scope="project", scope_id=project.pk, values={"cap_tokens": 50_000}).due == 0
    assert set(Session.objects.filter(pk__in=[one.pk for one in inside]).values_list("trigger_tokens", "trigger_source")) == {
        (50_000, "project")
    }
    assert spread(for_s=60) == 0


def test_a_session_says_where_its_trigger_comes_from():
    session = store_session()
    policies.set_value(actor=ADA, scope="session", scope_id=session.pk, field="threshold_pct", value=0.5)
    session.refresh_from_db()
    assert (session.trigger_tokens, session.trigger_source) == (64_000, "session")
    change(actor=ADA, scope="session", scope_id=session.pk, values={}, unset=["threshold_pct"])
    session.refresh_from_db()
    assert (session.trigger_tokens, session.trigger_source) == (102_400, "default")
