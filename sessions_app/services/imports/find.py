"""Which files a path means."""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from sessions_app.services.imports.outcomes import ImportFailedError, ImportStoppedError

SUFFIXES = frozenset({"json", "jsonl"})
# Bookkeeping beside the transcripts of sub-agents and of workflow runs.
_NO_TRANSCRIPT = ("journal.jsonl", ".meta.json")

NO_FILE = "It is a pipe, a socket or a device, not a file."


@dataclass
class Found:
    """The files, sessions before their sub-agents, and by path what is wrong with what was no file, or could not be looked at."""

    files: list[Path] = field(default_factory=list)
    sessions: int = 0  # of the files; the others are sub-agents'
    no_files: dict[Path, str] = field(default_factory=dict)
    unreadable: dict[Path, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.files) + len(self.no_files) + len(self.unreadable)


def files_of(path: Path, *, cancelled: Callable[[], bool] = lambda: False) -> Found:
    """The file itself, or every file below a folder that may be a session, sorted. Raises `ImportFailedError` when there is nothing.

    Links to folders are not followed. A link to a file is, where it leads to one. `cancelled` is asked at each folder; where it
    says yes, `ImportStoppedError` is raised.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError as error:
        raise ImportFailedError(f"There is no file or folder {path}. Nothing was changed.") from error
    except (OSError, ValueError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ImportFailedError(f"{path} can't be looked at ({why}). Nothing was changed.") from error
    if not is_folder:
        return Found([path], sessions=1)
    found = Found()
    _walk(path, found, cancelled)
    if not (found.files or found.no_files or found.unreadable):
        raise ImportFailedError(f"There is no session file in {path} or below it. Nothing was changed.")
    sub_agents = {file for file in found.files if is_sub_agents(file)}
    found.files.sort(key=lambda file: (file in sub_agents, str(file)))
    found.sessions = len(found.files) - len(sub_agents)
    return found


def open_file(path: Path) -> BinaryIO:
    """Opens an ordinary file to read. Never waits, as for the writer of a pipe. Raises `OSError`, and `ImportFailedError` for no file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise ImportFailedError(f"{NO_FILE} Nothing was changed.")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_sub_agents(file: Path) -> bool:
    """Whether a file's name says that it is a sub-agent's own."""
    return "subagents" in file.parts or file.stem.startswith("agent-")


def may_be_session(name: str) -> bool:
    """Whether a file in a folder is called as sessions are. `name` may have the folders before it."""
    stem, _, suffix = name.rpartition("/")[2].rpartition(".")
    return bool(stem) and suffix in SUFFIXES and not name.endswith(_NO_TRANSCRIPT)


def _walk(folder: Path, found: Found, cancelled: Callable[[], bool]) -> None:
    def note(error: OSError) -> None:
        found.unreadable[Path(error.filename)] = f"The folder can't be read ({error.strerror}). What is in it was not looked at."

    for parent, _, names in os.walk(folder, onerror=note):
        if cancelled():
            raise ImportStoppedError
        for name in names:
            if may_be_session(name):
                _judge(Path(parent, name), found)


def _judge(path: Path, found: Found) -> None:
    """One look at a name, so that a pipe or a link that leads nowhere is said and not opened."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        found.no_files[path] = f"It can't be looked at ({error.strerror})."
        return
    if stat.S_ISREG(mode):
        found.files.append(path)
    elif not stat.S_ISDIR(mode):
        found.no_files[path] = NO_FILE
