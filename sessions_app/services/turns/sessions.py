"""Beginning a session that this product holds itself."""

from datetime import UTC, datetime

from django.db import transaction

from sessions_app.engine.policy import check_value
from sessions_app.engine.terms import Kind, Profile, Role
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import PolicyScope, PolicyValue, Session, SessionKind, new_id
from sessions_app.permissions import Action, require
from sessions_app.providers.turn_models import UnusableModel, parse_model
from sessions_app.services import signals
from sessions_app.services.turns.appending import Draft, append, text_part

AGENT = "palimpsest"
UNTITLED = "New session"
MAX_TITLE_CHARS = 200
MAX_SYSTEM_CHARS = 100_000
WINDOWS = (2_000, 2_000_000)


class InvalidSession(Exception):
    """A session can't be begun so; nothing was stored. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was begun.")


def begin(
    *, actor: Actor, model: str, title: str = "", system: str = "", window: int | None = None, profile: str = "", key: str = ""
) -> Session:
    """A new session, to which messages can be sent. `window` in tokens; without one, the model's own.

    `title`: without one, the first message gives it. `key`: under which it is found again; by itself it gets a new one.
    Raises `InvalidSession` and `permissions.ActionRefused`.
    """
    require(actor, Action.MESSAGE, target=("session", "new"))
    title = " ".join(storable(title).split())
    provider, name, named_window = _checked(model.strip(), title, system, window, profile)
    identifier = new_id()
    with transaction.atomic():
        session = Session.objects.create(
            pk=identifier,
            title=title or UNTITLED,
            title_source="person" if title else "",
            agent=AGENT,
            provider=provider,
            model=name,
            window_override=window or named_window,
            kind=SessionKind.INLINE,
            source_key=f"{SessionKind.INLINE}:{key or identifier}",
            last_activity_at=datetime.now(UTC),
        )
        if profile:
            row = {"value": check_value("profile", profile), "author": actor.name}
            PolicyValue.objects.create(scope=PolicyScope.SESSION, scope_id=str(session.pk), field="profile", **row)
        log.append(
            log.session_stream(session.pk),
            EventType.SESSION_CREATED,
            actor=actor,
            target=("session", str(session.pk)),
            payload={"provider": provider, "model": name, "window": session.window_override, "profile": profile},
        )
        if system.strip():
            draft = Draft(role=Role.SYSTEM, kind=Kind.MESSAGE, parts=(text_part(system.strip()),), source_id=f"session:{session.pk}:system")
            append(session, [draft], actor=actor)
        signals.refresh(session.pk)
    session.refresh_from_db()
    return session


def _checked(model: str, title: str, system: str, window: int | None, profile: str) -> tuple[str, str, int | None]:
    if len(title) > MAX_TITLE_CHARS:
        raise InvalidSession("title", f"A title may have {MAX_TITLE_CHARS} characters; this one has {len(title):,}.")
    if len(system) > MAX_SYSTEM_CHARS:
        raise InvalidSession("system", f"A system prompt may have {MAX_SYSTEM_CHARS:,} characters; this one has {len(system):,}.")
    if profile and profile not in set(Profile):
        raise InvalidSession("profile", f"There is no profile {profile[:40]!r}; the profiles are {', '.join(Profile)}.")
    try:
        provider, name, named_window = parse_model(model)
    except UnusableModel as error:
        raise InvalidSession("model", str(error)) from error
    wanted = window or named_window
    if wanted is not None and not WINDOWS[0] <= wanted <= WINDOWS[1]:
        raise InvalidSession("window", f"A window has {WINDOWS[0]:,} to {WINDOWS[1]:,} tokens, not {wanted:,}.")
    return provider, name, named_window
