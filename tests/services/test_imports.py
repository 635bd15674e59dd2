import os
import random
from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.engine.entries import chain_prefix_hash
from sessions_app.engine.terms import Lineage, Role
from sessions_app.events.log import session_stream
from sessions_app.models import Blob, Compaction, Entry, Event, PolicyValue, Session, SourceFile
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.imports import finish, writer
from sessions_app.services.imports.outcomes import SourceState
from tests.readers.rows import SESSION, Row, answer, call, encode, prompt, result
from tests.services.import_scenes import rows, stored, take, the_session, write

pytestmark = pytest.mark.django_db

SIGNAL_FIELDS = (
    "signal_tokens", "signal_origin", "signal_scope", "signal_measured", "signal_measured_at", "signal_appended", "window",
    "trigger_tokens", "pressure", "composition", "foldable_to", "unfoldable_reason",
)  # fmt: skip


def events(session: Session) -> list[str]:
    return list(Event.objects.filter(stream=session_stream(session.pk)).order_by("seq").values_list("type", flat=True))


def test_a_file_becomes_a_complete_session_with_its_facts(tmp_path):
    outcome = take(write(tmp_path))
    session = the_session()
    assert (outcome.state, outcome.entries, outcome.children, outcome.checkpoints, outcome.error) == (SourceState.NEW, 18, 1, 1, "")
    assert (session.title, session.agent, session.model) == ("Add VAT to the invoice", "claude-code", "claude-opus-4-5")
    assert session.project is not None
    assert (session.project.name, session.branch, session.is_complete, session.entry_count) == ("shop", "main", True, 16)
    assert (session.failure_count, session.compaction_count, session.warning_count) == (1, 1, 1)
    assert session.signal_tokens
    assert Session.objects.listed().count() == 1


def test_sums_and_rolling_hashes_follow_from_the_entries(tmp_path):
    take(write(tmp_path))
    session, tokens, rolling = the_session(), 0, b""
    for row, entry in zip(Entry.objects.filter(session=session).order_by("index"), plans.load_entries(session.pk), strict=True):
        rolling = chain_prefix_hash(rolling, entry.digest())
        assert (row.prefix_tokens, bytes(row.prefix_hash)) == (tokens, rolling)
        tokens += 0 if row.role == Role.NOTICE else row.tokens
    assert (session.tokens_total, bytes(session.head_hash)) == (tokens, rolling)


def test_abandoned_rows_are_off_the_branch_and_usage_stands_once_a_message(tmp_path):
    take(write(tmp_path))
    entries = Entry.objects.filter(session=the_session())
    assert list(entries.filter(off_branch=True).values_list("source_id", flat=True)) == ["u2", "ab"]
    assert list(entries.filter(usage__isnull=False).order_by("index").values_list("source_id", flat=True)) == [
        "a2", "a3", "ab", "a4", "a5", "a6",
    ]  # fmt: skip


def test_the_agents_own_compaction_is_a_checkpoint_whose_view_is_what_it_sent(tmp_path):
    take(write(tmp_path))
    session = the_session()
    compaction = Compaction.objects.get(session=session)
    assert (compaction.lineage, compaction.generation, compaction.summary) == (Lineage.AGENT, 1, "VAT was added.")
    assert (compaction.tokens_before, compaction.tokens_before_scope) == (9_000, "whole_request")
    assert (compaction.tokens_after, compaction.tokens_after_scope) == (500, "conversation")
    told = [part.part.text for message in plans.load_view(session) for part in message.parts]
    assert told == ["VAT was added.", "Done.", "And a test", '{"command":"ls"}', "failed", "Fixed."]


def test_a_side_chain_is_a_session_of_its_own_tied_to_its_call_and_not_in_the_list(tmp_path):
    take(write(tmp_path))
    child = Session.objects.get(parent=the_session())
    assert (child.title, child.parent_call_id, child.relation, child.entry_count, child.is_complete) == (
        "Find totals", "task", "sub_agent", 2, True,
    )  # fmt: skip
    assert child not in Session.objects.listed()


def test_an_unchanged_file_is_skipped_and_nothing_is_doubled(tmp_path):
    path = write(tmp_path)
    take(path)
    before, told = stored(the_session()), events(the_session())
    assert take(path).state is SourceState.UNCHANGED
    os.utime(path, (1, 1))
    assert take(path).state is SourceState.UNCHANGED
    assert (stored(the_session()), events(the_session())) == (before, told)
    assert SourceFile.objects.count() == 1


def test_the_same_file_under_another_name_is_the_same_session(tmp_path):
    take(write(tmp_path))
    (tmp_path / "copy").mkdir()
    assert take(write(tmp_path / "copy", name="renamed.jsonl")).state is SourceState.UNCHANGED
    assert Session.objects.filter(parent=None).count() == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_file_that_grows_ends_as_if_it_had_been_whole_wherever_it_was_cut(tmp_path, seed):
    data = encode(rows())
    take(write(tmp_path, data))
    whole = stored(the_session())
    Session.objects.all().delete()
    cuts = sorted({(seed * 2_003 + step * 8_111) % len(data) for step in range(4)} - {0})
    first_line = data.index(b"\n") + 1
    for cut in [max(cut, first_line + 400) for cut in cuts]:
        assert take(write(tmp_path, data[:cut])).state in {SourceState.NEW, SourceState.GROWN, SourceState.UNCHANGED}
    outcome = take(write(tmp_path, data))
    assert outcome.state is SourceState.GROWN
    assert stored(the_session()) == whole
    assert SourceFile.objects.get().version == 1


def test_growth_tells_followers_what_was_appended(tmp_path):
    lines = encode(rows()).splitlines(keepends=True)
    take(write(tmp_path, b"".join(lines[:9])))
    take(write(tmp_path, b"".join(lines)))
    session = the_session()
    assert events(session) == ["session.imported", "entries.appended", "session.imported"]
    appended = Event.objects.get(stream=session_stream(session.pk), type="entries.appended")
    assert appended.payload == {"first": 6, "last": 15, "count": 10}


def test_a_rewritten_file_becomes_a_new_version_that_changes_no_entry_and_adds_what_is_new(tmp_path):
    path = write(tmp_path)
    take(path)
    before = stored(the_session())
    changed = [row for row in rows() if not (isinstance(row, dict) and row.get("uuid") == "x1")]
    changed[1] = prompt("u1", None, "Add VAT to every invoice")
    write(tmp_path, encode([*changed, prompt("u9", "a6", "One more")]))
    outcome = take(path)
    after = stored(the_session())
    assert (outcome.state, outcome.entries) == (SourceState.REWRITTEN, 1)
    assert after["entries"][:-1] == before["entries"]  # type: ignore[index]
    assert Entry.objects.filter(session=the_session()).order_by("-index").first().source_id == "u9"  # type: ignore[union-attr]
    source = SourceFile.objects.order_by("-version").first()
    assert source is not None
    assert source.version == 2
    assert "no longer begins as it did" in source.report["notes"][0]
    assert take(path).state is SourceState.UNCHANGED


def test_an_earlier_state_of_a_file_changes_nothing(tmp_path):
    data = encode(rows())
    path = write(tmp_path, data)
    take(path)
    before = stored(the_session())
    write(tmp_path, data[: len(data) // 2])
    assert take(path).state is SourceState.UNCHANGED
    assert stored(the_session()) == before


def test_an_image_that_comes_twice_is_stored_once(tmp_path):
    import base64

    from tests.readers.test_images import PNG

    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}}
    take(write(tmp_path, encode([prompt("u", None, [block]), answer("a", "u", call("c")), result("r", "a", "c", [block])])))
    blob = Blob.objects.get()
    assert (blob.media_type, blob.width, blob.height, bytes(blob.data)) == ("image/png", 640, 480, PNG)


@pytest.mark.parametrize(
    ("age", "last", "status"),
    [
        (timedelta(minutes=1), answer("a", "u", call("c")), "working"),
        (timedelta(minutes=1), answer("a", "u", "Done"), "idle"),
        (timedelta(hours=1), answer("a", "u", call("c")), "idle"),
    ],
)
def test_a_session_works_while_its_turn_is_open_and_young(tmp_path, age, last, status):
    last = {**last, "timestamp": (datetime.now(UTC) - age).isoformat()}
    take(write(tmp_path, encode([prompt("u", None), last])))
    assert the_session().status == status


@pytest.mark.parametrize("moment", ["begins", "ends"])
def test_a_compaction_that_begins_or_ends_meanwhile_decides_the_status(tmp_path, monkeypatch, support_actor, moment):
    """What the import read of the session when it opened it may be old by its end."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    path = write(tmp_path)
    take(path)
    session = the_session()
    compaction = request(actor=support_actor, session=session).compaction if moment == "ends" else None
    complete = finish.complete_main

    def complete_late(*args):
        request(actor=support_actor, session=session) if compaction is None else run_compaction(compaction.pk)
        complete(*args)

    monkeypatch.setattr(finish, "complete_main", complete_late)
    path.write_bytes(encode([*rows(), prompt("u9", "a6", "Go on")]))
    take(path)
    assert the_session().status == ("compacting" if moment == "begins" else "idle")


def _agent_file(tmp_path, agent="abc", session=SESSION, text="Where are totals?"):
    common = {"isSidechain": True, "agentId": agent, "sessionId": session}
    data = encode([{**prompt("k1", None, text), **common}, {**answer("k2", "k1", "There"), **common}])
    return write(tmp_path, data, name=f"agent-{agent}.jsonl")


def _parent_file(tmp_path):
    told = {"agentId": "abc", "status": "completed"}
    steps = [prompt("u", None), answer("a", "u", call("task", "Task", prompt="Where are totals?"))]
    return write(tmp_path, encode([*steps, result("r", "a", "task", toolUseResult=told)]))


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_a_sub_agents_file_is_tied_to_its_call_whichever_comes_first(tmp_path, order):
    files = [_parent_file(tmp_path), _agent_file(tmp_path)]
    for path in files if order == "parent first" else reversed(files):
        take(path)
    child = the_session(f"claude-code:{SESSION}/agent-abc")
    assert (child.parent, child.parent_call_id, child.relation) == (the_session(), "task", "sub_agent")
    assert list(Session.objects.listed()) == [the_session()]


def test_a_sub_agent_whose_session_is_not_here_stands_for_itself(tmp_path):
    take(_agent_file(tmp_path))
    orphan = the_session(f"claude-code:{SESSION}/agent-abc")
    assert (orphan.parent, orphan.relation) == (None, "")
    assert list(Session.objects.listed()) == [orphan]


def test_a_sub_agent_of_a_sub_agent_hangs_on_the_one_that_called_it(tmp_path):
    take(_parent_file(tmp_path))
    common = {"isSidechain": True, "agentId": "abc"}
    inner = [
        prompt("k1", None, "Where?", **common),
        answer("k2", "k1", call("deeper", "Task", prompt="Deeper"), **common),
        result("k3", "k2", "deeper", toolUseResult={"agentId": "def"}, **common),
    ]
    take(write(tmp_path, encode(inner), name="agent-abc.jsonl"))
    take(_agent_file(tmp_path, "def", text="Deeper"))
    middle, deepest = the_session(f"claude-code:{SESSION}/agent-abc"), the_session(f"claude-code:{SESSION}/agent-def")
    assert (middle.parent, middle.parent_call_id) == (the_session(), "task")
    assert (deepest.parent, deepest.parent_call_id) == (middle, "deeper")


def test_another_sessions_file_under_a_known_path_is_another_session(tmp_path):
    path = write(tmp_path, encode(rows()), name="session.jsonl")
    take(path)
    before = stored(the_session())
    other = "99999999-2222-4333-8444-555555555555"
    write(tmp_path, encode([{**prompt("o", None, "Else"), "sessionId": other}]), name="session.jsonl")
    assert take(path).state is SourceState.NEW
    assert the_session(f"claude-code:{other}").entry_count == 1
    assert stored(the_session()) == before


def _random_rows(seed: int) -> list[Row | bytes]:
    """Turns, calls, side chains, rewinds, answers in several rows, of lengths around what is kept in memory."""
    chance = random.Random(seed)
    made: list[Row | bytes] = []
    last: str | None = None
    for number in range(chance.choice([1, 4, 30, 100, 140])):
        if chance.random() < 0.1 and made:
            last = chance.choice([row["uuid"] for row in made if isinstance(row, dict)])  # a rewind
        side = {"isSidechain": True, "agentId": "abc"} if chance.random() < 0.1 else {}
        user, first, second = f"u{number}", f"a{number}", f"b{number}"
        made.append(prompt(user, last, "x" * chance.randrange(1, 20_000), **side))
        made.append(answer(first, user, "y" * chance.randrange(1, 9_000), message=f"m{number}", output=1, **side))
        made.append(answer(second, first, call(f"c{number}"), message=f"m{number}", output=2, **side))
        if chance.random() < 0.9:
            made.append(result(f"r{number}", second, f"c{number}", "z" * chance.randrange(0, 30_000), **side))
        last = second
    return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("batch_rows", [40, 1_000])
def test_what_a_new_sessions_row_says_of_its_context_is_what_the_store_says(tmp_path, monkeypatch, seed, batch_rows):
    monkeypatch.setattr(writer, "BATCH_ROWS", batch_rows)
    if seed == 3:
        PolicyValue.objects.create(scope="installation", field="keep_recent_fraction", value=0.05)
    take(write(tmp_path, encode(_random_rows(seed)) if seed else None))
    for session in Session.objects.all():
        told = {field: getattr(session, field) for field in SIGNAL_FIELDS}
        signals.refresh(session.pk)
        session.refresh_from_db()
        assert told == {field: getattr(session, field) for field in SIGNAL_FIELDS}
        assert session.entry_count == session.entries.count()
        assert session.project is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("batch_rows", [3, 40, 1_000])
def test_every_transaction_of_an_import_leaves_a_whole_database_behind(tmp_path, monkeypatch, batch_rows):
    """Rows that hang on others are told apart only when a transaction really ends."""
    monkeypatch.setattr(writer, "BATCH_ROWS", batch_rows)
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        late = prompt("late", None, "Where?", isSidechain=True, agentId="late")  # a side chain that begins in the last batch
        data = encode([*(_random_rows(seed) if seed else rows()), late])
        session = f"{seed:08d}-2222-4333-8444-555555555555"
        outcome = take(write(folder, data.replace(SESSION.encode(), session.encode()), name=f"{session}.jsonl"))
        assert (outcome.state, outcome.error) == (SourceState.NEW, "")
    assert Session.objects.filter(parent=None, is_complete=True).count() == 4


@pytest.mark.parametrize("rounds", [150, 250, 450])
def test_a_session_of_several_hundred_short_entries_is_taken_in(tmp_path, rounds):
    told = [prompt("u0", None)]
    for number in range(rounds):
        told += [answer(f"a{number}", told[-1]["uuid"], call(f"c{number}")), result(f"r{number}", f"a{number}", f"c{number}")]
    outcome = take(write(tmp_path, encode(told)))
    assert (outcome.state, outcome.error) == (SourceState.NEW, "")
    assert the_session().entry_count == 2 * rounds + 1
