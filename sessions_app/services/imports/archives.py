"""Archives of session files: looked through to the end first, then taken one member at a time."""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings

from sessions_app.readers import archives
from sessions_app.readers.archives import ArchiveError, Member
from sessions_app.services.imports.find import is_sub_agents, may_be_session
from sessions_app.services.imports.outcomes import ImportFailedError, ImportStoppedError, SourceOutcome, SourceState, grown_note
from sessions_app.services.imports.whole_lines import UpTo

MAX_RATIO = 200
ALWAYS_BYTES = 10_000_000
"""So much may come out of the smallest archive: repeated text packs well."""

TakeFile = Callable[[Path, str], SourceOutcome]
"""Imports one unpacked file under a name."""


def kind_of(path: Path) -> str:
    """What kind of archive a file is, by its first bytes; empty for all others, and for what is no ordinary file."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return archives.kind_of(file.read(512))
    except OSError:
        return ""  # whoever imports it says why


@dataclass(frozen=True)
class Archive:
    """An archive on disk. `label` is what people called it."""

    path: Path
    label: str
    kind: str
    cancelled: Callable[[], bool]

    def outcomes(self, take: TakeFile) -> Iterator[SourceOutcome]:
        """What comes of each member, by name. Raises `ImportFailedError` before the first, for an archive that can't be taken.

        Sessions come before their sub-agents. What is added to the archive meanwhile is left for the next import.
        """
        try:
            with self.path.open("rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                file = cast("BinaryIO", UpTo(opened, size))
                try:
                    wanted, refused = self._look_through(file, size)
                except ArchiveError as error:
                    is_growing = os.fstat(opened.fileno()).st_size > size
                    why = "It is still being written: import it when it is whole." if is_growing else "Nothing of it was imported."
                    raise ImportFailedError(f"The archive was not taken: {error}. {why}") from error
                yield from refused
                yield from self._taken(file, size, wanted, take)
        except OSError as error:
            raise ImportFailedError(f"The archive can't be read ({error.strerror or error}). Nothing was changed.") from error

    def _taken(self, file: BinaryIO, size: int, wanted: set[str], take: TakeFile) -> Iterator[SourceOutcome]:
        left = len(wanted)
        try:
            for wants_sub_agents in sorted({is_sub_agents(Path(name)) for name in wanted}):
                for member in self._members(file):
                    if member.name in wanted and not member.refusal and is_sub_agents(Path(member.name)) is wants_sub_agents:
                        outcome = self._take(member, take)
                        left -= 1
                        if not left and (added := os.fstat(file.fileno()).st_size - size) > 0:
                            outcome.notes = [*outcome.notes, grown_note(added, what="The archive")]
                        yield outcome
        except ArchiveError as error:
            text = f"The archive changed while it was read ({error}). What was taken before is kept; repeat the import."
            raise ImportFailedError(text) from error

    def _members(self, file: BinaryIO) -> Iterator[Member]:
        return archives.members(file, self.kind, name=Path(self.label).name)

    def _look_through(self, file: BinaryIO, size: int) -> tuple[set[str], list[SourceOutcome]]:
        """Reads what would be imported to its end, so that a bomb or a broken member shows before anything is stored."""
        limit = max(ALWAYS_BYTES, MAX_RATIO * size)
        wanted: set[str] = set()
        refused: list[SourceOutcome] = []
        unpacked = 0
        for member in self._members(file):
            if member.refusal:
                text = f"It was not taken: {member.refusal}."
                refused.append(SourceOutcome(name=self._name_of(member), state=SourceState.FAILED, error=text))
            elif not (may_be_session(member.name) or self.kind == "gzip"):
                text = "Its name does not end in .json or .jsonl."
                refused.append(SourceOutcome(name=self._name_of(member), state=SourceState.SKIPPED, error=text))
            else:
                wanted.add(member.name)
            for chunk in member.chunks if member.name in wanted or self.kind != "zip" else ():
                unpacked += len(chunk)
                if unpacked > limit:
                    raise ArchiveError(f"it unpacks to more than {MAX_RATIO} times its size ({member.name[:200]})")
                if self.cancelled():
                    raise ImportStoppedError
        if not wanted and not refused:
            raise ArchiveError("it holds no file")
        return wanted, refused

    def _name_of(self, member: Member) -> str:
        return f"{self.label}/{member.name}"

    def _take(self, member: Member, take: TakeFile) -> SourceOutcome:
        """Unpacks one member beside the uploads, imports it, and removes it again."""
        name = self._name_of(member)
        folder = Path(settings.DATA_DIR) / "uploads"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix="member-") as file:
                for chunk in member.chunks:
                    file.write(chunk)
                file.flush()
                return take(Path(file.name), name)
        except OSError as error:
            text = f"It could not be unpacked ({error.strerror or error}). Nothing of it was changed; repeat the import."
            return SourceOutcome(name=name, state=SourceState.FAILED, error=text)
