"""What was in force at an entry is told by two rows, however often a session was compacted and reverted."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.terms import Lineage, SegmentKind
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Event
from sessions_app.selectors.chosen_view import in_force_then
from tests.services.compaction_scenes import fresh, long_session
from tests.stored import store_checkpoint

pytestmark = pytest.mark.django_db
ACTOR = system_actor("tests")


def compacted_often(times: int):
    """A session with a checkpoint of this console at every other entry, each reverted to the first one at once."""
    session = long_session()
    first = None
    for number in range(times):
        plan = Checkpoint(
            generation=number + 1, lineage=Lineage.CONSOLE, segments=(Segment(kind=SegmentKind.RANGE, first=1),), boundary_index=1
        )
        made = store_checkpoint(session, plan, divider=2 * number + 1)
        first = first or made
        told = log.append(
            log.session_stream(session.pk),
            EventType.COMPACTION_REVERTED,
            actor=ACTOR,
            compaction_id=first.pk,
            payload={"entry_count": 2 * number + 3},
        )
        assert told
    return fresh(session), first


def test_two_rows_tell_it_however_many_there_are():
    asked = []
    for times in (2, 14):
        session, first = compacted_often(times)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            then = in_force_then(session, None, 2 * times)
        assert then.newest == first
        asked.append(len(queries))
        told = [query["sql"] for query in queries if "sessions_app_event" in query["sql"] or "divider_index" in query["sql"]]
        assert all("LIMIT 1" in sql for sql in told), told
    assert asked[0] == asked[1] <= 5


@pytest.mark.parametrize(("at", "generation"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 1), (5, 3), (6, 1)])
def test_a_checkpoint_holds_from_its_divider_and_a_revert_from_the_length_that_it_saw(at, generation):
    session, _ = compacted_often(4)
    then = in_force_then(session, Lineage.CONSOLE, at)
    assert (then.newest.generation if then.newest else 0) == generation


def test_both_rows_are_found_by_an_index():
    session, _ = compacted_often(6)
    if connection.vendor == "postgresql":  # it chooses by what it counted
        Event.objects.bulk_create(Event(stream=f"session:{n}", seq=1, type=f"t{n}", at=f"{n:032}", hash=b"") for n in range(2_000))
        with connection.cursor() as cursor:
            cursor.execute(f'ANALYZE "{Event._meta.db_table}"')
    else:
        placed = Compaction.objects.filter(session=session, lineage=Lineage.CONSOLE, generation__isnull=False, divider_index__lte=3)
        assert "compaction_by_divider" in placed.order_by("-divider_index")[:1].explain()
    reverts = Event.objects.filter(stream=log.session_stream(session.pk), type=EventType.COMPACTION_REVERTED)
    assert "event_reverts" in reverts.order_by("-seq")[:1].explain()
