"""The bytes of a source as zstandard frames of whole records."""

import hashlib

import zstandard

FRAME_BYTES = 256_000
LEVEL = 3


class Framer:
    """Collects raw records and gives finished frames. `hash` covers everything up to the last frame that was closed."""

    def __init__(self, *, start: int = 0) -> None:
        self.hash = hashlib.sha256()
        self._start = start  # bytes before this offset are stored already
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._offset = start

    def add(self, raw: bytes, offset: int) -> None:
        """Takes the next record's bytes."""
        if offset < self._start:
            self.hash.update(raw)
            return
        self._held.append(raw)
        self._held_bytes += len(raw)

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= FRAME_BYTES

    def close(self) -> tuple[int, int, bytes] | None:
        """(offset, length before compression, compressed bytes) of the frame so far, or `None` when it is empty."""
        if not self._held:
            return None
        data = b"".join(self._held)
        self.hash.update(data)
        frame = (self._offset, len(data), self._compressor.compress(data))
        self._offset += len(data)
        self._held, self._held_bytes = [], 0
        return frame
