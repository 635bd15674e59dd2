"""Who does something: every event names one."""

from dataclasses import dataclass

from sessions_app.models import ActorKind


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who acts, as they are known at this moment. `role` is `operator`, `support`, `admin` or empty.

    `scopes` are what a token may be used for, of its owner's rights; None for whoever has them all.
    """

    kind: ActorKind
    id: str = ""
    name: str = ""
    role: str = ""
    request_id: str = ""
    gesture_id: str = ""
    address: str = ""
    scopes: frozenset[str] | None = None


def system_actor(name: str) -> Actor:
    """The product itself: a worker, the sweeper, the demo."""
    return Actor(kind=ActorKind.SYSTEM, id=name, name=name)
