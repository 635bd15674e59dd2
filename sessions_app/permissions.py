"""The only gates: who may do what, and the only way to reach a session for somebody."""

import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from sessions_app.events import log, refusals
from sessions_app.events.actors import Actor
from sessions_app.models import AccessToken, ActorKind, Session

OPERATORS, SUPPORT, ADMINS = "operators", "support", "admins"
ROLE_BY_GROUP = {ADMINS: "admin", SUPPORT: "support", OPERATORS: "operator"}  # strongest first


class Action(StrEnum):
    """What a person may ask for."""

    READ = "read"
    IMPORT = "import"
    EXPORT = "export"
    COMPACT = "compact"
    CANCEL = "cancel"
    REVERT = "revert"
    DRAFT = "draft"  # edit, commit and discard one
    FORK = "fork"
    PIN = "pin"
    EXCLUDE = "exclude"
    MESSAGE = "message"
    EDIT = "edit"  # title, labels, archive
    INGEST = "ingest"  # write down what happened in an agent elsewhere
    BIND_RUNNER = "bind_runner"  # say which program owns a session's loop
    INTERRUPT = "interrupt"
    CHOOSE_MODEL = "choose_model"
    RESET_BREAKER = "reset_breaker"  # let automatic compaction start again
    CHANGE_MEMORY = "change_memory"  # forget facts, and have failed flushes repaired
    AUDIT = "audit"
    MANAGE_USERS = "manage_users"
    MANAGE_POLICIES = "manage_policies"
    MANAGE_TOKENS = "manage_tokens"
    MANAGE_RUNNERS = "manage_runners"
    REPAIR = "repair"  # set right what the doctor finds


_OPERATOR = frozenset({Action.READ, Action.IMPORT, Action.EXPORT})
_SUPPORT = _OPERATOR | {
    Action.COMPACT,
    Action.CANCEL,
    Action.REVERT,
    Action.DRAFT,
    Action.FORK,
    Action.MESSAGE,
    Action.EDIT,
    Action.INGEST,
    Action.BIND_RUNNER,
    Action.INTERRUPT,
    Action.CHOOSE_MODEL,
    Action.RESET_BREAKER,
    Action.PIN,
    Action.EXCLUDE,
    Action.CHANGE_MEMORY,
}
ACTIONS_BY_ROLE: dict[str, frozenset[Action]] = {
    "operator": _OPERATOR,
    "support": _SUPPORT,
    "admin": frozenset(Action),
    "": frozenset(),
}


class Scope(StrEnum):
    """What a token may be used for, of what its owner may do."""

    READ = "read"
    INGEST = "ingest"
    STEER = "steer"
    ADMIN = "admin"


_INGEST = frozenset({Action.IMPORT, Action.INGEST})
ACTIONS_BY_SCOPE: dict[str, frozenset[Action]] = {
    Scope.READ: frozenset({Action.READ, Action.EXPORT}),
    Scope.INGEST: _INGEST,
    Scope.STEER: _SUPPORT - _OPERATOR - _INGEST,
    Scope.ADMIN: frozenset(Action) - _SUPPORT,
}
"""Each action belongs to exactly one scope."""


class NoAccess(Exception):
    """There is nothing here for this person: answered 404, so that it does not tell whether the thing exists."""


class ActionRefused(Exception):
    """The person may see this, but not do that: answered 403, with the right that is missing."""

    def __init__(self, action: Action, role: str, scopes: frozenset[str] | None = None) -> None:
        self.action = action
        self.role = role
        if scopes is not None and action in ACTIONS_BY_ROLE.get(role, frozenset()):
            scope = next(name for name, actions in ACTIONS_BY_SCOPE.items() if action in actions)
            held = ", ".join(sorted(scopes)) or "none"
            super().__init__(
                f"This token may not {action.value.replace('_', ' ')}: that takes the scope {scope}; it has {held}. Nothing was changed."
            )
            return
        needed = "support or admins" if action in _SUPPORT else "admins"
        super().__init__(
            f"Your role ({role or 'none'}) may not {action.value.replace('_', ' ')}; the groups {needed} may. Nothing was changed."
        )


def role_of(user: AbstractBaseUser | AnonymousUser) -> str:
    """The strongest role that the user's groups give, or an empty string. One query, cached on the user."""
    if not isinstance(user, User) or not user.is_active:
        return ""
    role: str | None = getattr(user, "_palimpsest_role", None)
    if role is None:
        groups = set(user.groups.values_list("name", flat=True))
        role = next((name for group, name in ROLE_BY_GROUP.items() if group in groups), "")
        user._palimpsest_role = role  # type: ignore[attr-defined]
    return role


def actor_of(request: HttpRequest) -> Actor:
    """The actor behind a page request."""
    user = request.user
    common = {
        "request_id": getattr(request, "request_id", ""),
        "gesture_id": _printable(request.headers.get("X-Gesture-Id", "")[:64]),
        "address": request.META.get("REMOTE_ADDR", ""),
    }
    if not user.is_authenticated:
        return Actor(kind=ActorKind.ANONYMOUS, **common)
    return Actor(kind=ActorKind.USER, id=str(user.pk), name=user.get_username(), role=role_of(user), **common)


def _printable(sent: str) -> str:
    """Without what PostgreSQL refuses to store: whoever sends a NUL along would leave no event."""
    return "".join(character for character in sent if character.isprintable())


def actor_of_token(token: AccessToken, *, request_id: str = "", address: str = "") -> Actor:
    """The actor behind a token that holds: its owner, with the rights that both have. `id` is the token's. One query."""
    return Actor(
        kind=ActorKind.TOKEN,
        id=str(token.pk),
        name=token.owner.get_username(),
        role=role_of(token.owner),
        request_id=request_id,
        address=address,
        scopes=frozenset(token.scopes),
    )


def actor_of_socket(scope: Mapping[str, Any]) -> Actor:
    """The actor behind a websocket, as things stand now: user, groups and sign-in are read again each time.

    Somebody who signed out, was switched off or got another password is anonymous from then on.
    """
    address = str((scope.get("client") or [""])[0])
    user = User.objects.filter(pk=scope["user"].pk, is_active=True).first() if scope["user"].is_authenticated else None
    if user is None or not _is_still_signed_in(user, scope.get("session")):
        return Actor(kind=ActorKind.ANONYMOUS, address=address)
    return Actor(kind=ActorKind.USER, id=str(user.pk), name=user.get_username(), role=role_of(user), address=address)


def _is_still_signed_in(user: User, session: SessionBase | None) -> bool:
    if session is None or session.session_key is None:
        return True
    stored = session.__class__(session.session_key)  # what it says now; nothing once it has expired
    return constant_time_compare(stored.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())


def command_actor(name: str = "") -> Actor:
    """The actor behind a command: the named user with that user's role, else the system user with admin rights.

    Raises `NoAccess` when a name is given that no active user has.
    """
    import getpass  # noqa: PLC0415  reads the password database, which only commands need

    name = name or settings.COMMAND_USER
    if not name:
        return Actor(kind=ActorKind.CLI, id=f"cli:{getpass.getuser()}", name=f"cli:{getpass.getuser()}", role="admin")
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise NoAccess(f"There is no active user {name!r}. Nothing was changed.")
    return Actor(kind=ActorKind.USER, id=str(user.pk), name=name, role=role_of(user))


def allows(actor: Actor, action: Action) -> bool:
    """Whether the actor's role includes the action, and so do a token's scopes. The system itself may do anything."""
    return actor.kind == ActorKind.SYSTEM or (_role_allows(actor, action) and _scopes_allow(actor.scopes, action))


def _role_allows(actor: Actor, action: Action) -> bool:
    return action in ACTIONS_BY_ROLE.get(actor.role, frozenset())


def _scopes_allow(scopes: frozenset[str] | None, action: Action) -> bool:
    return scopes is None or any(action in ACTIONS_BY_SCOPE.get(scope, frozenset()) for scope in scopes)


def _sees_nothing(actor: Actor) -> bool:
    """Whether not even the existence of a thing is for the actor: a matter of the role, whatever a token is for."""
    return actor.kind != ActorKind.SYSTEM and not _role_allows(actor, Action.READ)


def require(actor: Actor, action: Action, *, target: tuple[str, str] = ("", ""), stream: str = "") -> None:
    """Lets the actor pass, or writes the refusal down and raises `NoAccess` (no role) or `ActionRefused`."""
    if allows(actor, action):
        return
    who = "a token of these scopes" if _role_allows(actor, action) else f"role {actor.role or 'none'}"
    reason = f"{who} may not {action.value}"
    refusals.record(actor=actor, reason=reason, target=target, stream=stream, payload={"action": action.value})
    if _sees_nothing(actor):
        raise NoAccess("Your account is in no group, so there is nothing to show. An admin can add it to one.")
    raise ActionRefused(action, actor.role, actor.scopes)


_LONG = (
    "policy", "summary", "mechanical_state", "retention", "unsupported", "rungs", "summarisers_tried", "warnings", "detail", "instructions",
)  # fmt: skip
"""Columns of a compaction that may hold some hundred kilobytes: whoever opens a session needs none of them, and gets them when they are
asked for."""

_OPENED = ("active_agent", "active_console", "running")


def access_session(actor: Actor, session_id: uuid.UUID | str, action: Action) -> Session:
    """The session, if the actor may do `action` with it; else an event and `NoAccess` or `ActionRefused`."""
    if _sees_nothing(actor):
        require(actor, action, target=("session", str(session_id)))  # before the look: also whether it exists is not for them
    opened = Session.objects.select_related("project", "parent", *_OPENED)
    session = opened.defer(*(f"{which}__{column}" for which in _OPENED for column in _LONG)).filter(pk=session_id).first()
    if session is None:
        raise unknown_session(actor, str(session_id), action)
    steering = action not in _OPERATOR
    require(actor, action, target=("session", str(session.pk)), stream=log.session_stream(session.pk) if steering else "")
    return session


def require_session(actor: Actor, session_id: uuid.UUID | str) -> None:
    """The same gate for whoever only follows a session, at a quarter of its cost: sockets ask every minute, each of them."""
    require(actor, Action.READ, target=("session", str(session_id)))
    if not Session.objects.filter(pk=session_id).exists():
        raise unknown_session(actor, str(session_id), Action.READ)


def unknown_session(actor: Actor, named: str, action: Action) -> NoAccess:
    """Writes down that somebody asked for a session that is not there; returns what to raise. `named`: an id or part of one."""
    return unknown(actor, "session", named, action)


def unknown(actor: Actor, kind: str, named: object, action: Action) -> NoAccess:
    """The same of a thing of another kind, by the word that people use for it."""
    refusals.record(actor=actor, reason=f"no such {kind}", target=(kind, str(named)[:64]), payload={"action": action.value})
    return NoAccess(f"There is no such {kind}.")
