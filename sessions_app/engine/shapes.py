"""What planning needs to know of an entry: everything but its text, so that a long session plans from small rows."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine.entries import Checkpoint, Entry
from sessions_app.engine.terms import Kind, PartKind, Role

# Looking a member up in its class costs a call in Python 3.11, and planning asks this of every entry.
_NOTICE, _USER, _MESSAGE, _CALL = Role.NOTICE, Role.USER, Kind.MESSAGE, Kind.CALL
_CALL_PART, _RESULT_PART = PartKind.CALL, PartKind.RESULT


class EntryShape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry without its parts. `call_ids` are of its calls when `kind` is `call`, of its results when `result`."""

    index: int
    role: Role
    kind: Kind
    tokens: int
    source_id: str = ""
    message_key: str = ""
    call_ids: tuple[str, ...] = ()
    off_branch: bool = False
    meta: bool = False

    @property
    def is_sent(self) -> bool:
        """Whether the entry may stand in a view: on the live branch, and no notice."""
        return self.role is not _NOTICE and not self.off_branch

    @property
    def is_user_message(self) -> bool:
        """Whether a person's message starts here, and with it a turn."""
        return self.role is _USER and self.kind is _MESSAGE and not self.meta and not self.off_branch


def shape_of(entry: Entry) -> EntryShape:
    """The shape of a loaded entry."""
    wanted = _CALL_PART if entry.kind is _CALL else _RESULT_PART
    parts = entry.parts
    call_ids: tuple[str, ...] = ()
    if len(parts) == 1:  # nearly all of them
        if parts[0].kind is wanted and parts[0].call_id:
            call_ids = (parts[0].call_id,)
    else:
        call_ids = tuple(dict.fromkeys([part.call_id for part in parts if part.kind is wanted and part.call_id]))
    return EntryShape(
        index=entry.index,
        role=entry.role,
        kind=entry.kind,
        tokens=entry.tokens,
        source_id=entry.source_id,
        message_key=entry.message_key,
        call_ids=call_ids,
        off_branch=entry.off_branch,
        meta=entry.meta,
    )


def in_view(shapes: Sequence[EntryShape], checkpoint: Checkpoint | None) -> list[EntryShape]:
    """The shapes of a whole history that stand in a view, in the order of the history. It costs what the view holds."""
    if checkpoint is None:
        return [shape for shape in shapes if shape.role is not _NOTICE and not shape.off_branch]
    singles, ranges = checkpoint.places()
    held: list[EntryShape] = []
    after = 0  # first position that no place before has covered
    for first, last in sorted([*ranges, *((index, index) for index in singles)]):
        start, end = max(first, after), min(last + 1, len(shapes))
        if start < end:
            held += [shape for shape in shapes[start:end] if shape.is_sent and shape.index not in checkpoint.excluded]
            after = end
    return held
