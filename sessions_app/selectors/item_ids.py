"""Ids of items as the API lists them: an entry is one item, or several where it holds several calls or results.

`item_<session>_<index>` is the first item of an entry, `item_<session>_<index>.<n>` its n-th further one. So an id names
its session, and is found again without a look into a table.
"""

import re
from uuid import UUID

from sessions_app.models import Session

_ID = re.compile(r"item_([0-9a-f]{32})_(0|[1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?", re.ASCII)


class UnknownItem(LookupError):  # noqa: N818  it says what is the matter
    """No item of the session has this id."""

    def __init__(self, named: str) -> None:
        super().__init__(f"No item of this session has the id {named[:80]!r}.")


def item_id(session_id: UUID, index: int, further: int = 0) -> str:
    """The id of an entry's first item, or of the `further`-th one after it."""
    return f"item_{session_id.hex}_{index}.{further}" if further else f"item_{session_id.hex}_{index}"


def place_of_item(session: Session, named: str) -> tuple[int, int]:
    """(index of the entry, number of the item within it) of an id. Raises `UnknownItem`, also for an entry that is not there."""
    match = _ID.fullmatch(named)
    if match is None or match[1] != session.pk.hex or int(match[2]) >= session.entry_count:
        raise UnknownItem(named)
    return int(match[2]), int(match[3] or 0)
