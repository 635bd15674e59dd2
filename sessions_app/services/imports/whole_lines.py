"""The part of a growing file that is whole: its last line may still be written."""

import io
import os
from typing import BinaryIO

import orjson

BLOCK = 65_536


class UpTo(io.RawIOBase):
    """A file as if it ended at `end`, whatever is added behind. Closing it leaves the file open."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        super().__init__()
        self._file, self.end = file, end

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(self.end + offset if whence == os.SEEK_END else offset, 0 if whence == os.SEEK_END else whence)

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self.end - self._file.tell())
        return self._file.read(left if size is None or size < 0 else min(size, left))

    def readline(self, size: int | None = -1) -> bytes:
        left = max(0, self.end - self._file.tell())
        return self._file.readline(left if size is None or size < 0 else min(size, left))


def end_of_lines(file: BinaryIO, size: int, *, start: int = 0) -> int:
    """Where the last whole line before `size` ends; `start` when no line ends behind it. Reads the last line alone."""
    end = size
    while end > start:
        begin = max(start, end - BLOCK)
        file.seek(begin)
        place = file.read(end - begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return start


def is_object(file: BinaryIO, start: int, size: int) -> bool:
    """Whether the bytes between the two are a JSON object: then only the line's end is missing."""
    file.seek(start)
    try:
        return isinstance(orjson.loads(file.read(size - start)), dict)
    except ValueError:
        return False
