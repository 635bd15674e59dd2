"""Access tokens: made, used and taken back here and nowhere else. A secret is told once and kept as a hash."""

import hashlib
import secrets
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import DatabaseError, IntegrityError, transaction

from sessions_app.engine.texts import is_storable
from sessions_app.events import log, refusals
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import AccessToken, ActorKind
from sessions_app.permissions import Action, Scope, actor_of_token, require

PREFIX = "plm_"
HINT_CHARS = 10
MAX_NAME_CHARS = 100
LAST_USE_STEP = timedelta(minutes=1)
"""A token that is used all the time is written to once in this."""

FAILURES, FAILURE_WINDOW_S = 20, 60
"""From so many wrong ones on, an address is told to wait, unless it sends one that holds; a secret that often wrong is not looked up."""


class InvalidToken(Exception):  # noqa: N818  it says what is the matter
    """A token can't be made so; nothing was stored. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} No token was made.")


class UnknownToken(LookupError):  # noqa: N818  it says what is the matter
    """There is no such token, or it is revoked."""


class Unauthorized(Exception):  # noqa: N818  it says what is the matter
    """The secret opens nothing. The message does not say more than whoever holds it may know."""


class TooManyFailures(Exception):  # noqa: N818  it says what is the matter
    """So many secrets were wrong that the next ones are not looked up. `retry_s`: when they will be."""

    retry_s = FAILURE_WINDOW_S


@dataclass(frozen=True)
class MadeToken:
    """A new token, and its secret, which nobody can find out later."""

    token: AccessToken
    secret: str


def make(*, actor: Actor, name: str, owner: str, scopes: list[str], expires_at: datetime | None = None) -> MadeToken:
    """Makes a token in the name of the user `owner`. Its rights are its scopes, and of these what its owner may do.

    Raises `InvalidToken` and what `permissions.require` raises.
    """
    require(actor, Action.MANAGE_TOKENS, target=("token", name[:64]), stream=log.SECURITY)
    user, chosen = _checked(name, owner, scopes, expires_at)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = AccessToken(
        name=name,
        owner=user,
        scopes=chosen,
        digest=_digest(secret),
        hint=secret[:HINT_CHARS],
        created_by=actor.name,
        created_at=datetime.now(UTC),
        expires_at=expires_at,
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
            log.append(log.SECURITY, EventType.TOKEN_CREATED, actor=actor, target=("token", str(token.pk)), after=_told(token))
    except IntegrityError as error:
        raise InvalidToken("name", f"There is already a token {name!r}.") from error
    return MadeToken(token, secret)


def revoke(*, actor: Actor, token_id: uuid.UUID) -> AccessToken:
    """Ends a token for good. Raises `UnknownToken` when there is none that holds, and what `permissions.require` raises."""
    require(actor, Action.MANAGE_TOKENS, target=("token", str(token_id)), stream=log.SECURITY)
    with transaction.atomic():
        found = AccessToken.objects.select_related("owner").select_for_update(no_key=True, of=("self",))
        token = found.filter(pk=token_id, revoked_at__isnull=True).first()
        if token is None:
            raise UnknownToken("There is no such token, or it is revoked already. Nothing was changed.")
        before = _told(token)
        token.revoked_at = datetime.now(UTC)
        token.save(update_fields=["revoked_at"])
        target = ("token", str(token.pk))
        log.append(log.SECURITY, EventType.TOKEN_REVOKED, actor=actor, target=target, before=before, after=_told(token))
    return token


def authenticate(secret: str, *, request_id: str = "", address: str = "") -> Actor:
    """Who a secret stands for, as things are now. Two queries, and once a minute a third.

    Raises `Unauthorized` for one that is unknown, expired or revoked, or whose owner is switched off, and `TooManyFailures`.
    """
    digest = _digest(secret)
    known_wrong = f"tokens.wrong.{digest[:32]}"
    if cache.get(known_wrong, 0) >= FAILURES:
        raise TooManyFailures(_slow_down())
    token = AccessToken.objects.select_related("owner").filter(digest=digest).first()
    now = datetime.now(UTC)
    why = _why_not(token, now)
    if token is None or why:
        _count_failure(known_wrong, why, token, request_id=request_id, address=address)
        raise Unauthorized("This token does not open anything here: it is unknown, expired or revoked, or its owner was switched off.")
    if token.last_used_at is None or now - token.last_used_at >= LAST_USE_STEP:
        with suppress(DatabaseError):  # a full or busy disk: reading goes on, and the next request writes it down
            AccessToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return actor_of_token(token, request_id=request_id, address=address)


def _why_not(token: AccessToken | None, now: datetime) -> str:
    """Why a token opens nothing; empty where it does."""
    if token is None:
        return "no such token"
    if token.revoked_at is not None:
        return "token revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "token expired"
    return "" if token.owner.is_active else "owner of the token switched off"


def _count_failure(known_wrong: str, why: str, token: AccessToken | None, *, request_id: str, address: str) -> None:
    actor = Actor(kind=ActorKind.ANONYMOUS, request_id=request_id, address=address)
    refusals.record(actor=actor, reason=why, target=("token", str(token.pk) if token else ""), stream=log.SECURITY)
    by_address = f"tokens.wrong_from.{hashlib.sha256(address.encode()).hexdigest()[:32]}"
    if _add(by_address) > FAILURES:
        raise TooManyFailures(_slow_down())
    _add(known_wrong)  # no more of them than one address may send: they share the cache with pages


def _add(key: str) -> int:
    cache.add(key, 0, FAILURE_WINDOW_S)
    try:
        return cache.incr(key)
    except ValueError:  # it ran out between the two
        return 1


def _slow_down() -> str:
    return f"Too many wrong tokens came from there. Wait {FAILURE_WINDOW_S} seconds, and send one that holds."


def _checked(name: str, owner: str, scopes: list[str], expires_at: datetime | None) -> tuple[User, list[str]]:
    if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable() or not is_storable(name):
        raise InvalidToken("name", f"A name has 1 to {MAX_NAME_CHARS} printable characters.")
    user = User.objects.filter(username=owner, is_active=True).first() if is_storable(owner) else None
    if user is None:
        raise InvalidToken("user", f"There is no active user {owner[:40]!r}.")
    if not scopes or not set(scopes) <= set(Scope):
        raise InvalidToken("scopes", f"A token has one or more of the scopes {', '.join(Scope)}.")
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise InvalidToken("expires", "Its end lies in the past.")
    return user, [scope.value for scope in Scope if scope in scopes]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _told(token: AccessToken) -> dict[str, object]:
    """What events say of a token."""
    return {
        "name": token.name,
        "owner": token.owner.get_username(),
        "scopes": token.scopes,
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        "revoked": token.revoked_at is not None,
    }
