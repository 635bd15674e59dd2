"""What changes in folders, and in which order it is looked at."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import structlog
from watchfiles import Change, watch

from sessions_app.services.imports.find import is_sub_agents, may_be_session

logger = structlog.get_logger(__name__)
logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it would write a line for every line that an agent writes

DEBOUNCE_MS = 50
STEP_MS = 15
POLL_MS = 500
POLLED_FILES = 10_000
"""Files that are looked at so often; twice as many are half as often."""

AT_MOST_EVERY_S = 0.25
"""A file that is written to all the time is looked at four times a second; after a pause it is at once."""

GONE_S = 2.0
"""A folder that is away (unmounted, replaced) is looked for so often."""

_TELLS_NOTHING = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "vboxsf", "prl_fs", "fuse.")
"""File systems on which another machine writes without this one being told."""

_NO_MORE_WATCHES = ("limit", "no space", "too many")


def session_files(folders: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """Every file below the folders that may be a session: its size and time of change. Links to folders are not followed."""
    found: dict[str, tuple[int, int]] = {}
    waiting = [str(folder) for folder in folders]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:  # one that went away, or may not be read
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif may_be_session(entry.name) and not entry.is_dir():
                        status = entry.stat()
                        found[entry.path] = (status.st_size, status.st_mtime_ns)
    return found


def is_polled(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a folder lies on a file system that does not tell of changes. On systems without that list: no."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    resolved = str(folder.resolve())
    best, kind = "", ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        place = fields[1].replace("\\040", " ")
        holds = place == "/" or resolved == place or resolved.startswith(f"{place}/")
        if holds and len(place) >= len(best):
            best, kind = place, fields[2]
    return kind.startswith(_TELLS_NOTHING)


class FolderObserver(threading.Thread):
    """Tells of files that changed, within about 50 ms, or by looking through the folders where nothing tells of it."""

    def __init__(self, folders: Sequence[Path], changed: Callable[[Sequence[Path]], None], stop: threading.Event, *, polls: bool) -> None:
        super().__init__(name="watch-folders", daemon=True)
        self._folders, self._changed, self._closing, self._polls = list(folders), changed, stop, polls
        self._was_away = False  # something may have changed unseen

    def run(self) -> None:
        while not self._closing.is_set():
            present = [folder for folder in self._folders if folder.is_dir()]
            try:
                if present:
                    self._observe(present)
            except Exception as error:  # noqa: BLE001  the folder went away, or the system's watches ran out
                logger.warning("watch_folders_failed", error=type(error).__name__, reason=str(error)[:200])
                self._polls = self._polls or any(word in str(error).lower() for word in _NO_MORE_WATCHES)
            self._was_away = True
            self._closing.wait(GONE_S)

    def _observe(self, folders: list[Path]) -> None:
        inodes = {folder: folder.stat().st_ino for folder in folders}
        if self._was_away:
            self._changed([Path(name) for name in session_files(folders)])
        changes = watch(
            *folders,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._closing,
            rust_timeout=int(GONE_S * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=self._polls,
            poll_delay_ms=_poll_ms(folders) if self._polls else POLL_MS,
            ignore_permission_denied=True,
        )
        for some in changes:
            if some:
                self._changed(_files_in(some))
            elif any(_inode(folder) != inodes.get(folder) for folder in self._folders):
                return  # one came, went or was replaced: what was followed is another one


def _poll_ms(folders: Iterable[Path]) -> int:
    """The more files there are, the less often all of them are looked at."""
    return POLL_MS * max(1, len(session_files(folders)) // POLLED_FILES)


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except OSError:
        return None


def _files_in(changes: Iterable[tuple[Change, str]]) -> list[Path]:
    """The session files among changes; a folder that is new may hold some already. Sub-agents come after sessions."""
    found: set[Path] = set()
    for change, name in changes:
        path = Path(name)
        if may_be_session(path.name):
            found.add(path)
        elif change is Change.added and path.is_dir():
            found.update(map(Path, session_files([path])))
    return sorted(found, key=lambda path: (is_sub_agents(path), str(path)))


class Turns:
    """Files that wait to be looked at, each once, and never by two workers at a time."""

    def __init__(self) -> None:
        self._due: dict[Path, float] = {}
        self._large: set[Path] = set()
        self._busy: set[Path] = set()
        self._again: set[Path] = set()  # changed while they were being looked at
        self._rested: dict[Path, float] = {}  # before this time a file that was looked at is not looked at again
        self._changed = threading.Condition()
        self._is_closed = False

    def add(self, path: Path, *, is_large: bool = False, after_s: float = 0.0) -> None:
        """Asks for a look after so many seconds; the earlier of two that were asked for counts."""
        with self._changed:
            if path in self._busy:
                self._again.add(path)
                return
            due = max(time.monotonic() + after_s, self._rested.get(path, 0.0))
            self._due[path] = min(due, self._due.get(path, due))
            (self._large.add if is_large else self._large.discard)(path)
            self._changed.notify_all()

    def take(self, *, may_be_large: bool) -> Path | None:
        """The next file whose time has come; waits for it. `None` when it was closed."""
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                due, path = min(((due, path) for path, due in self._due.items() if may_be_large or path not in self._large), default=_NEVER)
                if path is not None and due <= now:
                    del self._due[path]
                    self._busy.add(path)
                    return path
                self._changed.wait(None if path is None else due - now)
        return None

    def done(self, path: Path, again_s: float | None) -> None:
        """Lets the next look at a file come: when it changed meanwhile, or after so many seconds when it is to be looked at again."""
        with self._changed:
            now = time.monotonic()
            self._busy.discard(path)
            self._rested = {other: until for other, until in self._rested.items() if until > now} | {path: now + AT_MOST_EVERY_S}
            is_changed = path in self._again
            self._again.discard(path)
        if is_changed or again_s is not None:
            self.add(path, after_s=0.0 if is_changed else again_s or 0.0)

    def close(self) -> None:
        """Wakes whoever waits; nothing more is given out."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


_NEVER: tuple[float, Path | None] = (0.0, None)
