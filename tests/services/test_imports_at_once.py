"""Several imports at the same session at the same time: whatever their order, the history is that of the longest file."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection

from sessions_app.models import Compaction, Session, SourceFile
from sessions_app.selectors.raw_page import source_bytes
from sessions_app.services.imports import source, sources
from sessions_app.services.imports.outcomes import OvertakenError, SourceState
from sessions_app.services.imports.writer import SourceWriter
from tests.readers.rows import answer, encode, prompt
from tests.services.import_scenes import rows, take, write

pytestmark = pytest.mark.django_db(transaction=True)

CODEX = next((Path(__file__).resolve().parents[1] / "data" / "codex").glob("*.jsonl"))


@pytest.fixture(autouse=True)
def _brief(monkeypatch):
    """Batches of a few rows, so that imports meet in the middle; and who waits for another looks often."""
    monkeypatch.setattr("sessions_app.services.imports.writer.BATCH_ROWS", 3)
    monkeypatch.setattr(sources, "LOOK_S", 0.01)
    monkeypatch.setattr(source, "PAUSE_S", 0.02)


def history(session: Session) -> list[tuple]:
    return list(session.entries.order_by("index").values_list("index", "source_id", "role", "kind", "parts", "off_branch", "prefix_tokens"))


def at_once(paths: list[Path]) -> list[SourceState]:
    """Imports them all from threads that begin together; says how each ended."""
    ready = threading.Barrier(len(paths))

    def work(path: Path) -> SourceState:
        try:
            ready.wait()
            return take(path).state
        finally:
            connection.close()

    with ThreadPoolExecutor(len(paths)) as pool:
        return list(pool.map(work, paths))


def prefixes(folder: Path, data: bytes, cuts: list[int]) -> list[Path]:
    """Files that hold the first so many lines, one beside the other."""
    lines = data.splitlines(keepends=True)
    found = []
    for number, cut in enumerate(cuts):
        (folder / str(number)).mkdir()
        found.append(write(folder / str(number), b"".join(lines[:cut]), CODEX.name if data == CODEX.read_bytes() else "a.jsonl"))
    return found


@pytest.mark.parametrize("told", [CODEX.read_bytes(), encode(rows())], ids=["without ids", "with ids"])
@pytest.mark.parametrize("cuts", [[8, 99], [99, 8], [99, 99], [6, 14, 99], [99, 14, 11, 6]], ids=str)
def test_files_of_one_session_that_are_imported_at_once_leave_the_history_of_the_longest(tmp_path, told, cuts):
    [alone] = prefixes(tmp_path, told, [99])
    wanted = Session.objects.get(pk=take(alone).session_id)
    expected, checkpoints = history(wanted), Compaction.objects.filter(session=wanted).count()
    Session.objects.all().delete()
    beside = tmp_path / "beside"
    beside.mkdir()
    for round_number in range(3):
        folder = beside / str(round_number)
        folder.mkdir()
        ends = at_once(prefixes(folder, told, cuts))
        assert SourceState.FAILED not in ends
        session = Session.objects.get(parent=None)
        assert history(session) == expected
        assert Compaction.objects.filter(session=session).count() == checkpoints
        kept = SourceFile.objects.filter(session=session).latest("version")
        assert (kept.version, b"".join(source_bytes(kept))) == (1, told)
        Session.objects.all().delete()


def test_an_import_that_was_overtaken_stores_nothing_of_its_batch_and_reads_anew(tmp_path, monkeypatch):
    path = write(tmp_path, encode([prompt("u1", None), answer("a1", "u1")]))
    session = Session.objects.get(pk=take(path).session_id)
    path.write_bytes(encode([prompt("u1", None), answer("a1", "u1"), prompt("u2", "a1"), answer("a2", "u2")]))
    met: list[str] = []
    hold_still = SourceWriter.hold_still

    def overtaken_once(self) -> None:
        if not met:
            met.append("overtaken")
            Session.objects.filter(pk=session.pk).update(entry_count=7)
            try:
                hold_still(self)
            except OvertakenError:
                met.append("told")
                raise
            finally:
                Session.objects.filter(pk=session.pk).update(entry_count=2)
        hold_still(self)

    monkeypatch.setattr(SourceWriter, "hold_still", overtaken_once)
    outcome = take(path)
    assert (met, outcome.state, outcome.error) == (["overtaken", "told"], SourceState.GROWN, "")
    assert [source_id for _, source_id, *_ in history(session)] == ["u1", "a1", "u2", "a2"]


def test_who_is_overtaken_again_and_again_is_told_to_repeat_it(tmp_path, monkeypatch):
    def overtaken(self) -> None:
        raise OvertakenError

    path = write(tmp_path)
    monkeypatch.setattr(SourceWriter, "hold_still", overtaken)
    outcome = take(path)
    assert (outcome.state, outcome.may_retry) == (SourceState.FAILED, True)
    assert "Another import of the same session is under way" in outcome.error
    assert not Session.objects.exists()


def test_an_import_that_was_cut_off_is_waited_for_no_longer_than_it_may_still_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "STILL_S", 0.05)
    path = write(tmp_path)
    session = Session.objects.get(pk=take(path).session_id)
    SourceFile.objects.filter(session=session).update(is_complete=False)
    assert take(path).state is SourceState.GROWN
    assert SourceFile.objects.get(session=session).is_complete
