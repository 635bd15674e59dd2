"""The how-to of the command line: what it shows can be run as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from sessions_app.management.exits import Exit
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.management.commands import ROOT, run
from tests.services.compaction_scenes import long_session

pytestmark = pytest.mark.django_db(transaction=True)

HOW_TO = ROOT / "docs/how-to/command-line.md"
READING = {"sessions", "view", "compactions", "events", "policy"}
CHANGING = re.compile(r" --(?:set|reset)\b")


def examples(document: Path) -> list[str]:
    """The commands of the console blocks, without what a shell does with their output."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    lines = [line.removeprefix("python3 manage.py ") for block in blocks for line in block.splitlines()]
    return [re.split(r" [|>] ", line)[0] for line in lines]


def test_every_reading_example_runs_as_it_is_written(support_actor, monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    session = long_session()
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    told = [example for example in examples(HOW_TO) if example.split()[0] in READING and not CHANGING.search(example)]
    assert len(told) >= 15
    for example in told:
        name, *arguments = [str(session.pk) if word == "SESSION" else word for word in shlex.split(example)]
        out, _, end = run(name, *arguments)
        assert end == Exit.OK, example
        assert out or "attention" in example or "pressure" in example or "refused" in example, example


def test_every_code_that_it_lists_is_one_that_commands_end_with():
    listed = re.findall(r"^\| (\d+) \|", HOW_TO.read_text(), re.MULTILINE)
    assert [int(code) for code in listed] == sorted(Exit)
