"""Which files a path means."""

import os
from collections.abc import Iterator
from pathlib import Path

from sessions_app.services.imports.outcomes import ImportFailedError

SUFFIXES = frozenset({".json", ".jsonl"})
# Bookkeeping beside the transcripts of sub-agents and of workflow runs.
_NO_TRANSCRIPT = ("journal.jsonl", ".meta.json")


def files_of(path: Path) -> Iterator[Path]:
    """The file itself, or every file below a folder that may be a session, sorted. Raises `ImportFailedError` when there is none.

    Sessions come before their sub-agents. Links to folders are not followed.
    """
    if not path.is_dir():
        if not path.exists():
            raise ImportFailedError(f"There is no file or folder {path}. Nothing was changed.")
        yield path
        return
    found = sorted(_walk(path), key=lambda file: (is_sub_agents(file), str(file)))
    if not found:
        raise ImportFailedError(f"There is no session file in {path} or below it. Nothing was changed.")
    yield from found


def is_sub_agents(file: Path) -> bool:
    """Whether a file's name says that it is a sub-agent's own."""
    return "subagents" in file.parts or file.stem.startswith("agent-")


def may_be_session(path: Path) -> bool:
    """Whether a file in a folder is called as sessions are."""
    return path.suffix in SUFFIXES and not path.name.endswith(_NO_TRANSCRIPT)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if may_be_session(path) and path.is_file():
                yield path
