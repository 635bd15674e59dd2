"""The goal of a session as a person sets it: it stands beside every summary from the next compaction on."""

from django.db import transaction

from sessions_app.engine import goal as goals
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Session
from sessions_app.permissions import Action, require


class InvalidGoal(Exception):  # noqa: N818  it says what is the matter
    """A text can't be a goal; nothing was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} Nothing was changed.")


def set_goal(*, actor: Actor, session: Session, text: str) -> bool:
    """Sets the goal; an empty text leaves it again to what the messages tell. Returns whether that changed anything.

    Raises `InvalidGoal` and `permissions.ActionRefused`.
    """
    require(actor, Action.EDIT, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    try:
        wanted = goals.cleaned(text)
    except ValueError as error:
        raise InvalidGoal(str(error)) from error
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).only("pk", "goal").get(pk=session.pk)
        if current.goal == wanted:
            return False
        Session.objects.filter(pk=session.pk).update(goal=wanted)
        log.append(
            log.session_stream(session.pk),
            EventType.SESSION_GOAL_CHANGED,
            actor=actor,
            target=("session", str(session.pk)),
            before={"goal": current.goal},
            after={"goal": wanted},
        )
    session.goal = wanted
    return True
