"""Whatever was done to the log afterwards is found, and called what it was."""

import json

import pytest
from django.db import transaction
from django.db.models import F

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.log import event_hash
from sessions_app.events.types import EventType
from sessions_app.events.verify import Anchor, Walk, broken_anchors, faults_of, newest_id, resume, verify_all, verify_named, verify_stream
from sessions_app.models import Event, EventStream

pytestmark = pytest.mark.django_db
ACTOR = system_actor("test")
STREAM = "session:00000000-0000-0000-0000-000000000007"


def write(number: int, stream: str = STREAM) -> None:
    for place in range(number):
        payload = {"zeta": place, "alpha": {"b": 1.5, "a": ["é", None]}}
        log.append(stream, EventType.SESSION_IMPORTED, actor=ACTOR, payload=payload, before={"b": 1, "a": 2}, reason="“quoted”\n\u2028")


def event(seq: int) -> Event:
    return Event.objects.get(stream=STREAM, seq=seq)


def renumber(first: int, by: int) -> None:
    Event.objects.filter(stream=STREAM, seq__gte=first).update(seq=F("seq") + 1_000_000)
    Event.objects.filter(stream=STREAM, seq__gte=1_000_000).update(seq=F("seq") - 1_000_000 + by)


def change_content():
    Event.objects.filter(stream=STREAM, seq=3).update(actor_name="somebody else")


def change_content_and_its_hash():
    changed = event(3)
    changed.actor_name = "somebody else"
    changed.hash = event_hash(changed)
    changed.save()


def remove_from_the_middle():
    event(3).delete()


def remove_several():
    Event.objects.filter(stream=STREAM, seq__in=(3, 4)).delete()


def remove_and_number_anew():
    event(3).delete()
    renumber(4, -1)
    EventStream.objects.filter(name=STREAM).update(last_seq=5)


def remove_the_tail():
    Event.objects.filter(stream=STREAM, seq__gt=4).delete()


def remove_all():
    Event.objects.filter(stream=STREAM).delete()


def reorder():
    renumber_one(3, 1_000)
    renumber_one(4, 3)
    renumber_one(1_000, 4)


def renumber_one(seq: int, to: int) -> None:
    Event.objects.filter(stream=STREAM, seq=seq).update(seq=to)


def insert():
    renumber(3, 1)
    made = event(2)
    made.pk, made.seq, made.previous_hash, made.reason = None, 3, bytes(event(2).hash), "made up"
    made.hash = event_hash(made)
    made.save()
    EventStream.objects.filter(name=STREAM).update(last_seq=7)


def set_the_head_back():
    EventStream.objects.filter(name=STREAM).update(last_seq=4, last_hash=bytes(event(4).hash))


def remove_the_head():
    EventStream.objects.filter(name=STREAM).delete()


def blank_the_head():
    EventStream.objects.filter(name=STREAM).update(last_seq=0, last_hash=b"")


def forge_the_end():
    last = event(6)
    last.reason = "forged"
    last.hash = event_hash(last)
    last.save()


TAMPERINGS = [
    (change_content, 3, "its content was changed"),
    (change_content_and_its_hash, 4, "does not follow from event 3: that one was replaced"),
    (remove_from_the_middle, 3, "event 3 is missing"),
    (remove_several, 3, "events 3 to 4 are missing"),
    (remove_and_number_anew, 3, "written as event 4: events before it were removed"),
    (remove_the_tail, 5, "events at its end are missing: its head names event 6"),
    (remove_all, 1, "events at its end are missing: its head names event 6"),
    (reorder, 3, "written as event 4: events were put in another order"),
    (insert, 4, "written as event 3: an event was put in before it"),
    (set_the_head_back, 7, "its head was set back to event 4"),
    (remove_the_head, 7, "its head is missing"),
    (blank_the_head, 7, "its head was set back to event 0"),
    (forge_the_end, 7, "its last event is not the one that its head names"),
]


@pytest.mark.parametrize(("tamper", "at", "reason"), TAMPERINGS, ids=lambda value: getattr(value, "__name__", ""))
def test_every_tampering_is_found_and_called_what_it_is(tamper, at, reason):
    write(6)
    write(3, "security")
    tamper()
    verdict = verify_stream(STREAM)
    assert (verdict.broken_at, reason in verdict.reason) == (at, True), verdict.reason
    walk, broken = verify_all()
    assert broken == [verdict]
    assert walk.is_done


def test_a_whole_log_is_whole_also_when_its_streams_were_written_in_turns():
    for _ in range(3):
        write(2)
        write(1, "security")
        write(2, "access:2026-11-30")
    walk, broken = verify_all()
    assert (walk.events, broken) == (15, [])


def test_a_walk_that_another_process_takes_up_finds_the_same():
    write(5)
    write(5, "security")
    change_content()
    one = Walk(up_to=newest_id())
    while not one.is_done:
        one = Walk(up_to=one.up_to, last_id=one.last_id, events=one.events, suspects=one.suspects)
        resume(one, 3)
    assert one.events == 10
    assert [verdict.stream for verdict in faults_of(one)] == [STREAM]


def test_events_that_come_during_a_walk_break_nothing():
    write(4)
    walk = Walk(up_to=newest_id())
    resume(walk, 2)
    write(2)
    while not walk.is_done:
        resume(walk, 2)
    assert (walk.events, faults_of(walk)) == (4, [])


def test_an_end_that_was_cut_off_together_with_its_head_is_only_found_by_a_head_kept_elsewhere():
    write(6)
    kept = Anchor(STREAM, 6, bytes(event(6).hash))
    with transaction.atomic():
        remove_the_tail()
        EventStream.objects.filter(name=STREAM).update(last_seq=4, last_hash=bytes(event(4).hash))
    assert verify_stream(STREAM).broken_at is None
    assert [(verdict.broken_at, "missing" in verdict.reason) for verdict in broken_anchors([kept])] == [(6, True)]
    write(2)
    assert ["another event" in verdict.reason for verdict in broken_anchors([kept])] == [True]


def test_a_stream_without_events_is_whole_and_one_that_somebody_names_must_exist():
    assert verify_stream("session:nothing").broken_at is None
    assert verify_named("session:nothing").reason == "there is no such stream"
    write(1)
    assert verify_named(STREAM).broken_at is None


@pytest.fixture
def verify_events(capsys):
    from django.core.management import call_command

    def run(*arguments: str) -> tuple[int, str]:
        try:
            call_command("verify_events", *arguments)
            code = 0
        except SystemExit as end:
            code = int(end.code)
        return code, capsys.readouterr().out

    return run


def test_the_command_says_in_its_exit_code_what_it_found(verify_events):
    write(3)
    assert verify_events() == (0, "1 streams with 3 events are as they were written.\n")
    change_content()
    code, said = verify_events()
    assert code == 1
    assert f"{STREAM}: broken at event 3: its content was changed" in said
    assert Event.objects.filter(type="audit.verified").values_list("result", flat=True).last() == "failed"


def test_one_stream_can_be_verified_alone(verify_events):
    write(3)
    write(2, "security")
    change_content()
    assert verify_events("--stream", "security")[0] == 0
    assert verify_events("--stream", STREAM)[0] == 1


def test_heads_that_were_kept_elsewhere_are_compared(verify_events, tmp_path):
    write(6)
    code, said = verify_events("--json")
    document = json.loads(said)
    assert (code, document["intact"], document["events"]) == (0, True, 6)
    assert document["heads"][0] == {"stream": STREAM, "seq": 6, "hash": bytes(event(6).hash).hex()}
    kept = tmp_path / "heads.json"
    kept.write_text(said)
    assert verify_events("--heads", str(kept))[0] == 0
    remove_the_tail()
    EventStream.objects.filter(name=STREAM).update(last_seq=4, last_hash=bytes(event(4).hash))
    code, said = verify_events("--heads", str(kept))
    assert code == 1
    assert "the end was cut off, and its head with it" in said


@pytest.mark.parametrize("content", ["", "not json", '{"complete": true}', "[1, 2]", '{"stream": "a", "seq": 1, "hash": "xyz"}'])
def test_a_file_without_heads_is_refused_in_words(content, tmp_path):
    from django.core.management import call_command

    from sessions_app.management.exits import CommandFailure

    path = tmp_path / "heads.json"
    path.write_text(content)
    with pytest.raises(CommandFailure, match=r"Nothing was verified") as refused:
        call_command("verify_events", "--heads", str(path))
    assert refused.value.returncode == 2


def test_several_processes_find_what_one_finds(tmp_path):
    import os
    import subprocess
    import sys

    script = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from sessions_app.events import log, verify
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Event
for number in range(40):
    log.append(f"session:{number % 3}", EventType.ENTRIES_APPENDED, actor=system_actor("test"), payload={"number": number})
verify.MANY_EVENTS = 1
walk, broken = verify.verify_all(processes=3)
assert (walk.events, broken) == (40, []), broken
Event.objects.filter(stream="session:1", seq=9).update(reason="changed")
Event.objects.filter(stream="session:2", seq=4).delete()
walk, broken = verify.verify_all(processes=3)
print([(verdict.stream, verdict.broken_at) for verdict in broken])
"""
    environment = {**os.environ, "PALIMPSEST_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "project.settings.embedded"}
    said = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "[('session:1', 9), ('session:2', 4)]"
