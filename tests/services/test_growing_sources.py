"""Sources that somebody writes to for as long as they are read: what stood there at the beginning is taken, and no more."""

import contextlib
import gzip
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessions_app.models.import_run import ImportState
from sessions_app.readers.archives import CHUNK_BYTES
from sessions_app.readers.lines import READ_SIZE
from sessions_app.services import imports
from sessions_app.services.imports.outcomes import SourceState
from sessions_app.services.imports.parallel import WORTHWHILE_FILES
from tests.importing import ACTOR
from tests.management.commands import shell
from tests.readers import codex_rollouts
from tests.readers.rows import SESSION, Row, encode, prompt
from tests.services.import_scenes import rows, take, the_session, write

LEFT = re.compile(r"grew while it was read: ([\d,]+) bytes are left for the next import\.")
ENOUGH = 400
"""More often than this nobody asks whether to go on while so little is read: the import does not end."""


class Writer:
    """Adds more to a file than one read takes, each time an import asks whether it shall go on."""

    def __init__(self, path: Path, more: bytes) -> None:
        self._path, self._more, self._asked = path, more, 0

    def __call__(self) -> bool:
        self._asked += 1
        assert self._asked < ENOUGH, "the import follows whoever writes"
        with self._path.open("ab") as file:
            file.write(self._more * (1 + 2 * READ_SIZE // len(self._more)))
        return False


def codex_rows() -> list[Row]:
    return [codex_rollouts.meta(), codex_rollouts.context(), codex_rollouts.user("First"), codex_rollouts.said("Done.")]


CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]},
]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "told", "more"),
    [
        (f"{SESSION}.jsonl", encode(rows()), encode([prompt("more", "a6", "and more " * 500)])),
        (codex_rollouts.NAME, encode(codex_rows()), encode([codex_rollouts.user("and more " * 500)])),
        ("chat.jsonl", encode(CHAT), encode([{"role": "user", "content": "and more " * 500}])),
        ("messages.jsonl", encode(MESSAGES), encode([{"role": "user", "content": [{"type": "text", "text": "and more " * 500}]}])),
    ],
    ids=["claude-code", "codex", "openai-chat", "anthropic-messages"],
)
def test_what_stood_in_a_file_when_it_was_opened_is_taken_and_the_rest_by_the_next_import(tmp_path, name, told, more):
    path = write(tmp_path, told, name=name)
    outcome = take(path, cancelled=Writer(path, more))
    assert (outcome.state, outcome.bytes) == (SourceState.NEW, len(told))
    assert [int(left.replace(",", "")) for left in LEFT.findall(outcome.notes[-1])] == [path.stat().st_size - len(told)]
    before = outcome.entries_total
    later = take(path)
    assert (later.state, later.bytes, later.notes) == (SourceState.GROWN, path.stat().st_size, [])
    assert later.entries_total > before
    assert take(path).state is SourceState.UNCHANGED


@pytest.mark.django_db
def test_the_report_of_a_session_says_what_is_left_until_the_next_import_took_it(tmp_path):
    path = write(tmp_path)
    take(path, cancelled=Writer(path, encode([prompt("more", "a6")])))
    assert LEFT.search(the_session().source_files.get().report["notes"][-1])
    take(path)
    assert "notes" not in the_session().source_files.get().report


def _member(number: int) -> bytes:
    """A member of a tar, with its header, longer than what is read at once."""
    data = encode([prompt("o", None, "x" * 2 * CHUNK_BYTES)])
    info = tarfile.TarInfo(f"{number:08d}-2222-4333-8444-555555555555.jsonl")
    info.size = len(data)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


@pytest.fixture
def while_it_is_unpacked(monkeypatch):
    """Does something each time that bytes of a packed file were read."""

    def do(what: Callable[[], object]) -> None:
        asked = imports.runs._Run._asked_to_stop
        monkeypatch.setattr(imports.runs._Run, "_asked_to_stop", lambda self: what() or asked(self))

    return do


@pytest.mark.django_db
def test_a_packed_file_to_which_somebody_goes_on_adding_is_taken_as_it_was(tmp_path, settings, while_it_is_unpacked):
    settings.DATA_DIR = tmp_path / "data"
    path = tmp_path / f"{SESSION}.jsonl.gz"
    path.write_bytes(gzip.compress(encode(rows())))
    while_it_is_unpacked(Writer(path, gzip.compress(encode([prompt("more", "a6", "x" * 2 * CHUNK_BYTES)]), 0)))
    run = imports.import_paths(actor=ACTOR, paths=[path])
    assert (run.state, run.files[0]["entries"]) == (ImportState.COMPLETED, 18)
    assert run.files[0]["notes"][-1].startswith("The archive grew while it was read")


@pytest.mark.django_db
@pytest.mark.parametrize("cut", [0, 700])
def test_an_archive_to_which_somebody_goes_on_adding_is_taken_as_it_was_or_said_to_be_unfinished(
    tmp_path, settings, while_it_is_unpacked, cut
):
    settings.DATA_DIR = tmp_path / "data"
    path = tmp_path / "all.tar"
    path.write_bytes(_member(1) + _member(2)[: -cut or None])
    while_it_is_unpacked(Writer(path, _member(3)))
    run = imports.import_paths(actor=ACTOR, paths=[path])
    if cut:
        assert (
            run.error
            == "The archive was not taken: it is cut off in the middle of a file. It is still being written: import it when it is whole."
        )
    else:
        assert [file["state"] for file in run.files] == ["new", "new"]
        assert ["notes" in file for file in run.files] == [False, True]


@contextlib.contextmanager
def written_to(path: Path, more: bytes) -> Iterator[None]:
    """A file to which somebody writes all the time, faster than an import reads."""
    stop = threading.Event()

    def write_on() -> None:
        with path.open("ab", buffering=0) as file:
            while not stop.wait(0.002):
                file.write(more)

    thread = threading.Thread(target=write_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_a_folder_that_several_processes_import_ends_while_an_agent_writes_on(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(WORTHWHILE_FILES):
        session = f"{number:08d}-2222-4333-8444-555555555555"
        write(folder, encode([prompt("o", None) | {"sessionId": session}]), name=f"{session}.jsonl")
    path = write(folder)
    with written_to(path, encode([prompt("more", "a6", "and more " * 8_000)])):
        done = shell(tmp_path / "data", "import_sessions", folder)
    assert done.returncode == 0, done.stderr
    assert f"{WORTHWHILE_FILES + 1} files: {WORTHWHILE_FILES + 1} new" in done.stdout
    assert LEFT.search(done.stdout)
