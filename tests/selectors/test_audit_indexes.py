"""Each filter of the audit page that drives a query walks the index that was made for it, also where that holds few events."""

import pytest
from django.db import connection

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, Event
from sessions_app.selectors.audit import AuditFilters, audit_page, driving_condition

pytestmark = pytest.mark.django_db
DRIVERS = [
    ({"request": "r1"}, "event_by_request"),
    ({"gesture": "g1"}, "event_by_gesture"),
    ({"target": "t1"}, "event_by_target"),
    ({"result": "refused"}, "event_by_result"),
    ({"result": "failed"}, "event_by_result"),
    ({"action": "user.signed_in"}, "event_by_type"),
    ({"actor": "ana"}, "event_by_actor"),
    ({"stream": "security"}, "event_by_stream"),
    ({"session": "00000000-0000-0000-0000-000000000007"}, "event_by_target"),
    ({}, "event_by_time"),
]


@pytest.mark.parametrize(("chosen", "index"), DRIVERS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_filter_walks_its_index(chosen, index):
    if connection.vendor == "postgresql":  # it chooses by what it counted, and reads a table of no rows as a whole
        others = (Event(stream=f"session:{n}", seq=1, type=f"t{n}", actor_name=f"a{n}", at=f"{n:032}", hash=b"") for n in range(2_000))
        Event.objects.bulk_create(others)
        with connection.cursor() as cursor:
            cursor.execute(f'ANALYZE "{Event._meta.db_table}"')
    plan = Event.objects.filter(driving_condition(AuditFilters(**chosen))).order_by("-at", "-pk")[:101].explain()
    assert index in plan, plan


def test_events_without_a_target_a_request_or_a_fault_are_found_by_what_they_have():
    log.append("security", EventType.SIGNED_IN, actor=Actor(kind=ActorKind.USER, name="ana"))
    log.append("security", EventType.SIGNED_IN, actor=Actor(kind=ActorKind.USER, name="ana", request_id="r1"), target=("user", "7"))
    asked = ({}, {"request": "r1"}, {"target": "7"}, {"result": "allowed"}, {"result": "failed"})
    assert [len(audit_page(AuditFilters(**chosen)).events) for chosen in asked] == [2, 1, 1, 2, 0]
