"""What became of each entry in a model view: computed from the chain of checkpoints, never stored."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Fate, Role


class EntryFate(msgspec.Struct, frozen=True, kw_only=True):
    """The one fate of an entry. `generation` names the checkpoint that took it out of the view or cleared it."""

    fate: Fate
    generation: int | None = None


def fate_of(shape: EntryShape, chain: Sequence[Checkpoint]) -> EntryFate:
    """The fate of an entry under a chain of checkpoints, oldest first; the last one is in force.

    An entry that is out of the view belongs to the checkpoint that took it out for good, not to the newest: later
    ones only carry on what that one summarised.
    """
    if shape.role is Role.NOTICE:
        return EntryFate(fate=Fate.DISPLAY_ONLY)
    if shape.off_branch:
        return EntryFate(fate=Fate.OFF_BRANCH)
    if not chain:
        return EntryFate(fate=Fate.VERBATIM)
    if shape.index in chain[-1].excluded:
        return EntryFate(fate=Fate.EXCLUDED)
    if shape.index in chain[-1].pinned:
        return EntryFate(fate=Fate.PINNED)
    if chain[-1].holds(shape.index):
        return _fate_in_view(shape, chain)
    remover = chain[-1]
    for checkpoint in reversed(chain):
        if checkpoint.holds(shape.index):
            break
        remover = checkpoint
    return EntryFate(fate=Fate.TRIMMED if remover.trimmed else Fate.SUMMARISED, generation=remover.generation)


def _fate_in_view(shape: EntryShape, chain: Sequence[Checkpoint]) -> EntryFate:
    if shape.index not in chain[-1].cleared:
        return EntryFate(fate=Fate.VERBATIM)
    first = next(checkpoint for checkpoint in chain if shape.index in checkpoint.cleared)
    return EntryFate(fate=Fate.CLEARED, generation=first.generation)
