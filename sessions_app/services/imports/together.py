"""Many small files at once: they are read one after the other, and what is new of them is stored in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from django.db import connection, transaction

from sessions_app.events.actors import Actor
from sessions_app.services.imports.find import open_file
from sessions_app.services.imports.outcomes import SourceOutcome
from sessions_app.services.imports.source import SourceImport, import_source
from sessions_app.services.write_turns import write_turn

SMALL_BYTES = 100_000
"""Files up to this size are stored together."""

TOGETHER_BYTES = 300_000
"""Of files that one transaction stores: about 30 ms of writing."""


def import_sources(*, actor: Actor, paths: Sequence[Path], cancelled: Callable[[], bool]) -> Iterator[SourceOutcome]:
    """What comes of each file, in no order, as `import_source` tells it.

    What can't be stored together with others is imported once more on its own, so that none of them suffers from another.
    """
    alone: list[Path] = []
    with ExitStack() as opened:
        held: list[SourceImport] = []
        for path in paths:
            job = _read(opened, actor, path, cancelled)
            if isinstance(job, SourceOutcome):
                yield job
            elif job is None:
                alone.append(path)
            else:
                held.append(job)
                if sum(one.size for one in held) >= TOGETHER_BYTES:
                    yield from _store(held, alone)
                    held = []
                    opened.close()
        yield from _store(held, alone)
    for path in alone:
        yield import_source(actor=actor, path=path, name=str(path), cancelled=cancelled)


def _read(opened: ExitStack, actor: Actor, path: Path, cancelled: Callable[[], bool]) -> SourceImport | SourceOutcome | None:
    """A small file that was read and is all new, or what came of it already; `None`: it has to be imported on its own."""
    # On PostgreSQL several write at once, and who holds rows of many sources would wait for the others crosswise.
    if connection.vendor != "sqlite":
        return None
    try:
        file = opened.enter_context(open_file(path))
        job = SourceImport(actor, file, path, str(path), is_staged=False, progress=lambda *_: None, cancelled=cancelled)
        if job.size > SMALL_BYTES:
            return None
        return job.read() or (job if job.is_new else job.store())
    except Exception:  # noqa: BLE001  whatever it is: importing it on its own says so
        return None


def _store(held: list[SourceImport], alone: list[Path]) -> list[SourceOutcome]:
    """Stores sources in one transaction; adds to `alone` those that could not be."""
    if not held:
        return []
    stored: list[SourceOutcome] = []
    failed: list[Path] = []
    try:
        with write_turn(), transaction.atomic():
            for job in held:
                try:
                    stored.append(job.store())
                except Exception:
                    if connection.needs_rollback:  # not even to the state before this one
                        raise
                    failed.append(job.file_path)
    except Exception:  # noqa: BLE001  nothing of it is stored; importing each on its own says why
        stored, failed = [], [job.file_path for job in held]
    alone += failed
    return stored
