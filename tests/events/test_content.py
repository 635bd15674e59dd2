"""The line that a hash covers is the same whoever makes it: the application, or the database."""

import uuid
from hashlib import sha256

import orjson
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.events import content, log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import Walk, newest_id, resume, verify_all
from sessions_app.models import ActorKind, Event

pytestmark = pytest.mark.django_db
EVERY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="" if connection.vendor == "sqlite" else "\x00"))
EVERY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | EVERY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(EVERY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def made_by_the_database(event: Event) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {content.expression(connection.vendor)} FROM "{Event._meta.db_table}" WHERE id = %s', [event.pk])
        return bytes(cursor.fetchone()[0])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(EVERY_TEXT, EVERY_TEXT, EVERY_JSON, EVERY_JSON, st.none() | st.uuids(), st.none() | st.integers(1, 2**31 - 1))
def test_the_database_makes_the_same_line(db, name, reason, before, value, compaction_id, step):
    actor = Actor(kind=ActorKind.USER, id=name[:8], name=name, address=reason, request_id=name)
    seq = log.append(
        "security", EventType.POLICY_CHANGED, actor=actor, target=("policy", name), reason=reason, before=before, after=value,
        payload={"value": value, name: 1}, compaction_id=compaction_id, step=step,
    ).seq  # fmt: skip
    event = Event.objects.get(stream="security", seq=seq)
    assert made_by_the_database(event) == content.of_event(event)
    assert sha256(bytes(event.previous_hash) + content.of_event(event)).digest() == bytes(event.hash)


def test_json_is_stored_as_the_text_that_is_hashed():
    said = {"z": "“é”\u2028", "a": [1e16, 2.0, {"b": None}], "": "\x00\n"}
    log.append("security", EventType.POLICY_CHANGED, actor=Actor(kind=ActorKind.CLI), payload=said)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT payload FROM "{Event._meta.db_table}"')
        stored = cursor.fetchone()[0]
    assert stored == orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()
    assert stored.encode() in content.of_event(Event.objects.get())
    assert Event.objects.get().payload == said


def test_events_whose_json_an_earlier_version_stored_with_spaces_are_whole():
    event = log.append("security", EventType.POLICY_CHANGED, actor=Actor(kind=ActorKind.CLI), payload={"a": "é", "b": 1})
    with connection.cursor() as cursor:
        stored = '{"b": 1, "a": "\\u00e9"}'
        cursor.execute(f'UPDATE "{Event._meta.db_table}" SET payload = %s WHERE seq = %s', [stored, event.seq])
    assert verify_all()[1] == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL stores no other text in a column of JSON")
def test_what_is_no_json_is_found_beside_events_that_are_whole_and_can_still_be_read():
    for stream in ("security", "imports"):
        for number in range(3):
            log.append(stream, EventType.POLICY_CHANGED, actor=Actor(kind=ActorKind.CLI), payload={"number": number})
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"""UPDATE "{Event._meta.db_table}" SET payload = '{{"number":' WHERE stream = 'imports' AND seq = 2""")
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    walk, broken = verify_all()
    assert [(verdict.stream, verdict.broken_at, verdict.reason) for verdict in broken] == [
        ("imports", 2, "its content was changed after it was written")
    ]
    assert walk.events == 6
    assert Event.objects.get(stream="imports", seq=2).payload == '{"number":'


def test_a_walk_in_small_steps_looks_at_every_event():
    for number in range(7):
        log.append("security", EventType.POLICY_CHANGED, actor=Actor(kind=ActorKind.CLI), target=("policy", str(uuid.uuid4())), step=number)
    walk = Walk(up_to=newest_id())
    while not walk.is_done:
        resume(walk, 3)
    assert (walk.events, walk.suspects) == (7, set())
