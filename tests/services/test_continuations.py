"""A continuation from the store: which sessions can have one, what is written down, and how the command gives it."""

import hashlib
import json
import stat
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.engine.terms import Lineage
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind, Event, Session, SessionKind, SessionRelation
from sessions_app.permissions import NoAccess
from sessions_app.selectors import continuation
from sessions_app.selectors.plans import load_view
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.exports import ContinuationFile, ExportKind, export_continuation, export_entries
from sessions_app.writers.base import CannotContinue
from tests.importing import ACTOR
from tests.readers.rows import Row, answer, call, encode, prompt, result
from tests.services.import_scenes import take, write

pytestmark = pytest.mark.django_db(transaction=True)  # a compaction renews its lease from a thread of its own
WORDS = "The parser keeps a table of open spans, and each span carries its offset. "


def conversation(turns: int, *, root: str | None = None, start: int = 0) -> list[Row]:
    rows: list[Row] = []
    before = root
    for turn in range(start, start + turns):
        rows += [
            prompt(f"u{turn}", before, f"Please look at module_{turn}.py"),
            answer(f"a{turn}", f"u{turn}", call(f"c{turn}"), message=f"m{turn}"),
            result(f"r{turn}", f"a{turn}", f"c{turn}", f"line {turn}\n" * 200),
            answer(f"b{turn}", f"r{turn}", f"Module {turn}: {WORDS * 6}"),
        ]
        before = f"b{turn}"
    return rows


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path, encode(conversation(8)))


@pytest.fixture
def session(source) -> Session:
    """Imported and compacted."""
    return compacted(Session.objects.get(pk=take(source).session_id))


def compacted(session: Session) -> Session:
    attempt = request(actor=ACTOR, session=session, force=True).compaction
    run_compaction(attempt.pk)
    session.refresh_from_db()
    attempt.refresh_from_db()
    assert attempt.outcome == "committed", (attempt.status, attempt.reason, attempt.explanation)
    return session


def content(written: ContinuationFile) -> bytes:
    return b"".join(written.chunks())


def texts(session: Session, lineage: Lineage) -> list[list[str]]:
    return [sorted(part.part.text for part in message.parts) for message in load_view(session, lineage, whole=True)]


def test_the_written_file_is_read_again_as_the_view_that_it_was_made_of(session, source, tmp_path):
    original = source.read_bytes()
    written = export_continuation(actor=ACTOR, session=session)
    data = content(written)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (written.size, written.sha256)
    new = write(tmp_path, data, written.place.name)
    again = Session.objects.get(pk=take(new).session_id)
    assert texts(again, Lineage.AGENT) == texts(session, Lineage.CONSOLE)
    assert again.active_agent.summary == session.active_console.segments.get(kind="synthetic").payload["text"]
    assert source.read_bytes() == original


def test_what_came_after_the_compaction_is_in_it_too(session, source, tmp_path):
    source.write_bytes(source.read_bytes() + encode(conversation(2, root="b7", start=8)))
    take(source)
    session.refresh_from_db()
    again = Session.objects.get(pk=take(write(tmp_path, content(export_continuation(actor=ACTOR, session=session)), "x.jsonl")).session_id)
    assert texts(again, Lineage.AGENT) == texts(session, Lineage.CONSOLE)
    assert "Module 9" in str(texts(again, Lineage.AGENT)[-1])


def test_entries_of_a_source_that_was_rewritten_are_found_again_by_their_ids(session, source, tmp_path):
    rows = conversation(8)
    source.write_bytes(encode([{"type": "mode", "mode": "normal", "sessionId": "s"}, *rows, prompt("u9", "b7", "One more")]))
    take(source)
    session.refresh_from_db()
    assert session.source_files.count() == 2
    again = Session.objects.get(pk=take(write(tmp_path, content(export_continuation(actor=ACTOR, session=session)), "x.jsonl")).session_id)
    assert texts(again, Lineage.AGENT) == texts(session, Lineage.CONSOLE)


def test_an_export_says_who_took_which_generation(session, operator_actor):
    with export_continuation(actor=operator_actor, session=session) as written:
        pass
    event = Event.objects.get(type="session.exported")
    assert (event.stream.partition(":")[0], event.actor_id, event.target_id) == ("access", operator_actor.id, str(session.pk))
    assert event.payload == {
        "kind": "continuation", "generation": 1, "continued_as": written.session_id, "bytes": written.size, "sha256": written.sha256,
    }  # fmt: skip


def test_who_may_not_export_gets_nothing(session):
    with pytest.raises(NoAccess):
        export_continuation(actor=Actor(kind=ActorKind.USER, id="9", name="otto", role=""), session=session)
    assert not Event.objects.filter(type="session.exported").exists()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"kind": SessionKind.INLINE}, "real context is compacted here already"),
        ({"agent": "openai-chat"}, "OpenAI chat can't be written"),
        ({"relation": SessionRelation.SUB_AGENT}, "Continue the parent's session"),
        ({"active_console": None}, "Compact the session first"),
    ],
)
def test_sessions_without_a_continuation_say_why(session, columns, reason):
    Session.objects.filter(pk=session.pk).update(**columns)
    session.refresh_from_db()
    assert reason in continuation.offer_of(session).reason
    with pytest.raises(CannotContinue, match=reason):
        export_continuation(actor=ACTOR, session=session)
    assert not Event.objects.filter(type="session.exported").exists()


def test_a_session_that_came_from_no_file_has_none(session):
    session.source_files.all().delete()
    assert "not read from a file" in continuation.offer_of(session).reason


def test_the_command_puts_it_where_the_agent_looks_and_never_overwrites(session, tmp_path, monkeypatch, capsys):
    home = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    with pytest.raises(CommandError, match=r"is not there\. Nothing was written"):
        call_command("export", str(session.pk), "--format", "continuation", "--install")
    assert not Event.objects.filter(type="session.exported").exists()
    home.mkdir()
    call_command("export", str(session.pk), "--format", "continuation", "--install")
    [path] = home.rglob("*.jsonl")
    assert path.parent == home / "projects" / "-home-dev-shop"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = capsys.readouterr().err
    assert f"To go on: cd /home/dev/shop && claude --resume {path.stem}" in said
    assert "set to zero" in said


def test_the_command_writes_into_a_folder_and_tells_a_script_all_about_it(session, tmp_path, capsys):
    call_command("export", str(session.pk), "--format", "continuation", "--output", str(tmp_path), "--json")
    told = json.loads(capsys.readouterr().out)
    data = Path(told["path"]).read_bytes()
    assert (told["bytes"], told["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert (told["generation"], told["folder"]) == (1, "~/.claude/projects/-home-dev-shop")
    assert told["resume"].endswith(f"claude --resume {told['continued_as']}")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--install"], 2),
        (["--json"], 2),
        (["--format", "continuation", "--output", "/nowhere/at/all.jsonl"], 1),
    ],
)
def test_what_cannot_be_met_ends_with_its_code_and_one_sentence(session, arguments, code):
    with pytest.raises(CommandError) as raised:
        call_command("export", str(session.pk), *arguments)
    assert raised.value.returncode == code


def test_a_name_that_the_agent_shortens_is_found_by_its_beginning_or_refused(session, tmp_path, monkeypatch):
    Session.objects.filter(pk=session.pk).update(working_directory="/" + "x" * 250)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    with pytest.raises(CommandError, match="0 folders begin like it"):
        call_command("export", str(session.pk), "--format", "continuation", "--install")
    folder = tmp_path / "projects" / ("-" + "x" * 199 + "-abc")
    folder.mkdir(parents=True)
    call_command("export", str(session.pk), "--format", "continuation", "--install")
    assert len(list(folder.glob("*.jsonl"))) == 1


def test_entries_come_as_json_lines_and_as_markdown_in_which_nothing_is_markup(tmp_path):
    hostile = "# No heading\n```\n<script>alert(1)</script>\n````\n\x1b[31mred\x07"
    rows = [*conversation(1), prompt("u5", "b0", hostile), answer("a5", "u5", "[link](javascript:x) " + "long " * 5_000)]
    session = Session.objects.get(pk=take(write(tmp_path, encode(rows))).session_id)
    Session.objects.filter(pk=session.pk).update(title="# <b>Title</b> [x](y)\nsecond")
    session.refresh_from_db()
    lines = b"".join(export_entries(actor=ACTOR, session=session, kind=ExportKind.JSONL)).splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["index"] for entry in entries] == list(range(session.entry_count))
    assert entries[-2]["parts"][0]["text"] == hostile
    assert len(entries[-1]["parts"][0]["text"]) > 20_000
    text = b"".join(export_entries(actor=ACTOR, session=session, kind=ExportKind.MARKDOWN)).decode()
    assert text.startswith("# \\# \\<b\\>Title\\</b\\> \\[x\\](y) second\n".replace("(y)", r"\(y\)"))
    assert "\x1b" not in text
    assert "\n`````\n# No heading" in text
    headings = [line for line in outside_fences(text) if line.startswith("#")]
    assert len(headings) == session.entry_count + 1


def outside_fences(text: str) -> list[str]:
    """The lines that a reader of Markdown takes for markup."""
    fence, found = "", []
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line
        else:
            found.append(line)
    return found
