"""Codex's rollouts in the store: what the agent sends next, growing files, sub-agents, forks, and the files given back."""

import json
from pathlib import Path

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import Lineage
from sessions_app.models import Session
from sessions_app.readers.codex import CodexReader
from sessions_app.selectors.plans import load_view
from sessions_app.selectors.raw_page import source_bytes
from tests.readers.codex_rollouts import PARENT, agent_view, call, encode, meta, output, read_bytes, said, user
from tests.readers.test_corpus_codex import GOLDEN, ROLLOUTS, golden_cuts, requested, sent
from tests.services.import_scenes import take

DATA = Path(__file__).resolve().parents[1] / "data" / "codex"
SESSION, FORK = sorted(DATA.glob("*.jsonl"))

pytestmark = pytest.mark.django_db


def session_of(path: Path) -> Session:
    outcome = take(path)
    assert outcome.error == ""
    return Session.objects.get(pk=outcome.session_id)


def texts(view):
    return [part.text for message in view for part in sent_parts(message)]


@pytest.mark.parametrize("path", [SESSION, FORK], ids=["session", "fork"])
def test_the_stored_view_of_the_agent_is_the_one_that_its_file_tells(path):
    session = session_of(path)
    assert texts(load_view(session, Lineage.AGENT)) == texts(agent_view(*read_bytes(path.read_bytes(), str(path))))
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()
    assert (session.agent, session.compaction_count, session.active_agent.generation) == ("codex", 1, 1)


def test_the_history_stays_whole_when_the_view_is_a_replacement():
    session = session_of(SESSION)
    told = list(session.entries.order_by("index").values_list("parts", flat=True))
    assert sum("one cent off" in text for text in told) == 1
    assert sum("It rounds the sum" in text for text in told) == 1
    assert session.entries.filter(off_branch=True).count() == 2


@pytest.mark.parametrize("lines", [12, 20, 24, 30])
def test_a_rollout_that_grows_ends_as_one_that_was_whole(tmp_path, lines):
    whole = session_of(SESSION)
    wanted = texts(load_view(whole, Lineage.AGENT))
    rows = list(whole.entries.order_by("index").values_list("parts", "role", "kind", "off_branch"))
    Session.objects.all().delete()
    data = SESSION.read_bytes().splitlines(keepends=True)
    growing = tmp_path / SESSION.name
    growing.write_bytes(b"".join(data[:lines]))
    take(growing)
    growing.write_bytes(b"".join(data))
    session = session_of(growing)
    assert texts(load_view(session, Lineage.AGENT)) == wanted
    assert list(session.entries.order_by("index").values_list("parts", "role", "kind", "off_branch")) == rows
    assert session.source_files.get().version == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_a_sub_agent_hangs_on_the_call_that_started_it_whichever_came_first(tmp_path, backwards):
    child_id = "0199aaaa-0000-7000-8000-0000000000c1"
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    files = {
        PARENT: [
            meta(PARENT),
            user("Find it"),
            call("c9", "spawn_agent", message="Look"),
            output("c9", f'{{"agent_id": "{child_id}"}}'),
            said(),
        ],
        child_id: [meta(child_id, source=spawned), user("Look"), said("Here.")],
    }
    for thread in sorted(files, reverse=backwards):
        path = tmp_path / f"rollout-2026-11-30T10-00-00-{thread}.jsonl"
        path.write_bytes(encode(files[thread]))
        take(path)
    child = Session.objects.get(source_key__endswith=child_id)
    assert (child.parent.source_key, child.parent_call_id) == (f"codex:{PARENT}", "c9")


def test_a_fork_is_a_session_of_its_own_and_its_copied_rows_say_where_they_are_from():
    session, fork = session_of(SESSION), session_of(FORK)
    assert fork.pk != session.pk
    marked = [entry.annex.get("inherited_from") for entry in fork.entries.order_by("index")]
    assert (marked.count(None), len(set(marked))) == (3, 2)
    (note,) = fork.source_files.get().report["notes"]
    assert "copied from the session" in note


@pytest.mark.skipif(not ROLLOUTS, reason="the recordings are not there")
@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name[:60])
def test_every_recorded_rollout_imports_and_comes_back_byte_for_byte(path):
    session = session_of(path)
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()
    reading, records = read_bytes(path.read_bytes(), str(path))
    assert session.entry_count == sum(record.entry is not None for record in records)
    assert session.compaction_count == len(reading.checkpoints())
    assert session.source_files.get().reader == CodexReader.name


@pytest.mark.skipif(not ROLLOUTS, reason="the recordings are not there")
@pytest.mark.parametrize("name", ["1-before", "2-after-c1", "3-after-c2"])
@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_the_stored_view_is_block_for_block_what_the_agent_sent(tmp_path, folder, name):
    lines = (folder / f"session-{name}.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(lines[: golden_cuts(folder)[name]]))
    session = session_of(path)
    ours = list(sent(load_view(session, Lineage.AGENT, whole=True)))
    body = json.loads((folder / f"request-{name}.json").read_text())
    assert [block[1:] for block in ours] == [block[1:] for block in requested(body.get("body", body)["input"], ours)]
