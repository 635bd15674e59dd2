"""What is said in a session that programs hold by the API: items are appended, and a person's message goes to who answers it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from sessions_app.engine.terms import OPEN_STATUSES, PartKind
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session, SessionKind, SessionStatus, SourceFile
from sessions_app.permissions import Action, require
from sessions_app.runners.base import MESSAGE
from sessions_app.selectors.item_ids import item_id
from sessions_app.services import steering
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.services.items import InvalidItem
from sessions_app.services.turns import send
from sessions_app.services.turns.appending import Draft, append

ELSEWHERE = "This session is read from its agent's own file, so nothing can be appended to it here."


@dataclass(frozen=True)
class Taken:
    """Where a message went: an item of the history, a turn that waits for its answer, or on to the runner."""

    item_id: str | None = None
    turn_id: uuid.UUID | None = None
    goes_to_runner: bool = False


def append_item(*, actor: Actor, session: Session, draft: Draft) -> str:
    """Appends what an agent said or did; starts nothing. Returns the item's id. Raises `InvalidItem`."""
    require(actor, Action.INGEST, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    with transaction.atomic():
        return _append(_locked(session), draft, actor)


def take_message(*, actor: Actor, session: Session, draft: Draft, key: uuid.UUID | None = None) -> Taken:
    """Takes a person's message. With a runner it is appended, and the caller hands it over by `hand_over` after the commit.

    Held here with a model that can be asked, a turn is queued; without one, the message is appended and nobody answers. Raises
    `InvalidItem`, what `send` raises, and `CompactionUnderWay` while a runner compacts: what it gets then, some agents lose.
    """
    require(actor, Action.MESSAGE, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    if session.runner_id is None and session.kind == SessionKind.INLINE and session.model and session.provider:
        if any(part.kind is not PartKind.TEXT for part in draft.parts):
            raise InvalidItem("data.content", "message: a message to a model is text alone here.")
        text = "\n\n".join(part.text for part in draft.parts)
        return Taken(turn_id=send.send(actor=actor, session=session, text=text, key=key).pk)
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        is_bound = current.runner_id is not None
        if is_bound and Compaction.objects.filter(session_id=current.pk, status__in=OPEN_STATUSES).exists():
            raise CompactionUnderWay("A compaction of this session is under way. Nothing was sent. Send it again when that is over.")
        if is_bound and _has_file(current):
            return Taken(goes_to_runner=True)  # the agent writes it down itself
        return Taken(item_id=_append(_locked(session), draft, actor), goes_to_runner=is_bound)


def hand_over(*, actor: Actor, session: Session, data: Mapping[str, Any]) -> None:
    """Sends a message on to the session's runner, which has a turn from then on. Call outside of any transaction.

    Raises `RunnerError`: the message stays in the history, and nobody answers it.
    """
    steering.deliver(actor=actor, session=session, event_type=MESSAGE, data=data)
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        if current.status not in {SessionStatus.IDLE, SessionStatus.FAILED}:
            return
        Session.objects.filter(pk=current.pk).update(status=SessionStatus.WORKING)
        log.append(
            log.session_stream(current.pk),
            EventType.SESSION_STATUS_CHANGED,
            actor=actor,
            target=("session", str(current.pk)),
            before={"status": current.status},
            after={"status": SessionStatus.WORKING.value},
            reason="its runner took a message",
        )


def _locked(session: Session) -> Session:
    current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
    if _has_file(current):
        raise InvalidItem("", ELSEWHERE)
    return current


def _has_file(session: Session) -> bool:
    return SourceFile.objects.filter(session_id=session.pk).exists()


def _append(session: Session, draft: Draft, actor: Actor) -> str:
    return item_id(session.pk, append(session, [draft], actor=actor)[0])
