"""Who came and went: sign-ins, also failed ones, and sign-outs, as events of the security stream."""

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult


def record_sign_in(*, actor: Actor) -> None:
    """`actor` is the user who is now signed in."""
    log.append(log.SECURITY, EventType.SIGNED_IN, actor=actor, target=("user", actor.id))


def record_failed_sign_in(*, actor: Actor, user_id: str) -> None:
    """`user_id` is empty when no user has the name that was typed.

    The typed name itself is not kept: now and then it is a password in the wrong field.
    """
    log.append(
        log.SECURITY,
        EventType.SIGN_IN_FAILED,
        actor=actor,
        result=EventResult.FAILED,
        target=("user", user_id),
        reason="wrong password, or not active" if user_id else "no such user",
    )


def record_sign_out(*, actor: Actor) -> None:
    log.append(log.SECURITY, EventType.SIGNED_OUT, actor=actor, target=("user", actor.id))
