"""The doctor: every harm that a session may come to is found, said, and set right where it can be, and a whole one has nothing."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from sessions_app.engine.terms import Status
from sessions_app.models import (
    Blob,
    Compaction,
    Entry,
    Event,
    Lease,
    SearchBlock,
    Session,
    SessionStatus,
    Turn,
    ViewSegment,
)
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import plans
from sessions_app.services import forks, overrides, search_index, signals
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.doctor.examination import all_ids, examine
from sessions_app.services.doctor.findings import Check, Finding, in_order, named
from sessions_app.services.doctor.repairs import repair
from sessions_app.services.imports.runs import import_paths
from sessions_app.services.turns import claims
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import retry, send
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


@pytest.fixture
def admin_actor(support_actor):
    from dataclasses import replace

    return replace(support_actor, name="ada", role="admin")


@pytest.fixture
def session(support_actor) -> Session:
    """Held here, compacted twice, with a pin, an answered turn, and all of it in the index."""
    session = long_session(kind="inline", provider="scripted", model="scripted", agent="palimpsest")
    for _ in range(2):
        run_compaction(request(actor=support_actor, session=fresh(session)).compaction.pk)
        grow(session, 4)
        signals.refresh(session.pk)
    overrides.pin(actor=support_actor, session=fresh(session), index=4)
    send(actor=support_actor, session=session, text="What is left?")
    assert run_turn(session.pk)
    search_index.index_sessions([session.pk])
    assert fresh(session).last_generation == 2
    return session


def found(session: Session) -> list[Check]:
    return [finding.check for finding in examine(session.pk).findings]


def rows(session: Session):
    return Entry.objects.filter(session=session)


def active(session: Session):
    return Compaction.objects.filter(pk=fresh(session).active_console_id)


def of(session: Session, **columns: object) -> None:
    Session.objects.filter(pk=session.pk).update(**columns)


def test_a_session_that_is_whole_has_nothing(session):
    examined = examine(session.pk)
    assert (examined.findings, examined.is_healthy) == ((), True)
    assert examine(uuid.uuid4()) is None


def open_attempt(session: Session, support_actor) -> Compaction:
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    assert lease.claim(attempt.pk)
    Lease.objects.filter(session=session).update(expires_at=Now())
    return attempt


HARMS: dict[str, tuple[Check, Callable[[Session], object]]] = {
    "compacting, and nothing runs": (Check.STATUS_STUCK, lambda session: of(session, status=SessionStatus.COMPACTING)),
    "working, and no turn runs": (Check.STATUS_STUCK, lambda session: of(session, status=SessionStatus.WORKING)),
    "running is over": (
        Check.STATUS_STUCK,
        lambda session: of(session, running=fresh(session).active_console_id, status=SessionStatus.COMPACTING),
    ),
    "numbers behind": (Check.NUMBERS_BEHIND, lambda session: of(session, last_generation=0, last_attempt=1)),
    "count of compactions": (Check.NUMBERS_BEHIND, lambda session: of(session, compaction_count=7)),
    "too few entries": (Check.SUMS_WRONG, lambda session: of(session, entry_count=fresh(session).entry_count - 3)),
    "too many entries": (Check.SUMS_WRONG, lambda session: of(session, entry_count=fresh(session).entry_count + 3)),
    "tokens": (Check.SUMS_WRONG, lambda session: of(session, tokens_total=1)),
    "head": (Check.SUMS_WRONG, lambda session: of(session, head_hash=b"")),
    "failures": (Check.SUMS_WRONG, lambda session: of(session, failure_count=9)),
    "a prefix sum": (Check.SUMS_WRONG, lambda session: rows(session).filter(index=9).update(prefix_tokens=1)),
    "all prefix sums": (Check.SUMS_WRONG, lambda session: rows(session).update(prefix_tokens=5)),
    "a pin that is lost": (Check.OVERRIDES_DIFFER, lambda session: of(session, overrides={})),
    "decisions that nobody can read": (Check.OVERRIDES_DIFFER, lambda session: of(session, overrides={"pinned": ["four"]})),
    "no plan": (Check.CHECKPOINT_BROKEN, lambda session: ViewSegment.objects.filter(compaction__in=active(session)).delete()),
    "a plan that nobody can read": (
        Check.CHECKPOINT_BROKEN,
        lambda session: ViewSegment.objects.filter(compaction__in=active(session), kind="synthetic").update(payload={"role": "robot"}),
    ),
    "a plan without its block": (
        Check.CHECKPOINT_BROKEN,
        lambda session: ViewSegment.objects.filter(compaction__in=active(session), kind="synthetic").update(payload=None),
    ),
    "a plan of entries that are not there": (
        Check.CHECKPOINT_BROKEN,
        lambda session: ViewSegment.objects.filter(compaction__in=active(session), kind="range", last_index=None).update(first_index=9_999),
    ),
    "a checkpoint that never was one": (Check.CHECKPOINT_BROKEN, lambda session: active(session).update(status=Status.FAILED)),
    "a boundary of another history": (Check.CHECKPOINT_BROKEN, lambda session: active(session).update(prefix_hash=b"x" * 32)),
    "no index before": (Check.INDEX_GAP, lambda session: SearchBlock.objects.filter(session=session, first_index=0).update(first_index=3)),
    "an index of more than there is": (
        Check.INDEX_GAP,
        lambda session: SearchBlock.objects.filter(session=session).update(last_index=9_999),
    ),
    "a time to come": (Check.TIME_DOUBTFUL, lambda session: of(session, last_activity_at=datetime(9999, 12, 1, tzinfo=UTC))),
    "a time long gone": (Check.TIME_DOUBTFUL, lambda session: of(session, last_activity_at=datetime(1, 1, 1, tzinfo=UTC))),
    "an end that is not told": (
        Check.END_UNTOLD,
        lambda session: Event.objects.filter(compaction_id=fresh(session).active_console_id, type="compaction.persisted").update(
            type="compaction.heartbeat"
        ),
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_every_harm_is_found_said_and_set_right_once_with_one_event_and_no_entry_is_touched(session, admin_actor, harm):
    check, do = HARMS[harm]
    history = history_digest(session)
    do(session)
    (finding,) = (finding for finding in examine(session.pk).findings if finding.check not in (Check.EVENTS_BROKEN,))
    assert finding.check is check
    assert finding.what.endswith(".")
    assert finding.meaning.endswith(".")
    assert finding.repair.endswith(".")
    events = Event.objects.count()
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert check not in found(session)
    event = Event.objects.order_by("-pk").first()
    assert (Event.objects.count() - events, event.actor_name, event.stream) == (1, "ada", f"session:{session.pk}")
    assert not repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert Event.objects.count() - events == 1
    assert history_digest(session) == history


def test_a_dry_run_changes_nothing(session):
    for _, do in HARMS.values():
        do(session)
    before = Event.objects.count(), list(Session.objects.values()), list(rows(session).order_by("index").values())
    assert {Check.SUMS_WRONG, Check.CHECKPOINT_BROKEN, Check.INDEX_GAP} <= set(found(session))
    assert (Event.objects.count(), list(Session.objects.values()), list(rows(session).order_by("index").values())) == before


def test_all_harms_at_once_are_set_right_in_the_order_in_which_they_are_told(session, admin_actor):
    for _, do in HARMS.values():
        do(session)
    for finding in examine(session.pk).findings:
        if finding.can_be_repaired:
            repair(actor=admin_actor, session_id=session.pk, finding=finding)
    left = [check for check in found(session) if check is not Check.EVENTS_BROKEN]
    assert left == []


def test_after_its_repair_a_session_works_again_to_which_nothing_could_be_added(session, admin_actor, support_actor):
    of(session, entry_count=fresh(session).entry_count - 3)
    turn = send(actor=support_actor, session=session, text="And now?")
    assert not run_turn(session.pk)
    (finding,) = examine(session.pk).findings
    assert "messages fail" in finding.meaning
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert fresh(turn).reason == "not_delivered"
    again = retry(actor=support_actor, session=fresh(session), turn_id=turn.pk)
    assert run_turn(session.pk)
    assert fresh(again).status == "completed"
    assert found(session) == []


def test_a_broken_checkpoint_gives_way_to_the_newest_whole_one_and_else_to_the_whole_history(session, admin_actor):
    first = Compaction.objects.get(session=session, generation=1)
    ViewSegment.objects.filter(compaction__generation=2).delete()
    (finding,) = examine(session.pk).findings
    assert (finding.facts["goes_to"], "#1" in finding.repair) == (1, True)
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert fresh(session).active_console == first
    event = Event.objects.order_by("-pk").first()
    assert (event.type, event.before, event.after) == ("compaction.reverted", {"generation": 2}, {"generation": 1})
    ViewSegment.objects.filter(compaction=first).delete()
    (finding,) = examine(session.pk).findings
    assert "the whole history" in finding.repair
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert fresh(session).active_console is None
    assert found(session) == []


def test_a_broken_checkpoint_does_not_give_way_to_one_that_somebody_went_back_from(session, admin_actor, support_actor):
    revert(actor=support_actor, session=fresh(session), generation=1)
    ViewSegment.objects.filter(compaction__generation=1).delete()
    finding = examine(session.pk).findings[0]
    assert (finding.check, finding.facts["goes_to"]) == (Check.CHECKPOINT_BROKEN, None)
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert fresh(session).active_console is None


def test_an_attempt_and_a_turn_of_workers_that_are_gone_are_ended(session, admin_actor, support_actor):
    attempt = open_attempt(session, support_actor)
    assert found(session) == [Check.WORKER_LOST]
    (finding,) = examine(session.pk).findings
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, "worker_lost")
    send(actor=support_actor, session=session, text="Are you there?")
    assert claims.claim(session.pk)
    assert found(session) == []  # it is at work
    Turn.objects.filter(status="running").update(lease_expires_at=Now())
    (finding,) = examine(session.pk).findings
    assert (finding.check, finding.facts["kind"]) == (Check.WORKER_LOST, "turn")
    assert repair(actor=admin_actor, session_id=session.pk, finding=finding)
    assert Turn.objects.order_by("-number").first().reason == "worker_lost"
    assert found(session) == []


def test_what_no_repair_can_help_is_told_with_what_is_left_to_do(session):
    rows(session).filter(index=2).update(parts='[{"kind":"no')
    rows(session).filter(index=5).update(parts='[{"kind":"text","text":"Something else."}]')
    rows(session).filter(index=7).delete()
    told = {finding.check: finding for finding in examine(session.pk).findings}
    assert told[Check.ENTRY_UNREADABLE].facts["entries"] == [2]
    assert told[Check.HISTORY_CHANGED].facts == {"missing": [7], "changed": [2, 5]}
    assert not any(told[check].can_be_repaired for check in (Check.ENTRY_UNREADABLE, Check.HISTORY_CHANGED))


def test_a_blob_that_is_gone_and_has_no_source_is_told(session, admin_actor):
    digest = "0" * 64
    stored = f'[{{"kind":"result","text":"The beginning","call_id":"call-0","blob":"{digest}","chars":50000}}]'
    rows(session).filter(index=2).update(parts=stored)
    finding = next(finding for finding in examine(session.pk).findings if finding.check is Check.BLOB_MISSING)
    assert finding.facts == {"entries": [2], "blobs": [digest], "count": 1}
    assert not repair(actor=admin_actor, session_id=session.pk, finding=finding)


def test_a_blob_that_is_gone_is_taken_anew_from_the_original_records(admin_actor, tmp_path):
    words = "The reader yields one record at a time. " * 2_000
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": words}]}))
    run = import_paths(actor=admin_actor, paths=[file])
    assert run.state == "completed", run.files
    (long,) = Entry.objects.filter(parts__contains='"blob"')
    search_index.index_sessions([long.session_id])
    before = list(plans.load_entries(long.session_id, whole=True))
    assert found(long.session) == []
    Blob.objects.all().delete()
    (finding,) = examine(long.session_id).findings
    assert (finding.check, finding.facts["entries"]) == (Check.BLOB_MISSING, [long.index])
    assert repair(actor=admin_actor, session_id=long.session_id, finding=finding)
    assert found(long.session) == []
    assert list(plans.load_entries(long.session_id, whole=True)) == before
    assert before[long.index].text.strip() == words.strip()


def test_events_that_were_changed_are_told(session):
    event = Event.objects.filter(stream=f"session:{session.pk}").order_by("seq")[2]
    Event.objects.filter(pk=event.pk).update(reason="because")
    finding = next(finding for finding in examine(session.pk).findings if finding.check is Check.EVENTS_BROKEN)
    assert (finding.facts["seq"], finding.can_be_repaired) == (event.seq, False)


def test_pairs_that_do_not_fit_are_notes(support_actor):
    session = long_session()
    rows(session).filter(kind="call", call_id="call-1").update(call_id="other", parts='[{"kind":"call","name":"Bash","call_id":"other"}]')
    search_index.index_sessions([session.pk])
    told = {finding.check: finding for finding in examine(session.pk).findings}
    assert told[Check.RESULT_LEFT_OUT].facts["entries"] == [6]
    assert told[Check.CALL_ANSWERED].facts == {"entries": [5], "calls": ["other"], "count": 1}
    assert all(told[check].is_note for check in (Check.RESULT_LEFT_OUT, Check.CALL_ANSWERED))


def test_the_copies_of_a_fork_are_whole_and_one_that_was_left_is_removed(session, admin_actor, support_actor, monkeypatch):
    copy = forks.fork(actor=support_actor, session=fresh(session))
    search_index.index_sessions([copy.pk])
    assert found(copy) == []
    monkeypatch.setattr(forks, "_remove", lambda *_: False)
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(forks, "_copy_policy", lambda *_: 1 / 0)
        forks.fork(actor=support_actor, session=fresh(session))
    monkeypatch.undo()
    left = Session.objects.get(is_complete=False)
    assert found(left) == []  # it may be under way
    of(left, changed_at=timezone.now() - timedelta(hours=1))
    (finding,) = examine(left.pk).findings
    assert finding.check is Check.FORK_UNFINISHED
    assert repair(actor=admin_actor, session_id=left.pk, finding=finding)
    assert not Session.objects.filter(pk=left.pk).exists()


def test_all_are_looked_at_also_those_that_no_list_shows(session):
    of(session, archived=True)
    hidden = long_session(is_complete=False)
    assert set(all_ids()) == {session.pk, hidden.pk}
    (finding,) = examine(hidden.pk).findings
    assert (finding.check, finding.can_be_repaired) == (Check.IMPORT_UNFINISHED, False)


def test_who_may_not_repair_is_refused_and_that_is_written_down(session, support_actor):
    of(session, tokens_total=1)
    (finding,) = examine(session.pk).findings
    with pytest.raises(ActionRefused):
        repair(actor=support_actor, session_id=session.pk, finding=finding)
    assert found(session) == [Check.SUMS_WRONG]


def test_findings_are_in_the_order_of_what_can_be_done():
    made = [Finding(check, "What.", "Meaning.", repair) for check, repair in zip(Check, cycle(("", "Yes.")), strict=False)]
    told = [(finding.is_note, finding.can_be_repaired) for finding in in_order(made)]
    assert told == sorted(told, key=lambda one: (one[0], not one[1]))


def test_numbers_are_named_in_words():
    assert named([4]) == "entry 4"
    assert named([4, 9, 1_100]) == "entries 4, 9 and 1,100"
    assert named(range(40)).endswith("9 … (40 in all)")
