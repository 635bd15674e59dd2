"""Making an earlier checkpoint, or none, the one in force. The history and the checkpoints stay as they are."""

from django.db import transaction

from sessions_app.engine.terms import OPEN_STATUSES, Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session
from sessions_app.services import overrides, signals


class UnknownGeneration(Exception):
    """The session has no checkpoint of that number."""


class CompactionUnderWay(Exception):
    """A compaction is open, and what it builds on must not change under it."""


def revert(*, actor: Actor, session: Session, generation: int | None, as_it_was: bool = False) -> Session:
    """Makes checkpoint `generation` the one that this console shows; `None` takes its own away altogether.

    The view is then byte for byte what it was, but for what is pinned and excluded today; `as_it_was` sets that back as
    well, to what it was when the checkpoint was made (before any decision, for none). With an agent's own checkpoint in
    force, `None` and that checkpoint's number mean the same. Raises `UnknownGeneration` and `CompactionUnderWay`.
    """
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        if Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).exists():
            raise CompactionUnderWay("A compaction of this session is under way. Nothing was changed. Cancel it, or wait for its end.")
        wanted = _checkpoint(current, generation)
        if wanted is not None and wanted.pk == current.active_agent_id:
            wanted = None
        if as_it_was:
            overrides.restore(actor=actor, session=current, version=wanted.override_version if wanted else 0)
        if current.active_console_id == (wanted.pk if wanted else None):
            return _refreshed(current) if as_it_was else current
        Session.objects.filter(pk=session.pk).update(active_console=wanted)
        log.append(
            log.session_stream(session.pk),
            EventType.COMPACTION_REVERTED,
            actor=actor,
            target=("session", str(session.pk)),
            compaction_id=wanted.pk if wanted else None,
            before={"generation": current.active_console.generation if current.active_console else None},
            after={"generation": wanted.generation if wanted else None},
            payload={"entry_count": current.entry_count},
        )
        return _refreshed(current)


def _refreshed(session: Session) -> Session:
    signals.refresh(session.pk)
    session.refresh_from_db()
    return session


def _checkpoint(session: Session, generation: int | None) -> Compaction | None:
    if generation is None:
        return None
    found = Compaction.objects.filter(session_id=session.pk, generation=generation, status=Status.COMPLETED).first()
    if found is None:
        raise UnknownGeneration(f"This session has no checkpoint #{generation}. Nothing was changed.")
    return found
