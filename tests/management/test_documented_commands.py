"""The documents' commands: whatever they show is run as it stands, on a session and a project that are there."""

import io
import itertools
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from django.core.management.base import CommandError

from sessions_app.demo import stories, work
from sessions_app.demo.material import SHOP
from sessions_app.engine.terms import Status
from sessions_app.management.exits import Exit
from sessions_app.models import Compaction, MemoryFact, PolicyValue, Project, Session
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.conftest import make_user
from tests.documents import DOCUMENTS, HOW_TO, ROOT, Example, examples
from tests.importing import imported
from tests.management.commands import run

pytestmark = pytest.mark.django_db(transaction=True)

ELSEWHERE = {"up", "watch", "test", "check_all", "help", "migrate", "collectstatic", "demo"}
"""They serve, follow, or want another place than a test's database: tests of their own run them."""

INLINE = {"send", "model"}
"""What is asked of a session that is held here."""

RUNS_OUT = {Exit.OK, Exit.NOTHING_TO_DO}


class Scene:
    """What the placeholders of examples stand for, and the folder in which they are run."""

    def __init__(self, folder: Path, actor) -> None:
        self._folder = folder
        self._names = (f"maria{number}" for number in itertools.count())
        self.session = self._compacted(actor)
        self.inline = run("new_session", "--model", "scripted")[0].strip()
        make_user("NAME", "support")
        make_user("maria", "support")

    def _compacted(self, actor) -> Session:
        story, rng = stories.started("documented", SHOP, seed=5)
        story.title("As the documents have it")
        while story.context_tokens < 14_000:
            work.turn(story, rng, SHOP, size=8)
        projects = self._folder / ".claude/projects/-home-dev-shop"
        projects.mkdir(parents=True)
        (projects / f"{story.session_id}.jsonl").write_bytes(story.render(datetime.now(UTC)))
        shutil.copytree(ROOT / "tests/data/codex", self._folder / ".codex/sessions")
        session = imported(story, window=20_000)
        run_compaction(request(actor=actor, session=session).compaction.pk)
        return session

    def run(self, example: Example) -> int:
        """Runs it, and returns how it ends."""
        arguments = [self._meant(example.name, word) for word in example.arguments]
        try:
            with patch("sys.stdin", io.StringIO("What a file says." if example.reads else "")):
                out, _, end = run(example.name, *arguments)
        except CommandError as failure:
            pytest.fail(f"{example}: {failure}")
        if example.writes:
            (self._folder / example.writes).write_text(out)
        return end

    def _meant(self, command: str, word: str) -> str:
        match word:
            case "SESSION":
                return self.inline if command in INLINE else str(self.session.pk)
            case "PROJECT":
                return "shop"
            case "ID":
                return str(
                    (self._fact() if command == "memory" else Compaction.objects.filter(status=Status.DRAFTED).latest("requested_at")).pk
                )
            case "maria" | "NAME" if command == "create_user":
                return next(self._names)
        return word.replace("~", str(self._folder))

    def _fact(self) -> MemoryFact:
        return MemoryFact.objects.create(
            project=Project.objects.get(name="shop"),
            session=self.session,
            kind="decision",
            text="So it is.",
            digest="0",
            created_at=datetime.now(UTC),
        )


@pytest.fixture
def scene(tmp_path, monkeypatch, support_actor) -> Scene:
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    monkeypatch.setattr("sessions_app.providers.scripted_model.PAUSE_S", 0)
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):  # a key is looked for, and never used here
        monkeypatch.setenv(name, "sk-none")
    made = Scene(tmp_path, support_actor)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    for name in ("A", "B"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"threshold_pct": 0.5}))
    return made


def test_every_command_that_a_document_shows_runs_as_it_is_written(scene, capsysbinary):
    ended = {}
    for document in DOCUMENTS:
        PolicyValue.objects.all().delete()  # what one document sets is nothing that another one knows of
        shown = {str(example): example for example in examples(document) if example.name not in ELSEWHERE}
        ended |= {(document.name, call): scene.run(example) for call, example in shown.items()}
    assert len({name for name, _ in ended}) > 8
    assert {call: end for call, end in ended.items() if end not in RUNS_OUT} == {}


def test_every_code_that_it_lists_is_one_that_commands_end_with():
    listed = re.findall(r"^\| (\d+) \|", (HOW_TO / "command-line.md").read_text(), re.MULTILINE)
    assert [int(code) for code in listed] == sorted(Exit)
