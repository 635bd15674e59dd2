"""Which view of a session is meant: whose context, of which generation, or as it was at an entry."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from django.db.models import IntegerField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.overrides import Overrides
from sessions_app.engine.terms import Lineage
from sessions_app.events.log import session_stream
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Event, Session
from sessions_app.selectors import plans
from sessions_app.selectors.view_stream import clipped

NO_GENERATION = 0


@dataclass(frozen=True)
class ChosenView:
    """`chain`: the checkpoints that lead to it, oldest first, the last in force; empty for the whole history.

    `upto`: it ends with this entry; None for all there are.
    """

    context: Lineage
    chain: tuple[Checkpoint, ...]
    upto: int | None = None

    @property
    def checkpoint(self) -> Checkpoint | None:
        return self.chain[-1] if self.chain else None

    @property
    def clipped_checkpoint(self) -> Checkpoint | None:
        """The last plan as it was: nothing in it comes after `upto`."""
        if self.upto is None or not self.chain:
            return self.checkpoint
        segments = tuple(place for segment in self.chain[-1].segments if (place := clipped(segment, self.upto)) is not None)
        return msgspec.structs.replace(self.chain[-1], segments=segments)

    @property
    def generation(self) -> int:
        """Of the checkpoint in force; 0 for the whole history."""
        return self.chain[-1].generation if self.chain else NO_GENERATION


def chosen_view(session: Session, *, context: Lineage | None = None, generation: int | None = None, at: int | None = None) -> ChosenView:
    """The view of a context as it is now, of a generation (0: none), or as it was when entry `at` was the newest.

    A few queries. Raises `LookupError` for a generation or an entry that there is not.
    """
    if at is not None:
        return _view_at(session, context, at)
    if generation is None:
        context = context or plans.default_context(session)
        return ChosenView(context, plans.load_chain(session, context))
    if generation == NO_GENERATION:
        return ChosenView(context or Lineage.CONSOLE, plans.with_overrides((), plans.overrides_of(session)))
    compaction = Compaction.objects.filter(session=session, generation=generation).first()
    if compaction is None:
        raise LookupError(f"This session has no generation #{generation}.")
    chain = plans.chain_of(compaction)
    if compaction.lineage == Lineage.CONSOLE:
        chain = plans.with_overrides(chain, plans.overrides_of(session))
    return ChosenView(Lineage(compaction.lineage), chain)


class Then(NamedTuple):
    """What was in force when an entry was the newest: the checkpoint (None: none), and what was pinned and excluded."""

    context: Lineage
    newest: Compaction | None
    decided: Overrides


def in_force_then(session: Session, context: Lineage | None, at: int) -> Then:
    """Of a context, or of the one that showed then. Raises `LookupError` for an entry that there is not."""
    if not 0 <= at < session.entry_count:
        raise LookupError(f"This session has no entry {at:,}; it has {session.entry_count:,}, counted from 0.")
    console, decided = None, Overrides()
    if context is not Lineage.AGENT:
        console, decided = _console_at(session, at), plans.overrides_then(session.pk, at=at)
    agent = Compaction.objects.filter(session=session, lineage=Lineage.AGENT, generation__isnull=False, divider_index__lte=at)
    newest = None if console else agent.order_by("-divider_index", "-generation").first()
    if console is not None or not decided.is_empty:
        return Then(Lineage.CONSOLE, console or newest, decided)
    if context is Lineage.CONSOLE:
        return Then(Lineage.CONSOLE, None, decided)
    return Then(Lineage.AGENT if newest else Lineage.CONSOLE, newest, decided)


def _view_at(session: Session, context: Lineage | None, at: int) -> ChosenView:
    then = in_force_then(session, context, at)
    return ChosenView(then.context, plans.with_overrides(plans.chain_of(then.newest), then.decided), at)


def _console_at(session: Session, at: int) -> Compaction | None:
    """The checkpoint of this console that was in force when an entry was the newest. Two rows, each found by an index of its own.

    Checkpoints put their divider at the end of the history, and reverts say how long it was: whichever came later, counted
    so, decided. A revert that came at once after a checkpoint saw its divider already.
    """
    columns = ("session", "generation", "lineage", "divider_index")
    checkpoints = Compaction.objects.filter(session=session, generation__isnull=False).only(*columns)
    last = checkpoints.filter(lineage=Lineage.CONSOLE, divider_index__lte=at).order_by("-divider_index").first()
    length = Cast(KeyTextTransform("entry_count", "payload"), IntegerField())
    reverts = Event.objects.filter(stream=session_stream(session.pk), type=EventType.COMPACTION_REVERTED).annotate(length=length)
    revert = reverts.filter(length__lte=at + 1).order_by("-seq").values_list("length", "compaction_id").first()
    if revert is None or (last is not None and last.divider_index is not None and revert[0] <= last.divider_index):
        return last
    return checkpoints.filter(pk=revert[1], lineage=Lineage.CONSOLE).first() if revert[1] else None
