"""Imports as pages show them: the list of runs, and one run with what came of each file."""

import uuid
from dataclasses import dataclass

from sessions_app.models import ImportRun
from sessions_app.models.import_run import ImportState

PAGE_ROWS = 50


@dataclass(frozen=True)
class ImportRow:
    """One run in the list. `words` says in a line what came of it.

    `percent` of the source that is being read now is read; `None` when none is.
    """

    run: ImportRun
    words: str
    percent: int | None

    @property
    def is_open(self) -> bool:
        return self.run.state in {ImportState.QUEUED, ImportState.RUNNING}


@dataclass(frozen=True)
class ImportedFile:
    """One source of a run. `session_id` is empty where none came of it."""

    name: str
    state: str
    session_id: str
    title: str
    entries: int
    problems: int
    checkpoints: int
    children: int
    error: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ImportPage:
    """One run with its sources, failures first. `unlisted`: sources that the list leaves out; `unlisted_failures`: failed ones of them."""

    row: ImportRow
    files: tuple[ImportedFile, ...]
    unlisted: int
    unlisted_failures: int


def runs() -> list[ImportRow]:
    """The newest runs, newest first."""
    return [_row(run) for run in ImportRun.objects.defer("files").order_by("-requested_at", "-id")[:PAGE_ROWS]]


def run_page(run_id: uuid.UUID | str) -> ImportPage | None:
    """One run, or `None` when there is none of that id."""
    run = ImportRun.objects.filter(pk=run_id).first()
    if run is None:
        return None
    files = tuple(
        ImportedFile(
            name=told["name"],
            state=told["state"],
            session_id=told.get("session_id", ""),
            title=told.get("title", ""),
            entries=told.get("entries", 0),
            problems=told.get("problems", 0),
            checkpoints=told.get("checkpoints", 0),
            children=told.get("children", 0),
            error=told.get("error", ""),
            notes=tuple(told.get("notes", ())),
        )
        for told in run.files
    )
    failures = run.counts.get("sources_failed", 0) - sum(file.state == "failed" for file in files)
    return ImportPage(_row(run), files, unlisted=max(0, run.counts.get("sources", 0) - len(files)), unlisted_failures=max(0, failures))


def _row(run: ImportRun) -> ImportRow:
    counts = run.counts
    states = ("new", "grown", "rewritten", "unchanged", "skipped", "failed", "cancelled")
    told = [f"{counts[f'sources_{state}']:,} {state}" for state in states if counts.get(f"sources_{state}")]
    if counts.get("entries"):
        told.append(f"{counts['entries']:,} entries")
    if run.cancel_requested and run.state == ImportState.RUNNING:
        told.append("stopping")
    if run.state == ImportState.RUNNING and counts.get("found"):
        told.insert(0, f"{counts.get('sources', 0):,} of {counts['found']:,} files")
    percent = None
    if run.state == ImportState.RUNNING and counts.get("reading_size"):
        percent = min(99, 100 * counts["reading_bytes"] // counts["reading_size"])
        told.append(f"{percent} % of {megabytes(counts['reading_size'])} read")
    return ImportRow(run=run, words=", ".join(told) or run.get_state_display().lower(), percent=percent)


def megabytes(size_bytes: int) -> str:
    """A size as people say it: under 1 MB, 12 MB."""
    return f"{size_bytes / 1_000_000:,.0f} MB" if size_bytes >= 1_000_000 else "under 1 MB"
