"""Cancelling an attempt, at whatever point it stands; nothing of it remains but its row and its events."""

import uuid

from django.db import transaction

from sessions_app.engine.terms import Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session
from sessions_app.services.compactions import unknown
from sessions_app.services.compactions.endings import CANCELLED, end


class UnknownCompaction(Exception):
    """The session has no such compaction."""


def cancel(*, actor: Actor, session: Session, compaction_id: uuid.UUID) -> Compaction:
    """Cancels an open attempt; one that has ended is returned as it is.

    A waiting or requested attempt ends at once. A running one is told, and ends within a second: its
    worker looks four times a second. Raises `UnknownCompaction`.
    """
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=session.pk)  # before the attempt's row, in the order of a commit
        compaction = Compaction.objects.select_for_update(no_key=True).filter(pk=compaction_id, session_id=session.pk).first()
        if compaction is None:
            raise UnknownCompaction("This session has no such compaction. Nothing was changed.")
        if compaction.is_open and not compaction.cancel_requested:
            Compaction.objects.filter(pk=compaction_id).update(cancel_requested=True)
            log.append(
                log.session_stream(session.pk),
                EventType.COMPACTION_CANCEL_REQUESTED,
                actor=actor,
                target=("compaction", str(compaction_id)),
                compaction_id=compaction_id,
                payload={"status": compaction.status, "phase": compaction.phase},
            )
            if compaction.status != Status.RUNNING:
                end(compaction_id, CANCELLED, actor=actor)
            elif compaction.operation_id:
                end(compaction_id, unknown.STOPPED_WAITING, actor=actor)  # its worker has left it to the runner
    compaction.refresh_from_db()
    return compaction
