"""A file that is taken in line by line, while it is written, gives the same rows as one that is imported at once."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessions_app.demo import stories
from sessions_app.events.actors import system_actor
from sessions_app.models import Compaction, Entry, Event, Record, Session, SourceFile, ViewSegment
from sessions_app.selectors.raw_page import source_bytes
from sessions_app.services.imports import import_paths
from sessions_app.services.imports.growth import OpenSource
from sessions_app.services.watched_files import WatchedFiles
from tests.readers.rows import SESSION, answer, call, encode, prompt, result

pytestmark = pytest.mark.django_db

ACTOR = system_actor("tests")
STORIES = [stories.session_store, stories.two_checkpoints, stories.rewound, stories.doubled_rows, stories.damaged_file]
NOW = datetime(2026, 11, 30, tzinfo=UTC)
ENTRY = [
    "index", "source_id", "role", "kind", "parts", "tokens", "prefix_tokens", "prefix_hash", "usage", "off_branch",
    "message_key", "record_ordinal",
]  # fmt: skip
SESSION_ROW = [
    "title", "model", "entry_count", "tokens_total", "head_hash", "compaction_count", "signal_tokens", "signal_origin",
    "composition", "pressure", "foldable_to", "warning_count", "failure_count", "last_activity_at", "status",
    "started_at", "relation", "parent_call_id",
]  # fmt: skip


@pytest.fixture
def grown(tmp_path):
    """Writes a file in stretches and brings it up after each; answers the outcomes."""
    files = WatchedFiles(actor=ACTOR, cancelled=lambda: False)

    def grow(name: str, stretches: list[bytes]):
        path: Path = tmp_path / name
        outcomes = []
        for stretch in stretches:
            with path.open("ab") as file:
                file.write(stretch)
            outcomes.append(files.bring_up(path)[0])
        return outcomes

    return grow


@pytest.fixture
def went_on(monkeypatch):
    """How often a file was taken up where it ended, and did not have to be read as a whole."""
    told: list[bool] = []
    whole = OpenSource.go_on

    def go_on(self, *arguments):
        outcome = whole(self, *arguments)
        told.append(outcome is not None)
        return outcome

    monkeypatch.setattr(OpenSource, "go_on", go_on)
    return told


def everything() -> dict[str, object]:
    """All that the store holds of its sessions, but for keys and times of storing."""
    sessions = {}
    for session in Session.objects.order_by("source_key"):
        source = session.source_files.first()
        sessions[session.source_key] = {
            "row": {name: _plain(getattr(session, name)) for name in SESSION_ROW},
            "entries": [{name: _plain(value) for name, value in row.items()} for row in session.entries.order_by("index").values(*ENTRY)],
            "plans": [
                (plan.generation, plan.divider_index, plan.boundary_index, plan.pk == session.active_agent_id, _segments(plan))
                for plan in Compaction.objects.filter(session=session).order_by("generation")
            ],
            "bytes": b"".join(source_bytes(source)) if source else b"",
            "report": source.report if source else None,
        }
    return {
        "sessions": sessions,
        "records": list(Record.objects.order_by("ordinal").values_list("ordinal", "line", "offset", "length", "kind")),
    }


def _plain(value):
    return bytes(value) if isinstance(value, memoryview | bytes) else value


def _segments(plan):
    return list(ViewSegment.objects.filter(compaction=plan).order_by("position").values_list("kind", "first_index", "last_index"))


def forget_all():
    Compaction.objects.all().delete()
    Session.objects.all().delete()
    SourceFile.objects.all().delete()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_session_that_grows_is_stored_as_if_it_had_come_at_once(story, grown, went_on, tmp_path):
    transcript = story()
    data = transcript.render(NOW)
    lines = data.splitlines(keepends=True)
    cuts = sorted(random.Random(4).sample(range(2, len(lines)), min(10, len(lines) - 2)))
    name = f"{transcript.session_id}.jsonl"
    grown(name, [b"".join(lines[first:last]) for first, last in zip([0, *cuts], [*cuts, len(lines)], strict=True)])
    step_by_step = everything()
    assert went_on.count(True) >= len(cuts) - 1
    forget_all()
    import_paths(actor=ACTOR, paths=[tmp_path / name])
    assert step_by_step == everything()


def test_an_added_line_costs_as_many_queries_in_a_long_session_as_in_a_short_one(grown, django_assert_max_num_queries):
    rows = [prompt("u0", None)]
    for number in range(300):
        rows += [answer(f"a{number}", rows[-1]["uuid"], call(f"c{number}")), result(f"r{number}", f"a{number}", f"c{number}")]
    grown(f"{SESSION}.jsonl", [encode(rows), encode([answer("b1", "r299")])])
    with django_assert_max_num_queries(60):
        grown(f"{SESSION}.jsonl", [encode([prompt("b2", "b1")])])


def test_a_turn_that_begins_and_ends_is_told_as_work(grown):
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    rows = [prompt("u1", None, timestamp=now), answer("a1", "u1", timestamp=now)]
    more = [[prompt("u2", "a1", timestamp=now)], [answer("a2", "u2", timestamp=now)]]
    states = []
    grown(f"{SESSION}.jsonl", [encode(rows)])
    for stretch in more:
        grown(f"{SESSION}.jsonl", [encode(stretch)])
        states.append(Session.objects.get().status)
    assert states == ["working", "idle"]
    told = Event.objects.filter(type="session.status_changed").order_by("pk").values_list("after", flat=True)
    assert list(told) == [{"status": "working"}, {"status": "idle"}]
    assert Event.objects.filter(type="entries.appended").count() == 2


def test_what_another_one_wrote_to_the_session_is_not_written_over(grown, went_on):
    grown(f"{SESSION}.jsonl", [encode([prompt("u1", None), answer("a1", "u1")])])
    session = Session.objects.get()
    last = session.entries.latest("index")
    Entry.objects.create(session=session, index=2, role="notice", kind="compacted", parts="[]", prefix_hash=last.prefix_hash)
    Session.objects.update(entry_count=3)
    grown(f"{SESSION}.jsonl", [encode([prompt("u2", "a1")])])
    assert went_on == [False]
    assert list(session.entries.order_by("index").values_list("source_id", flat=True)) == ["u1", "a1", "", "u2"]


def test_a_file_whose_end_was_rewritten_is_read_as_a_whole(grown, went_on, tmp_path):
    grown(f"{SESSION}.jsonl", [encode([prompt("u1", None), answer("a1", "u1", "first")])])
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(encode([prompt("u1", None), answer("a9", "u1", "other"), answer("a3", "a9", "and more")]))
    grown(f"{SESSION}.jsonl", [b""])
    assert went_on == [False]
    assert Session.objects.get().source_files.count() == 2
