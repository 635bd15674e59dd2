"""Who came and went: sign-ins, also failed ones, sign-outs, and locks after too many failures, as events of the security stream."""

from axes.models import AccessAttempt
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult
from sessions_app.permissions import Action, require
from sessions_app.selectors.users import Lock, id_of_user_named, locks


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


def record_lock(*, actor: Actor, user_id: str, failures: int) -> None:
    """The failure that was one too many. Tries while the lock lasts are refused without a further event: they could be any number."""
    log.append(
        log.SECURITY,
        EventType.SIGN_IN_LOCKED,
        actor=actor,
        result=EventResult.REFUSED,
        target=("user", user_id),
        reason="too many failures",
        payload={"failures": failures, "minutes": _minutes()},
    )


def record_sign_out(*, actor: Actor) -> None:
    log.append(log.SECURITY, EventType.SIGNED_OUT, actor=actor, target=("user", actor.id))


def lift_locks(*, actor: Actor, key: str) -> list[Lock]:
    """Lets somebody sign in again at once. `key` is a user's name, or the `Lock.key` of a name that nobody has.

    Forgets the failures that were counted and answers the locks that stood; without any, nothing is written.
    Raises what `permissions.require` raises.
    """
    user_id = id_of_user_named(key)
    require(actor, Action.MANAGE_USERS, target=("user", user_id), stream=log.SECURITY)
    with transaction.atomic():
        lifted = [lock for lock in locks(at=timezone.now()) if lock.key == key]
        AccessAttempt.objects.filter(username=key).delete()
        if lifted:
            told = [{"address": lock.address, "failures": lock.failures} for lock in lifted]
            log.append(
                log.SECURITY, EventType.SIGN_IN_UNLOCKED, actor=actor, target=("user", user_id), before={"locks": told}, after={"locks": []}
            )
    return lifted


def _minutes() -> int:
    return int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
