"""`manage.py drafts` and `draft`: what waits for a review is read, worded otherwise, committed and discarded, as on its page."""

import io
import json

import pytest

from sessions_app.engine.terms import Status
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, Entry
from sessions_app.permissions import ActionRefused
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session, view_hash
from tests.services.test_drafts import committed, drafted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]

WORDS = "## Goal\nThe summary that a person wrote.\n"


@pytest.fixture
def draft(support_actor) -> Compaction:
    return drafted(support_actor, long_session())


def part_of(draft: Compaction) -> str:
    return draft.pk.hex[-8:]


def test_what_waits_is_listed_for_all_sessions_or_for_one(draft):
    out, _, end = run("drafts")
    assert end == Exit.OK
    assert part_of(draft) in out
    assert "1 by extractive" in out
    other = long_session()
    assert run("drafts", other.pk)[1] == "No draft waits for a review.\n"
    [told] = json.loads(run("drafts", draft.session_id, as_json=True)[0])["data"]
    assert (told["id"], told["version"], told["is_stale"], told["is_blocked"]) == (str(draft.pk), 1, False, False)


def test_a_draft_is_read_on_standard_output_and_what_is_said_of_it_on_the_other(draft):
    out, err, end = run("draft", part_of(draft))
    assert (out, end) == (draft.summary + "\n", Exit.OK)
    assert "version 1 of 1 by extractive" in err
    told = json.loads(run("draft", part_of(draft), as_json=True)[0])
    assert (told["object"], told["version"], told["summary"]) == ("draft", 1, draft.summary)
    assert [version["version"] for version in told["versions"]] == [1]


def test_the_text_of_a_file_or_of_standard_input_becomes_the_next_version(draft, tmp_path, monkeypatch):
    file = tmp_path / "summary.md"
    file.write_text(WORDS)
    assert "Saved as version 2. Nothing is committed yet." in run("draft", part_of(draft), edit=str(file))[1]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"## Goal\nAnother one.")))
    assert "Saved as version 3." in run("draft", part_of(draft), edit="-")[1]
    assert run("draft", part_of(draft), version_number=2)[0] == WORDS
    assert fresh(draft).status == Status.DRAFTED


def test_the_same_text_again_is_said_to_be_there_already(draft, tmp_path):
    file = tmp_path / "summary.md"
    file.write_text(run("draft", part_of(draft))[0])
    assert "Version 1 says this already. Nothing was saved." in run("draft", part_of(draft), edit=str(file))[1]
    assert draft.summary_versions.count() == 1


@pytest.mark.parametrize(("content", "words"), [(None, "can't be read"), (b"\xff\xfe", "no text in UTF-8"), (b" \n", "can't be empty")])
def test_what_is_no_summary_is_refused_and_nothing_is_saved(draft, tmp_path, content, words):
    file = tmp_path / "summary.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Exception, match=words) as refused:
        run("draft", part_of(draft), edit=str(file))
    assert "Nothing was saved" in str(refused.value)
    assert draft.summary_versions.count() == 1


def test_a_commit_makes_it_the_checkpoint_in_force(draft, tmp_path):
    file = tmp_path / "summary.md"
    file.write_text(WORDS)
    run("draft", part_of(draft), edit=str(file))
    out, _, end = run("draft", part_of(draft), commit=True)
    assert end == Exit.OK
    assert out.startswith("#1 committed: ")
    assert fresh(draft).summary == WORDS.strip()
    assert fresh(draft.session).active_console_id == draft.pk


def test_a_commit_of_a_version_that_is_not_the_latest_commits_nothing(draft, tmp_path):
    file = tmp_path / "summary.md"
    file.write_text(WORDS)
    run("draft", part_of(draft), edit=str(file))
    with pytest.raises(Exception, match="Nothing was committed"):
        run("draft", part_of(draft), commit=True, version_number=1)
    assert fresh(draft).status == Status.DRAFTED


def test_a_draft_whose_entries_were_rewound_ends_as_stale_with_a_code_of_its_own(draft):
    Entry.objects.filter(session=draft.session, index=2).update(off_branch=True)
    out, _, end = run("draft", part_of(draft), commit=True)
    assert (fresh(draft).status, end) == (Status.STALE, Exit.FAILED)
    assert out.startswith("a1 stale: ")


def test_a_draft_that_another_commit_made_stale_is_said_to_be_none(draft, support_actor):
    committed(support_actor, draft.session)
    with pytest.raises(CommandFailure, match=r"a1 is no draft that waits: it is stale\. Nothing was changed\."):
        run("draft", part_of(draft), commit=True)


def test_discarding_leaves_the_view_as_it_is(draft):
    before = view_hash(draft.session)
    out, _, end = run("draft", part_of(draft), discard=True)
    assert (end, view_hash(draft.session)) == (Exit.OK, before)
    assert out.startswith("a1 cancelled")


def test_a_draft_that_there_is_not(draft):
    for number in (99, None):
        with pytest.raises(CommandFailure) as missing:
            run("draft", part_of(draft) if number else "ffffffff", **({"version_number": number} if number else {}))
        assert missing.value.end == Exit.NOT_FOUND


def test_an_operator_reads_a_draft_and_decides_nothing(draft, operator):
    assert run("draft", part_of(draft), acting_as="olga")[0] == draft.summary + "\n"
    for options in ({"commit": True}, {"discard": True}, {"edit": "-"}):
        with pytest.raises((CommandFailure, ActionRefused)):
            run("draft", part_of(draft), acting_as="olga", **options)
    assert fresh(draft).status == Status.DRAFTED
