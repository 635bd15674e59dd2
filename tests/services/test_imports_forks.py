"""Forks and continuations: tied to where they are from, copied entries marked, and counted once, whichever file came first."""

import json
import re
import uuid
from pathlib import Path

import pytest

from sessions_app.models import Entry, Session, SessionRelation
from tests.readers.codex_rollouts import PARENT, THREAD, context, event, meta, said, user
from tests.readers.codex_rollouts import encode as encode_rollout
from tests.readers.rows import Row, answer, boundary, encode, prompt, summary
from tests.services.import_scenes import take

OTHER = "99999999-2222-4333-8444-555555555555"
FIRST = "11111111-2222-4333-8444-555555555555"

pytestmark = pytest.mark.django_db


def as_uuids(rows: list[Row]) -> list[Row]:
    """The rows with ids as the agent makes them: no two sessions share one by chance."""
    names = {row["uuid"] for row in rows if "uuid" in row}
    text = json.dumps(rows)
    for name in names:
        text = re.sub(rf'"{name}"', f'"{uuid.uuid5(uuid.NAMESPACE_OID, name)}"', text)
    found: list[Row] = json.loads(text)
    return found


def in_session(rows: list[Row], session: str, **more: object) -> list[Row]:
    return [{**row, "sessionId": session, **more} for row in rows]


COMMON = as_uuids(
    [prompt("u1", None, "Add VAT"), answer("a1", "u1", "Added."), prompt("u2", "a1", "Test it"), answer("a2", "u2", "Tested.")]
)
LATER = as_uuids([prompt("u3", "a2", "Ship it"), answer("a3", "u3", "Shipped.")])
ELSEWHERE = as_uuids([prompt("v3", "a2", "Take it back"), answer("b3", "v3", "Taken back.")])


def usage_rows() -> int:
    return Entry.objects.filter(usage__isnull=False).count()


def import_all(folder: Path, files: dict[str, bytes], *, backwards: bool) -> None:
    for name in sorted(files, reverse=backwards):
        path = folder / name
        path.write_bytes(files[name])
        assert take(path).error == ""


def session_of(key: str) -> Session:
    return Session.objects.select_related("parent").get(source_key__endswith=key)


@pytest.mark.parametrize("backwards", [False, True], ids=["origin first", "copy first"])
@pytest.mark.parametrize("names_origin", [True, False], ids=["rows name it", "rows were written anew"])
def test_a_resumed_session_in_a_file_of_its_own_goes_on_from_the_first(tmp_path, backwards, names_origin):
    later = [{**row, "timestamp": "2026-11-30T11:00:00.000Z"} for row in LATER]
    copied = in_session(COMMON, FIRST if names_origin else OTHER)
    files = {
        f"{FIRST}.jsonl": encode(in_session(COMMON, FIRST)),
        f"{OTHER}.jsonl": encode([*copied, *in_session(later, OTHER)]),
    }
    import_all(tmp_path, files, backwards=backwards)
    session = session_of(OTHER)
    assert (session.parent, session.relation, session.inherited_count) == (session_of(FIRST), SessionRelation.CONTINUATION, 4)
    assert usage_rows() == 3
    assert set(Session.objects.listed()) == {session, session.parent}


@pytest.mark.parametrize("backwards", [False, True], ids=["origin first", "copy first"])
def test_two_sessions_that_went_different_ways_are_a_session_and_its_fork(tmp_path, backwards):
    fork = [{**row, "timestamp": "2026-11-30T12:00:00.000Z"} for row in ELSEWHERE]
    files = {
        f"{FIRST}.jsonl": encode(in_session([*COMMON, *LATER], FIRST)),
        f"{OTHER}.jsonl": encode(in_session([*COMMON, *fork], OTHER)),
    }
    import_all(tmp_path, files, backwards=backwards)
    session = session_of(OTHER)
    assert (session.parent, session.relation, session.inherited_count) == (session_of(FIRST), SessionRelation.FORK, 4)
    assert usage_rows() == 4


@pytest.mark.parametrize("backwards", [False, True], ids=["origin first", "copy first"])
def test_a_fork_with_ids_of_its_own_says_where_it_is_from(tmp_path, backwards):
    renamed = as_uuids([prompt("w1", None, "Add VAT"), answer("w2", "w1", "Added.")])
    copied = [{**row, "forkedFrom": {"sessionId": FIRST, "messageUuid": "x"}} for row in in_session(renamed, OTHER)]
    files = {
        f"{FIRST}.jsonl": encode(in_session(COMMON, FIRST)),
        f"{OTHER}.jsonl": encode([*copied, *in_session(as_uuids([prompt("w3", "w2", "Otherwise"), answer("w4", "w3")]), OTHER)]),
    }
    import_all(tmp_path, files, backwards=backwards)
    session = session_of(OTHER)
    assert (session.parent, session.relation, session.inherited_count) == (session_of(FIRST), SessionRelation.FORK, 2)
    assert usage_rows() == 3
    marked = [entry.annex.get("inherited_from", "") for entry in session.entries.order_by("index")]
    assert marked == [FIRST, FIRST, "", ""]


def test_what_was_copied_from_a_session_that_is_not_here_is_counted_where_it_is(tmp_path):
    path = tmp_path / f"{OTHER}.jsonl"
    path.write_bytes(encode([*in_session(COMMON, FIRST), *in_session(LATER, OTHER)]))
    take(path)
    session = session_of(OTHER)
    assert (session.parent, session.copied_from, session.inherited_count) == (None, f"claude-code:{FIRST}", 4)
    assert usage_rows() == 3


@pytest.mark.parametrize("backwards", [False, True], ids=["origin first", "continuation first"])
def test_a_new_file_behind_a_compaction_is_tied_by_the_transcript_that_its_summary_names(tmp_path, backwards):
    text = (
        f"This session is being continued from a previous conversation. Read the transcript at: /home/dev/.claude/projects/x/{FIRST}.jsonl"
    )
    rows = as_uuids([boundary("b", "a2"), summary("s", "b", text), prompt("u9", "s", "Go on"), answer("a9", "u9")])
    files = {f"{FIRST}.jsonl": encode(in_session(COMMON, FIRST)), f"{OTHER}.jsonl": encode(in_session(rows, OTHER))}
    import_all(tmp_path, files, backwards=backwards)
    session = session_of(OTHER)
    assert (session.parent, session.relation, session.inherited_count) == (session_of(FIRST), SessionRelation.CONTINUATION, 0)
    assert usage_rows() == 3


def test_a_new_file_that_begins_with_a_summary_right_behind_the_only_other_session_goes_on_from_it(tmp_path):
    text = "This session is being continued from a previous conversation that ran out of context."
    old = [{**row, "timestamp": f"2026-11-30T09:0{number}:00.000Z"} for number, row in enumerate(COMMON)]
    new = [{**row, "timestamp": "2026-11-30T09:05:00.000Z"} for row in as_uuids([prompt("n1", None, text), answer("n2", "n1")])]
    import_all(tmp_path, {"a.jsonl": encode(in_session(old, FIRST)), "b.jsonl": encode(in_session(new, OTHER))}, backwards=False)
    assert session_of(OTHER).parent == session_of(FIRST)


def test_two_sessions_that_merely_begin_with_the_same_words_have_nothing_to_do_with_each_other(tmp_path):
    mine = in_session([{**row, "uuid": str(uuid.uuid4())} for row in COMMON], OTHER)
    import_all(tmp_path, {f"{FIRST}.jsonl": encode(in_session(COMMON, FIRST)), f"{OTHER}.jsonl": encode(mine)}, backwards=False)
    assert not Session.objects.exclude(parent=None).exists()
    assert usage_rows() == 4


def test_a_resume_inside_one_file_replays_rows_that_count_once(tmp_path):
    path = tmp_path / f"{FIRST}.jsonl"
    path.write_bytes(encode(in_session([*COMMON, *COMMON, *LATER], FIRST)))
    assert take(path).duplicates == 4
    assert (session_of(FIRST).entry_count, usage_rows()) == (6, 3)


def test_sessions_that_name_each_other_do_not_become_their_own_ancestors(tmp_path):
    one = [*in_session(COMMON, OTHER), *in_session(LATER, FIRST)]
    two = [*in_session(ELSEWHERE, FIRST), *in_session(as_uuids([prompt("z1", "b3"), answer("z2", "z1")]), OTHER)]
    import_all(tmp_path, {f"{FIRST}.jsonl": encode(one), f"{OTHER}.jsonl": encode(two)}, backwards=False)
    parents = dict(Session.objects.values_list("pk", "parent"))
    assert sum(parent is not None for parent in parents.values()) == 1


def count(total: int) -> Row:
    counts = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": total + 10}
    return event("token_count", info={"total_token_usage": counts, "last_token_usage": counts, "model_context_window": 258_400})


ROLLOUT = [meta(PARENT), event("task_started", turn_id="t1"), context("t1"), user("Find it"), said("Found."), count(500)]
FORKED = [
    meta(THREAD, forked_from_id=PARENT),
    *ROLLOUT,
    event("task_started", turn_id="t2"),
    context("t2"),
    user("Mend it"),
    said("Mended."),
    count(900),
]


@pytest.mark.parametrize("together", [True, False], ids=["beside each other", "in folders of their own"])
@pytest.mark.parametrize("backwards", [False, True], ids=["origin first", "copy first"])
def test_a_fork_of_a_rollout_counts_only_what_it_spent_itself(tmp_path, together, backwards):
    folders = {PARENT: tmp_path, THREAD: tmp_path if together else tmp_path / "elsewhere"}
    for thread, rows in sorted({PARENT: ROLLOUT, THREAD: FORKED}.items(), reverse=backwards):
        folders[thread].mkdir(exist_ok=True)
        path = folders[thread] / f"rollout-2026-11-30T10-00-00-{thread}.jsonl"
        path.write_bytes(encode_rollout(rows))
        take(path)
    fork = session_of(THREAD)
    assert (fork.parent, fork.relation, fork.inherited_count) == (session_of(PARENT), SessionRelation.FORK, 2)
    prompts = [usage["input"] for usage in Entry.objects.filter(usage__isnull=False).order_by("pk").values_list("usage", flat=True)]
    assert sorted(prompts) == [400, 500]
    assert fork.window == fork.window_reported == 258_400


def test_a_count_that_comes_when_the_rollout_has_grown_stands_on_its_answer(tmp_path):
    path = tmp_path / f"rollout-2026-11-30T10-00-00-{PARENT}.jsonl"
    path.write_bytes(encode_rollout(ROLLOUT[:-1]))
    take(path)
    assert usage_rows() == 0
    path.write_bytes(encode_rollout(ROLLOUT))
    take(path)
    session = session_of(PARENT)
    assert (usage_rows(), session.signal_measured, session.entries.get(usage__isnull=False).role) == (1, 500, "assistant")


def test_usage_that_grows_over_several_imports_is_counted_once_at_its_largest(tmp_path):
    path = tmp_path / f"{FIRST}.jsonl"
    rows = as_uuids([prompt("u1", None), *(answer(f"g{n}", f"g{n - 1}" if n else "u1", f"{n}", message="m", output=n) for n in range(5))])
    for end in (2, 3, 6):
        path.write_bytes(encode(in_session(rows[:end], FIRST)))
        take(path)
    usages = list(Entry.objects.filter(usage__isnull=False).values_list("index", "usage"))
    assert [(index, usage["output"]) for index, usage in usages] == [(5, 4)]


def test_the_pages_of_a_session_and_its_fork_lead_to_each_other_and_the_list_tells_them_apart(tmp_path, client, operator):
    client.force_login(operator)
    fork = [{**row, "timestamp": "2026-11-30T12:00:00.000Z"} for row in ELSEWHERE]
    files = {
        f"{FIRST}.jsonl": encode(in_session([*COMMON, *LATER], FIRST)),
        f"{OTHER}.jsonl": encode(in_session([*COMMON, *fork], OTHER)),
    }
    import_all(tmp_path, files, backwards=False)
    session, origin = session_of(OTHER), session_of(FIRST)
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert f'fork of <a class="link" href="/sessions/{origin.pk}/">' in page
    assert "4 of its entries were copied from there, where their cost counts" in page
    assert f'forked as <a class="link" href="/sessions/{session.pk}/">' in client.get(f"/sessions/{origin.pk}/").content.decode()
    assert client.get("/").content.decode().count(">fork</span>") == 1
