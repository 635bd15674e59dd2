"""The event log: gap-free streams, each a hash chain, told after commit."""

import threading
import uuid

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import verify_stream
from sessions_app.models import Event, EventResult

ACTOR = system_actor("test")
STREAM = f"session:{uuid.UUID(int=7)}"

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


def append(**fields):
    return log.append(STREAM, EventType.SESSION_IMPORTED, actor=ACTOR, **fields)


def test_sequences_of_a_stream_have_no_gap_and_streams_count_apart(db):
    assert [append().seq for _ in range(5)] == [1, 2, 3, 4, 5]
    assert log.append("security", EventType.SIGNED_IN, actor=ACTOR).seq == 1


def test_a_rolled_back_event_leaves_no_gap(db):
    append()
    with transaction.atomic():
        append()
        transaction.set_rollback(True)
    assert append().seq == 2
    assert verify_stream(STREAM).broken_at is None


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(values=st.lists(st.tuples(plain_json, plain_json, st.text("xyz \n\u2028é")), min_size=1, max_size=4))
def test_whatever_an_event_says_it_verifies_after_being_read_back(db, values):
    for before, after, reason in values:
        append(before=before, after=after, reason=reason, compaction_id=uuid.uuid4(), step=1, payload={"value": after})
    verdict = verify_stream(STREAM)
    assert verdict.broken_at is None, verdict.reason
    assert verdict.events == Event.objects.filter(stream=STREAM).count()


@pytest.mark.parametrize(
    ("field", "value"),
    [("actor_name", "somebody else"), ("result", EventResult.REFUSED), ("payload", {"a": 2}), ("at", "2020-01-01T00:00:00.000000+00:00")],
)
def test_an_event_that_was_changed_afterwards_is_found(db, field, value):
    for _ in range(3):
        append(payload={"a": 1})
    Event.objects.filter(stream=STREAM, seq=2).update(**{field: value})
    verdict = verify_stream(STREAM)
    assert verdict.broken_at == 2
    assert "changed" in verdict.reason


@pytest.mark.parametrize(("removed", "broken_at"), [(1, 1), (2, 2), (3, 3)])
def test_an_event_that_was_removed_is_found_also_at_the_end(db, removed, broken_at):
    for _ in range(3):
        append()
    Event.objects.filter(stream=STREAM, seq=removed).delete()
    assert verify_stream(STREAM).broken_at == broken_at


@pytest.mark.django_db(transaction=True)
def test_writers_on_several_threads_neither_skip_nor_repeat_a_sequence():
    def write():
        for _ in range(25):
            append()
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(Event.objects.filter(stream=STREAM).order_by("seq").values_list("seq", flat=True)) == list(range(1, 101))
    assert verify_stream(STREAM).broken_at is None
