"""Small files share a transaction, and nothing else: what is wrong with one of them is no matter of the others."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from sessions_app.events.actors import Actor
from sessions_app.events.verify import verify_all
from sessions_app.models import Entry, Session
from sessions_app.services.imports import finish, source, together
from sessions_app.services.imports.lanes import Lane
from sessions_app.services.imports.outcomes import SourceOutcome, SourceState
from sessions_app.services.imports.together import import_sources
from tests.importing import ACTOR
from tests.readers.rows import answer, encode, prompt
from tests.services.import_scenes import rows, stored, the_session, write

ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="on PostgreSQL each source has a transaction of its own")
IDS = [f"{number:08d}-2222-4333-8444-555555555555" for number in range(5)]


def small(folder: Path, session: str, name: str = "", text: str = "Hello") -> Path:
    made = [{**row, "sessionId": session} for row in (prompt("u", None, text), answer("a", "u"))]
    return write(folder, encode(made), name=f"{name or session}.jsonl")


def take_all(paths: list[Path], cancelled=lambda: False) -> dict[str, SourceOutcome]:
    outcomes = list(import_sources(actor=ACTOR, paths=paths, cancelled=cancelled))
    assert len(outcomes) == len(paths)
    return {Path(outcome.name).stem: outcome for outcome in outcomes}


@pytest.fixture
def commits(monkeypatch) -> list[int]:
    """One number for each transaction in which small files were stored together: how many sources were to be in it."""
    counted: list[int] = []
    store = together._store

    def counting(held, alone):
        counted.append(len(held))
        return store(held, alone)

    monkeypatch.setattr(together, "_store", counting)
    return counted


@ON_SQLITE
@pytest.mark.django_db
def test_small_files_come_in_as_they_would_one_by_one_and_together(tmp_path, commits):
    whole = write(tmp_path)
    assert source.import_source(actor=ACTOR, path=whole, cancelled=lambda: False).state is SourceState.NEW
    alone = stored(the_session())
    Session.objects.all().delete()
    paths = [*(small(tmp_path, session) for session in IDS[:3]), whole]
    assert {outcome.state for outcome in take_all(paths).values()} == {SourceState.NEW}
    assert stored(the_session()) == alone
    assert [session.entry_count for session in Session.objects.filter(source_key__in=[f"claude-code:{one}" for one in IDS])] == [2, 2, 2]
    assert commits == [4]
    assert verify_all()[1] == []
    assert {outcome.state for outcome in take_all(paths).values()} == {SourceState.UNCHANGED}


@pytest.mark.django_db
def test_one_bad_file_takes_nothing_from_the_others(tmp_path, monkeypatch):
    """No session, a file that is gone, the same session twice, and one that the database refuses."""
    paths = [small(tmp_path, session) for session in IDS]
    paths += [small(tmp_path, IDS[0], name="copy"), write(tmp_path, b'{"other": 1}\n', name="none.jsonl"), tmp_path / "gone.jsonl"]
    tell = finish.tell_imported

    def refuse(actor: Actor, lane: Lane, *rest: object) -> None:
        tell(actor, lane, *rest)
        if IDS[2] in lane.session.source_key:
            raise DatabaseError("it does not like this one")

    monkeypatch.setattr(finish, "tell_imported", refuse)
    told = take_all(paths)
    assert [told[session].state for session in IDS] == [SourceState.NEW] * 2 + [SourceState.FAILED] + [SourceState.NEW] * 2
    assert "does not like" in told[IDS[2]].error
    assert (told["copy"].state, told["none"].state, told["gone"].state) == (SourceState.UNCHANGED, SourceState.SKIPPED, SourceState.FAILED)
    assert Session.objects.listed().count() == 4
    assert Entry.objects.count() == 8
    assert verify_all()[1] == []


@ON_SQLITE
@pytest.mark.django_db
def test_what_can_not_be_committed_together_comes_in_one_by_one(tmp_path, monkeypatch):
    @contextmanager
    def failing() -> Iterator[None]:
        with atomic():
            yield
            raise OperationalError("database or disk is full")

    atomic = transaction.atomic
    asked: list[int] = []

    def fails_first(**how):
        asked.append(1)
        return failing() if len(asked) == 1 else atomic(**how)

    monkeypatch.setattr(together.transaction, "atomic", fails_first)
    assert {outcome.state for outcome in take_all([small(tmp_path, session) for session in IDS]).values()} == {SourceState.NEW}
    assert Session.objects.listed().count() == 5


class _Killed(BaseException):
    pass


@ON_SQLITE
@pytest.mark.django_db
def test_who_is_killed_in_the_middle_leaves_nothing_half_done(tmp_path, monkeypatch):
    paths = [small(tmp_path, session) for session in IDS]
    store, seen = source.finish, []

    def die(**given: object) -> None:
        store(**given)
        seen.append(1)
        if len(seen) == 3:
            raise _Killed

    monkeypatch.setattr(source, "finish", die)
    with pytest.raises(_Killed):
        take_all(paths)
    assert (Session.objects.count(), Entry.objects.count()) == (0, 0)
    monkeypatch.setattr(source, "finish", store)
    assert {outcome.state for outcome in take_all(paths).values()} == {SourceState.NEW}


@pytest.mark.django_db
def test_a_file_that_grew_among_new_ones_is_brought_up_to_date(tmp_path):
    old = write(tmp_path, encode(rows()[:4]))
    take_all([old])
    write(tmp_path)
    told = take_all([old, *(small(tmp_path, session) for session in IDS[:2])])
    assert told[old.stem].state is SourceState.GROWN
    assert {told[session].state for session in IDS[:2]} == {SourceState.NEW}


@pytest.mark.django_db
def test_what_is_cancelled_says_so_of_each_file(tmp_path):
    told = take_all([small(tmp_path, session) for session in IDS], cancelled=lambda: True)
    assert {outcome.state for outcome in told.values()} == {SourceState.CANCELLED}
    assert Session.objects.listed().count() == 0
