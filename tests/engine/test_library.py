"""The engine as a library: the example of the document runs as it is written."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import sessions_app.engine
from sessions_app.engine import Commit, Ended, build, checkpoint_of, compact, message
from sessions_app.engine.view import problems
from tests.engine.attempts import long_story

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_example_of_the_document_runs_and_does_what_it_says(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(example.strip().splitlines()) <= 11
    exec(example, {})
    said = capsys.readouterr().out
    assert said.startswith("<compacted-history>")
    assert "Never touch `legacy.py`." in said
    assert int(re.search(r"42 entries, (\d+) messages", said).group(1)) < 42


def test_the_engine_runs_in_an_interpreter_that_has_msgspec_and_nothing_else(tmp_path):
    engine = Path(sessions_app.engine.__file__).parent
    (tmp_path / "sessions_app").mkdir()
    (tmp_path / "sessions_app" / "__init__.py").touch()
    (tmp_path / "sessions_app" / "engine").symlink_to(engine)
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    modules = [f"sessions_app.engine.{'.'.join(path.relative_to(engine).with_suffix('').parts)}" for path in engine.rglob("*.py")]
    program = (
        f"import sys, importlib; sys.path.insert(0, {str(tmp_path)!r})\n{example}\nfor name in {modules!r}: importlib.import_module(name)\n"
    )
    program += "print(*sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    # Without the folders of packages and of the environment.
    run = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1].split() == ["__main__", "msgspec", "sessions_app"]


def test_a_second_attempt_goes_on_from_the_first():
    story = long_story(turns=20)
    first = compact(story.entries)
    assert isinstance(first, Commit)
    chain = [checkpoint_of(first, 1)]
    for turn in range(20):
        story.user(f"More {turn}. " * 40).says(f"Done {turn}. " * 40)
    second = compact(story.entries, chain=chain, previous_summary=first.summary)
    assert isinstance(second, Commit)
    assert second.boundary_index > first.boundary_index
    assert problems(build(story.entries, checkpoint_of(second, 2))) == []


def test_what_comes_to_nothing_says_why():
    ended = compact([message(0, "user", "Hello."), message(1, "assistant", "Hello.")])
    assert isinstance(ended, Ended)
    assert "Nothing was changed." in ended.explanation


def test_a_role_that_nobody_has_is_refused():
    with pytest.raises(ValueError, match="robot"):
        message(0, "robot", "Hello.")
