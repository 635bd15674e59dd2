"""Whether the entries before a boundary are still those that a plan was made of."""

import uuid
from collections.abc import Collection

from django.db.models import OuterRef, Subquery

from sessions_app.models import Compaction, Entry

REWOUND = (
    "The agent has rewound its session behind what this summary covers: some of it was taken back, and the summary still tells it. "
    "The view is sent as it was made. Go back to an earlier generation or to the whole history, then compact again."
)
"""The warning of a checkpoint that a rewind went behind."""


def prefix_hash_before(session_id: uuid.UUID | str, boundary_index: int) -> bytes:
    """The rolling hash over the entries before a boundary; 32 bytes, or none for a boundary at the start."""
    rows = Entry.objects.filter(session_id=session_id, index=boundary_index - 1)
    return bytes(rows.values_list("prefix_hash", flat=True).first() or b"")


def is_other(session_id: uuid.UUID | str, boundary_index: int | None, prefix_hash: bytes) -> bool:
    """Whether the entries before a boundary are not those that a checkpoint with this hash was made of. One row; without a hash, none."""
    return bool(boundary_index and prefix_hash) and prefix_hash_before(session_id, boundary_index or 0) != bytes(prefix_hash)


def is_other_than(checkpoint_id: uuid.UUID) -> bool:
    """The same of a stored checkpoint. One query."""
    now = Entry.objects.filter(session_id=OuterRef("session_id"), index=OuterRef("boundary_index") - 1).values("prefix_hash")
    rows = Compaction.objects.filter(pk=checkpoint_id, boundary_index__gt=0).annotate(now=Subquery(now))
    return any(made_of and bytes(made_of) != bytes(found or b"") for made_of, found in rows.values_list("prefix_hash", "now"))


def is_prefix_changed(compaction: Compaction, boundary_index: int, off_branch: Collection[int]) -> bool:
    """Whether the entries before the boundary, or what of them is off the branch, are not what the plan was made of."""
    if prefix_hash_before(compaction.session_id, boundary_index) != bytes(compaction.prefix_hash):
        return True
    # A rewind: what was folded did not happen any more, and what was left out did.
    rows = Entry.objects.filter(session_id=compaction.session_id, off_branch=True, index__lt=boundary_index)
    return set(rows.values_list("index", flat=True)) != {index for index in off_branch if index < boundary_index}
