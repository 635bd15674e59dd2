"""Drafts: an attempt stops before its commit, a person words its summary otherwise, commits or discards it."""

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.engine import revision
from sessions_app.engine.terms import OPEN_STATUSES, Status
from sessions_app.models import Compaction, Entry, Event, Lease, Session
from sessions_app.selectors import plans
from sessions_app.selectors.drafts_page import draft_page, result_of, waiting_drafts
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.cancel import UnknownCompaction, cancel
from sessions_app.services.compactions.lease import claim
from sessions_app.services.compactions.request import InvalidRequest, request
from sessions_app.services.compactions.revert import CompactionUnderWay, revert
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy, steps_of, view_hash

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("queue_of_nobody")]


def drafted(actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=fresh(session), changes={"review_before_commit": True}, **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def committed(actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=fresh(session), **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def block_of(compaction: Compaction) -> str:
    return next(segment.payload["text"] for segment in compaction.segments.all() if segment.payload)


def test_a_draft_changes_nothing_and_leaves_the_session_free(support_actor):
    session = long_session()
    before, told = view_hash(session), history_digest(session)
    draft = drafted(support_actor, session)
    assert (draft.status, draft.outcome, draft.generation, draft.finished_at) == (Status.DRAFTED, "", None, None)
    assert (view_hash(session), history_digest(session)) == (before, told)
    assert fresh(session).status == "idle"
    assert fresh(session).running_id is None
    assert not Lease.objects.filter(token__isnull=False).exists()


def test_the_policy_asks_for_a_review_as_the_request_does(support_actor):
    session = long_session()
    set_policy(session, review_before_commit=True)
    assert committed(support_actor, session).status == Status.DRAFTED


def test_a_request_may_go_without_the_review_that_the_policy_asks_for(support_actor):
    session = long_session()
    set_policy(session, review_before_commit=True)
    assert committed(support_actor, session, changes={"review_before_commit": False}).status == Status.COMPLETED


def test_a_change_that_no_policy_may_have_is_refused_by_its_name(support_actor):
    with pytest.raises(InvalidRequest, match="threshold_pct must lie between") as refusal:
        request(actor=support_actor, session=long_session(), changes={"threshold_pct": 7})
    assert refusal.value.field == "threshold_pct"
    assert not Compaction.objects.exists()


def test_a_draft_that_nobody_edited_commits_what_the_attempt_itself_would_have(support_actor):
    plain, reviewed = long_session(), long_session()
    once = committed(support_actor, plain)
    draft = drafted(support_actor, reviewed)
    done = drafts.commit_draft(actor=support_actor, session=fresh(reviewed), compaction_id=draft.pk)
    assert (done.status, done.outcome, done.generation) == (Status.COMPLETED, "committed", 1)
    assert view_hash(reviewed) == view_hash(plain)
    names = ("summary", "tokens_before", "tokens_after", "entries_folded", "entries_kept", "retention", "boundary_index", "warnings")
    assert [getattr(done, name) for name in names] == [getattr(once, name) for name in names]


def test_a_commit_calls_no_summariser(support_actor, monkeypatch):
    session = long_session()
    draft = drafted(support_actor, session)
    monkeypatch.setattr("sessions_app.engine.extractive.ExtractiveSummariser.summarise", lambda *_: pytest.fail("a summariser was asked"))
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\nGo on.")
    assert drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk).status == Status.COMPLETED


def test_an_edited_summary_is_what_the_model_reads_and_the_rest_of_the_block_stays(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    made = result_of(draft)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\nWorded by ana.\r\nTwo lines.")
    done = drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    assert done.summary == "## Next step\nWorded by ana.\nTwo lines."
    assert block_of(done) == made.block.replace(made.summary.strip(), done.summary)
    assert "Worded by ana." in str(plans.load_view(fresh(session))[0])


def test_an_edit_says_what_the_view_would_come_to_which_headings_are_missing_and_what_is_lost(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    kept = draft.retention["total"]["kept"]
    version = drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\nGo on.")
    after = fresh(draft)
    assert version.tokens_after == after.tokens_after < result_of(draft).tokens_after
    assert any("lacks these sections" in warning and "“Current work”" in warning for warning in after.warnings)
    assert after.retention["total"]["kept"] < kept
    back = drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text=result_of(draft).summary)
    assert (back.version, back.tokens_after) == (3, result_of(draft).tokens_after)
    assert fresh(draft).retention == draft.retention
    assert fresh(draft).warnings == draft.warnings


def test_credentials_that_somebody_writes_into_a_draft_are_taken_out_and_it_says_so(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    key = "sk-ant-api03-" + "Ab3" * 30
    version = drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text=f"## Next step\nUse {key}.")
    assert key not in version.text
    assert any("credential" in warning for warning in fresh(draft).warnings)


def test_what_was_appended_while_a_draft_waited_stands_behind_it(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    grow(session, 2)
    done = drafts.commit_draft(actor=support_actor, session=fresh(session), compaction_id=draft.pk)
    added = plans.tokens_between(session.pk, draft.draft.entry_count, done.divider_index - 1)
    assert done.tokens_before == draft.tokens_before + added
    assert done.tokens_after == draft.tokens_after + added == plans.view_tokens(fresh(session), plans.load_checkpoint(done))


def test_events_tell_who_changed_what_by_hashes_and_never_by_a_word_of_it(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\nxyzzy-plugh")
    drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    events = {event.type: event for event in Event.objects.filter(compaction_id=draft.pk)}
    first, second = (hashlib.sha256(text.encode()).hexdigest() for text in (draft.summary, "## Next step\nxyzzy-plugh"))
    assert events["compaction.drafted"].after["summary_sha256"] == first
    assert (events["draft.edited"].before["summary_sha256"], events["draft.edited"].after["summary_sha256"]) == (first, second)
    assert (events["draft.committed"].before["version"], events["draft.committed"].after["version"]) == (1, 2)
    assert {events[name].actor_name for name in ("draft.edited", "draft.committed", "compaction.persisted")} == {"ana"}
    assert not any("xyzzy" in str((event.before, event.after, event.payload)) for event in events.values())
    assert [status for _, _, status in steps_of(draft)] == ["started", "observed", "observed", "completed"]


def test_discarding_ends_the_attempt_as_cancelled_and_keeps_its_text(support_actor):
    session = long_session()
    before = view_hash(session)
    draft = drafted(support_actor, session)
    done = drafts.discard(actor=support_actor, session=session, compaction_id=draft.pk)
    assert (done.status, done.outcome, done.reason) == (Status.CANCELLED, "cancelled", "discarded")
    assert done.summary == draft.summary
    assert view_hash(session) == before
    assert [status for _, _, status in steps_of(draft)][-1] == "cancelled"
    with pytest.raises(drafts.NotADraft, match="it is cancelled"):
        drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)


def test_another_attempt_may_run_while_a_draft_waits_and_its_commit_makes_the_draft_stale(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    other = committed(support_actor, session)
    assert other.status == Status.COMPLETED
    assert (fresh(draft).status, fresh(draft).outcome) == (Status.STALE, "stale")
    assert "Another compaction of this session was committed" in draft.explanation
    assert draft.finished_at is not None


def test_of_two_drafts_the_second_is_stale_once_the_first_is_committed(support_actor):
    session = long_session()
    first, second = drafted(support_actor, session), drafted(support_actor, session)
    assert [row.compaction.pk for row in waiting_drafts(session)] == [first.pk, second.pk]
    drafts.commit_draft(actor=support_actor, session=session, compaction_id=first.pk)
    assert fresh(second).status == Status.STALE
    assert waiting_drafts() == ()


def test_a_draft_is_not_committed_while_an_attempt_is_open_and_can_be_afterwards(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    other = request(actor=support_actor, session=fresh(session)).compaction
    with pytest.raises(CompactionUnderWay, match="not committed"):
        drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    cancel(actor=support_actor, session=session, compaction_id=other.pk)
    assert drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk).status == Status.COMPLETED


def test_a_draft_ends_as_stale_when_what_it_folds_is_rewound(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    before = view_hash(session)
    Entry.objects.filter(session=session, index=2).update(off_branch=True)
    assert "changed after this draft was made" in draft_page(session, draft.pk).fitness.why
    rewound = view_hash(session)
    done = drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    assert (done.status, done.outcome) == (Status.STALE, "stale")
    assert "Nothing of it was used" in done.explanation
    assert view_hash(session) == rewound != before


def test_a_draft_whose_base_was_reverted_waits_until_it_is_shown_again(support_actor):
    session = long_session()
    committed(support_actor, session)
    grow(session, 8)
    draft = drafted(support_actor, session)
    assert draft.status == Status.DRAFTED, draft.explanation
    revert(actor=support_actor, session=fresh(session), generation=None)
    with pytest.raises(drafts.DraftBlocked, match="made of generation #1, and the view is the whole history now"):
        drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    assert fresh(draft).status == Status.DRAFTED
    revert(actor=support_actor, session=fresh(session), generation=1)
    done = drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    assert (done.generation, done.parent.generation) == (2, 1)


def test_who_edits_an_older_version_is_told_and_nothing_is_saved(support_actor, operator_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="One.", base_version=1)
    with pytest.raises(drafts.DraftChanged, match="ana saved version 2 while you edited version 1"):
        drafts.edit(actor=operator_actor, session=session, compaction_id=draft.pk, text="Another.", base_version=1)
    with pytest.raises(drafts.DraftChanged, match="Nothing was committed"):
        drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk, version=1)
    assert draft.summary_versions.count() == 2


@pytest.mark.parametrize(("text", "words"), [(" \n\t", "can't be empty"), ("x" * 200_001, "200,000 characters")])
def test_a_text_that_is_no_summary_is_refused(support_actor, text, words):
    session = long_session()
    draft = drafted(support_actor, session)
    with pytest.raises(drafts.InvalidSummary, match=words):
        drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text=text)


def test_the_same_text_again_is_no_new_version(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    assert drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text=f"\r\n{draft.summary}\r\n").version == 1


def test_a_task_that_comes_again_cannot_run_a_draft(support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    assert claim(draft.pk) is None
    run_compaction(draft.pk)
    assert fresh(draft).status == Status.DRAFTED


def test_a_draft_of_another_session_is_not_to_be_had(support_actor):
    session, other = long_session(), long_session()
    draft = drafted(support_actor, session)
    for decide in (drafts.commit_draft, drafts.discard):
        with pytest.raises(UnknownCompaction):
            decide(actor=support_actor, session=other, compaction_id=draft.pk)


def test_a_committed_draft_is_reverted_and_restored_byte_for_byte(support_actor):
    session = long_session()
    plain = view_hash(session)
    draft = drafted(support_actor, session)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\nWorded by ana.")
    drafts.commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    shown = view_hash(session)
    revert(actor=support_actor, session=fresh(session), generation=None)
    assert view_hash(session) == plain
    revert(actor=support_actor, session=fresh(session), generation=1)
    assert view_hash(session) == shown


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=300).filter(str.strip))
def test_whatever_is_written_into_a_draft_changes_the_summary_and_nothing_else(support_actor, text):
    session = long_session(6)
    made = result_of(drafted(support_actor, session))
    worded = revision.reworded(made, text)
    opening, rest = made.block.split("\n\n", 1)
    assert worded.block.startswith(opening)
    assert worded.block.endswith(rest.removeprefix(made.summary.strip()))
    assert worded.tokens_after - worded.block_tokens == made.tokens_after - made.block_tokens
    assert worded.block.count("<compacted-history>") == worded.block.count("</compacted-history>") == 1
    assert revision.reworded(worded, made.summary).block == made.block


def test_no_status_of_a_draft_is_open():
    assert Status.DRAFTED not in OPEN_STATUSES
    assert not Status.DRAFTED.is_terminal
