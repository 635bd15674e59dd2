"""Who looked at what is written down once per person, session and ten minutes."""

import pytest

from sessions_app.models import Event
from sessions_app.services import access
from sessions_app.services.access import record_view
from tests.stored import store_session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nobody_was_seen():
    access.seen.clear()
    yield
    access.seen.clear()


def views() -> list[tuple[str, str]]:
    return list(Event.objects.filter(type="session.viewed").order_by("seq").values_list("actor_name", "target_id"))


def test_one_event_per_person_and_session(operator_actor, support_actor):
    one, other = store_session(), store_session()
    for _ in range(3):
        record_view(actor=operator_actor, session=one)
        record_view(actor=operator_actor, session=other)
        record_view(actor=support_actor, session=one)
    assert views() == [("olga", str(one.pk)), ("olga", str(other.pk)), ("ana", str(one.pk))]


def test_after_ten_minutes_it_is_written_again(operator_actor, monkeypatch):
    session = store_session()
    record_view(actor=operator_actor, session=session)
    later = access.time.monotonic() + access.VIEW_GAP_S + 1
    monkeypatch.setattr(access.time, "monotonic", lambda: later)
    record_view(actor=operator_actor, session=session)
    assert len(views()) == 2


def test_it_stands_in_the_access_stream_of_the_day_and_not_in_the_sessions_own(operator_actor):
    session = store_session()
    record_view(actor=operator_actor, session=session)
    assert Event.objects.get(type="session.viewed").stream.startswith("access:")


def test_a_view_that_was_written_lately_costs_no_query(operator_actor, django_assert_num_queries):
    session = store_session()
    record_view(actor=operator_actor, session=session)
    with django_assert_num_queries(0):
        record_view(actor=operator_actor, session=session)
