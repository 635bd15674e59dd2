"""The first rows of a source of JSON Lines: what tells its format, and whose it is."""

import io
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO

from sessions_app.readers.lines import iter_pieces

HEAD_BYTES = 1 << 18
MAX_FIRST_LINE = 1 << 24
MAX_ROWS = 50  # that are looked at


def rows_of(head: bytes) -> list[dict[str, Any]]:
    """The objects of the first whole lines, which are not to be changed. Never raises."""
    return list(_parsed(head)) if len(head) <= HEAD_BYTES else _parse(head)


def _parse(head: bytes) -> list[dict[str, Any]]:
    whole = head[: head.rfind(b"\n") + 1] or head
    return [piece.value for piece in islice(iter_pieces(io.BytesIO(whole)), MAX_ROWS) if piece.value is not None]


# Each reader looks at the head to tell whether it is its own, and then once more to tell whose: of a small source that is all of it.
_parsed = lru_cache(maxsize=1)(_parse)


def first_rows(source: BinaryIO) -> list[dict[str, Any]]:
    """The same of a source, however long its first line is. Leaves the source where it was."""
    start = source.tell()
    rows = rows_of(source.read(HEAD_BYTES))
    if not rows:
        source.seek(start)
        rows = rows_of(source.readline(MAX_FIRST_LINE))
    source.seek(start)
    return rows
