"""Which session is whose: binding one to a runner, and taking that back."""

from django.db import transaction

from sessions_app.engine.terms import OPEN_STATUSES
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import OPEN_TURNS, Compaction, Runner, Session, SessionKind, Turn
from sessions_app.permissions import Action, require
from sessions_app.services.compactions import unknown
from sessions_app.services.compactions.request import SessionBusy
from sessions_app.services.compactions.revert import CompactionUnderWay

MAX_EXTERNAL_ID = 200
_BOUND_KIND = {SessionKind.INLINE: SessionKind.OWNED}
"""What a session becomes under a runner; one that was made elsewhere is joined there."""


class InvalidBinding(Exception):
    """A session can't be bound so; nothing was changed."""

    field = "external_id"


def bind(*, actor: Actor, session: Session, runner: Runner, external_id: str = "") -> Session:
    """From now on this runner holds the session's context: it is asked to compact, and gets the messages.

    `external_id`: what the runner calls the session; by itself our own id. Raises `InvalidBinding`, `SessionBusy` and
    `CompactionUnderWay`, and what the gate raises.
    """
    require(actor, Action.BIND_RUNNER, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    external_id = external_id.strip()
    if len(external_id) > MAX_EXTERNAL_ID or not external_id.isprintable() or external_id in {".", ".."}:
        raise InvalidBinding(f"A runner's id of a session has at most {MAX_EXTERNAL_ID} printable characters. Nothing was changed.")
    with transaction.atomic():
        current = _locked(session)
        before = _told(current)
        kind = SessionKind(current.unbound_kind or current.kind)
        after = {"runner": runner, "external_id": external_id, "unbound_kind": kind, "kind": _BOUND_KIND.get(kind, SessionKind.JOINED)}
        _settle(current, actor)
        Session.objects.filter(pk=current.pk).update(**after)
        current.refresh_from_db()
        if _told(current) != before:
            _tell(EventType.RUNNER_BOUND, actor, current, before)
    session.refresh_from_db()
    return session


def unbind(*, actor: Actor, session: Session) -> Session:
    """The session is again what it was without its runner. Raises `SessionBusy`, `CompactionUnderWay` and what the gate raises."""
    require(actor, Action.BIND_RUNNER, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    with transaction.atomic():
        release(actor=actor, session=session)
    session.refresh_from_db()
    return session


def release(*, actor: Actor, session: Session) -> None:
    """The same for whoever may do more. Call in a transaction."""
    current = _locked(session)
    if current.runner_id is None:
        return
    before = _told(current)
    _settle(current, actor)
    columns = {"runner": None, "external_id": "", "unbound_kind": "", "kind": current.unbound_kind or current.kind}
    Session.objects.filter(pk=current.pk).update(**columns)
    current.refresh_from_db()
    _tell(EventType.RUNNER_UNBOUND, actor, current, before)


def _settle(session: Session, actor: Actor) -> None:
    """What a runner left open, its going decides."""
    unknown.decide(session.pk, actor=actor, decision="unbound")


def _locked(session: Session) -> Session:
    current = Session.objects.select_for_update(no_key=True, of=("self",)).select_related("runner").get(pk=session.pk)
    if Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).exists():
        raise CompactionUnderWay("A compaction of this session is under way. Nothing was changed. Cancel it, or wait for its end.")
    if Turn.objects.filter(session_id=session.pk, status__in=OPEN_TURNS).exists():
        raise SessionBusy("A turn of this session is open. Nothing was changed. Wait for its end.")
    return current


def _told(session: Session) -> dict[str, str | None]:
    name = session.runner.name if session.runner else None
    return {"runner": name, "external_id": session.external_id, "kind": session.kind}


def _tell(event_type: EventType, actor: Actor, session: Session, before: dict[str, str | None]) -> None:
    stream, target = log.session_stream(session.pk), ("session", str(session.pk))
    log.append(stream, event_type, actor=actor, target=target, before=before, after=_told(session))
