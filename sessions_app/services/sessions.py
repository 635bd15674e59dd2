"""Sessions that programs begin here, and what people say of a session beside its history: title, labels, archive."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Project, Runner, Session, SessionKind, SessionRelation
from sessions_app.permissions import Action, allows, require
from sessions_app.providers.turn_models import UnusableModel, parse_model
from sessions_app.services import model_choice, signals
from sessions_app.services.items import InvalidItem, draft_of
from sessions_app.services.runners.binding import bind
from sessions_app.services.turns.appending import append
from sessions_app.services.turns.sessions import AGENT, MAX_TITLE_CHARS, UNTITLED, WINDOWS, InvalidSession

MOST_LABELS, MAX_LABEL_CHARS = 50, 100
MOST_ITEMS = 1_000


class InvalidEdit(Exception):  # noqa: N818  it says what is the matter
    """A session can't be described so; nothing was changed. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was changed.")


def begins_with(actor: Actor) -> Action:
    """What beginning a session takes: whoever may write to one may, and whoever only reports what happens in an agent."""
    return Action.INGEST if allows(actor, Action.INGEST) and not allows(actor, Action.MESSAGE) else Action.MESSAGE


def begin(
    *,
    actor: Actor,
    title: str = "",
    agent: str = "",
    project: str = "",
    model: str = "",
    window: int | None = None,
    runner: Runner | None = None,
    labels: Sequence[str] = (),
    parent: Session | None = None,
    items: Sequence[Mapping[str, Any]] = (),
) -> Session:
    """A new session that is held here, or by `runner`. `items`: its history so far, each a mapping with its `type`.

    A `model` that can be asked here answers its turns; any other name only says which window it has. With a `parent` it is
    a sub-agent's. Raises `InvalidSession`, what binding to a runner raises, and what `permissions.require` raises.
    """
    require(actor, begins_with(actor), target=("session", "new"))
    title = " ".join(storable(title).split())
    provider, name, named_window = _model(model.strip())
    _check(title, window or named_window, labels)
    drafts = [_draft(number, item) for number, item in enumerate(_bounded(items))]
    session = Session(
        title=title or UNTITLED,
        title_source="person" if title else "",
        agent=storable(agent) or AGENT,
        provider=provider,
        model=name,
        window_override=window or named_window,
        kind=SessionKind.INLINE,
        parent=parent,
        relation=SessionRelation.SUB_AGENT if parent else "",
        labels=list(dict.fromkeys(labels)),
        last_activity_at=datetime.now(UTC),
    )
    session.source_key = f"{SessionKind.INLINE}:{session.pk}"
    with transaction.atomic():
        session.project = _project(project)
        session.save(force_insert=True)
        _tell_begun(actor, session, items=len(drafts))
        if drafts:
            append(session, drafts, actor=actor)
        signals.refresh(session.pk)
        if runner is not None:
            bind(actor=actor, session=session, runner=runner)
    session.refresh_from_db()
    return session


def _tell_begun(actor: Actor, session: Session, *, items: int) -> None:
    payload: dict[str, object] = {"provider": session.provider, "model": session.model, "window": session.window_override, "items": items}
    target = ("session", str(session.pk))
    log.append(log.session_stream(session.pk), EventType.SESSION_CREATED, actor=actor, target=target, payload=payload)


def edit(
    *, actor: Actor, session: Session, title: str | None = None, labels: Sequence[str] | None = None, archived: bool | None = None
) -> Session:
    """Changes what people say of a session; None leaves it. Writes `session.edited` where that changes anything.

    Raises `InvalidEdit` and what `permissions.require` raises.
    """
    require(actor, Action.EDIT, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    wanted: dict[str, Any] = {}
    if title is not None:
        wanted["title"] = " ".join(storable(title).split())
        if not wanted["title"] or len(wanted["title"]) > MAX_TITLE_CHARS:
            raise InvalidEdit("title", f"A title has 1 to {MAX_TITLE_CHARS} characters.")
    if labels is not None:
        if why := _wrong_labels(labels):
            raise InvalidEdit("labels", why)
        wanted["labels"] = list(dict.fromkeys(labels))
    if archived is not None:
        wanted["archived"] = archived
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        changed = {name: value for name, value in wanted.items() if getattr(current, name) != value}
        if changed:
            before = {name: getattr(current, name) for name in changed}
            columns = changed | ({"title_source": "person"} if "title" in changed else {})
            Session.objects.filter(pk=session.pk).update(**columns)
            target = ("session", str(session.pk))
            log.append(log.session_stream(session.pk), EventType.SESSION_EDITED, actor=actor, target=target, before=before, after=changed)
    session.refresh_from_db()
    return session


def choose_model(*, actor: Actor, session: Session, name: str | None, window: int | None) -> str:
    """Another model (None: the same), or another window for it. Returns why nothing was changed; empty where it was.

    Raises what `model_choice` does, `InvalidEdit`, and what `permissions.require` raises.
    """
    if session.kind != SessionKind.INLINE:
        if name is None:
            model_choice.set_window(actor=actor, session=session, window=window)
            return ""
        return model_choice.choose(actor=actor, session=session, name=name, window=window, may_wait=False).refusal
    if name is None:
        name = session.model if session.provider in ("", session.model) else f"{session.provider}:{session.model}"
    provider, model, named_window = _model(name.strip())
    if provider:
        return model_choice.choose(actor=actor, session=session, name=name, window=window, may_wait=False).refusal
    _name_model(actor, session, model, window or named_window)
    return ""


def _name_model(actor: Actor, session: Session, model: str, window: int | None) -> None:
    """Says which model a session has that nobody here asks: its window is that model's, or the one that is given."""
    require(actor, Action.CHOOSE_MODEL, target=("session", str(session.pk)))
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        before = {"provider": current.provider, "model": current.model, "window_override": current.window_override}
        after = {"provider": "", "model": model, "window_override": window}
        if before == after:
            return
        Session.objects.filter(pk=session.pk).update(**after)
        signals.refresh(session.pk)
        stream, target = log.session_stream(session.pk), ("session", str(session.pk))
        log.append(stream, EventType.SESSION_MODEL_CHANGED, actor=actor, target=target, before=before, after=after)
    session.refresh_from_db()


def _model(name: str) -> tuple[str, str, int | None]:
    """(provider, model, window that the name gives); no provider where nobody here can ask that model."""
    with suppress(UnusableModel):
        return parse_model(name)
    if len(name) > 100 or not name.isprintable():
        raise InvalidSession("model", "A model's name has up to 100 printable characters.")
    return "", name, None


def _check(title: str, window: int | None, labels: Sequence[str]) -> None:
    if len(title) > MAX_TITLE_CHARS:
        raise InvalidSession("title", f"A title may have {MAX_TITLE_CHARS} characters; this one has {len(title):,}.")
    if window is not None and not WINDOWS[0] <= window <= WINDOWS[1]:
        raise InvalidSession("context_window", f"A window has {WINDOWS[0]:,} to {WINDOWS[1]:,} tokens, not {window:,}.")
    if why := _wrong_labels(labels):
        raise InvalidSession("labels", why)


def _wrong_labels(labels: Sequence[str]) -> str:
    """What is the matter with labels; empty where nothing is."""
    if len(labels) > MOST_LABELS:
        return f"A session has up to {MOST_LABELS} labels."
    if any(not label.strip() or len(label) > MAX_LABEL_CHARS or not label.isprintable() for label in labels):
        return f"A label has 1 to {MAX_LABEL_CHARS} printable characters."
    return ""


def _bounded(items: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    if len(items) > MOST_ITEMS:
        raise InvalidSession("initial_items", f"A session begins with up to {MOST_ITEMS:,} items; these are {len(items):,}.")
    return items


def _draft(number: int, item: Mapping[str, Any]) -> Any:
    try:
        return draft_of(str(item.get("type", "")), item)
    except InvalidItem as error:
        raise InvalidSession(
            f"initial_items.{number}.{error.field}".rstrip("."), str(error).removesuffix(" Nothing was stored.")
        ) from error


def _project(named: str) -> Project | None:
    """The project of this name or key, which is made where it is new."""
    key = storable(named).strip()[:500]
    if not key:
        return None
    return Project.objects.filter(key=key).first() or Project.objects.filter(name=key).order_by("key").first() or _made(key)


def _made(key: str) -> Project:
    return Project.objects.get_or_create(key=key, defaults={"name": key[:200]})[0]
