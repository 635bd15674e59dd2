"""A policy as its page shows it: each field with its value, where it comes from, and what it would be without this place."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from sessions_app.engine.policy import DEFAULT_WINDOW, SUMMARISERS, Policy, ResolvedPolicy, model_of, resolve, window_for
from sessions_app.engine.policy_fields import FIELDS, Group, PolicyField, show, written
from sessions_app.models import PolicyRevision, PolicyScope, PolicyValue, Project, Session
from sessions_app.providers.registry import KEYS, is_usable
from sessions_app.selectors.model_choices import window_source

MOST_PLACES = 50
MOST_MODELS = 8
CLOCKS_DIFFER = timedelta(minutes=1)
"""A session that was made so long after a change may still have been made without a sight of it."""

_GROUPS = {
    Group.WHEN: ("When", "what starts an automatic compaction"),
    Group.HOW_MUCH: ("How much", "what is folded and what stays"),
    Group.SUMMARISERS: ("Summarisers", "who writes the summary"),
    Group.SAFETY: ("Safety", "what happens when it goes wrong"),
    Group.MEMORY: ("Memory", "what is kept beyond a session"),
}
_NO_MODEL = {"extractive": "calls no model: it chooses among what was said", "scripted": "extractive with pauses, for demonstrations"}


@dataclass(frozen=True)
class Place:
    """Where values are set: the installation, a project or a session. `project_id` is that of the session, too."""

    scope: str
    scope_id: str
    title: str
    project_id: uuid.UUID | None = None
    project: str = ""
    window: int | None = None  # of a session, in tokens
    window_words: str = ""  # where that is from
    model: str = ""


@dataclass(frozen=True)
class FieldRow:
    """One field at a place. `own` is what is set here, as an input holds it; `without` what would hold if nothing were."""

    field: PolicyField
    value: str
    source: str
    own: str | None
    author: str
    set_at: datetime | None
    without: str
    without_source: str
    narrower: int  # projects and sessions below this place that set their own

    @property
    def is_own(self) -> bool:
        """Whether it is set here."""
        return self.own is not None


@dataclass(frozen=True)
class SummariserRow:
    """One summariser of the policy in force. `why` says what is missing where it can't be used on this server."""

    name: str
    is_usable: bool
    why: str
    window: int | None


@dataclass(frozen=True)
class WindowRow:
    """What the policy means for sessions with this model and window."""

    model: str
    window: int
    sessions: int
    trigger: int
    target: int
    keep: int
    is_capped: bool


@dataclass(frozen=True)
class PlaceRow:
    """A place below this one that sets values of its own."""

    scope: str
    id: str
    title: str
    fields: int


@dataclass(frozen=True)
class PolicyPage:
    """Everything that the page of a policy shows."""

    place: Place
    groups: tuple[tuple[str, str, tuple[FieldRow, ...]], ...]
    summarisers: tuple[SummariserRow, ...]
    windows: tuple[WindowRow, ...]
    places: tuple[PlaceRow, ...]
    projects: tuple[tuple[uuid.UUID, str, str], ...]  # id, name, and of those with the same name what tells them apart
    due: int  # sessions whose meters do not show the last change yet

    @property
    def rows(self) -> dict[str, FieldRow]:
        """The fields by name."""
        return {row.field.name: row for _, _, rows in self.groups for row in rows}


def installation() -> Place:
    """The widest place."""
    return Place(PolicyScope.INSTALLATION, "", "Installation")


def project_place(project_id: uuid.UUID | str) -> Place | None:
    """A project as a place; None when there is none of that id. One query."""
    found = Project.objects.filter(pk=project_id).values_list("pk", "name").first()
    return Place(PolicyScope.PROJECT, str(found[0]), found[1], found[0], found[1]) if found else None


def session_place(session: Session) -> Place:
    """A session, read with its project, as a place. No query."""
    return Place(
        PolicyScope.SESSION,
        str(session.pk),
        session.title,
        session.project_id,
        session.project.name if session.project else "",
        session.window,
        window_source(session),
        session.model,
    )


def policy_page(place: Place) -> PolicyPage:
    """The policy at a place. At most seven queries, however many sessions there are."""
    stored = list(_stored(place))
    own = {row.field: row for row in stored if (row.scope, row.scope_id) == (place.scope, place.scope_id)}
    resolved = _resolved(stored)
    without = _resolved(row for row in stored if row.field not in own or row is not own[row.field])
    narrower = list(_narrower(place))
    counts = Counter(field for _, _, field in narrower)
    groups = []
    for group, (title, about) in _GROUPS.items():
        rows = [_row(field, resolved, without, own.get(name), counts[name]) for name, field in FIELDS.items() if field.group == group]
        groups.append((title, about, tuple(rows)))
    return PolicyPage(
        place=place,
        groups=tuple(groups),
        summarisers=tuple(_summariser(name) for name in resolved.policy.summarisers),
        windows=tuple(_windows(place, resolved.policy)),
        places=tuple(_places(narrower)),
        projects=() if place.scope_id else tuple(_projects()),
        due=_due(place),
    )


def _projects() -> Iterator[tuple[uuid.UUID, str, str]]:
    found = list(Project.objects.order_by("name", "key").values_list("pk", "name", "key")[:MOST_PLACES])
    named = Counter(name for _, name, _ in found)
    return ((pk, name, key if named[name] > 1 else "") for pk, name, key in found)


def own_values(place: Place) -> dict[str, object]:
    """What is set at a place itself, by field. One query."""
    return dict(PolicyValue.objects.filter(scope=place.scope, scope_id=place.scope_id).values_list("field", "value"))


def due_sessions(revision: PolicyRevision) -> QuerySet[Session]:
    """The sessions that a change concerns and that it has not reached, in the order in which they are renewed."""
    sessions = Session.objects.filter(created_at__lte=revision.made_at + CLOCKS_DIFFER).order_by("pk")
    if revision.walked_to is not None:
        sessions = sessions.filter(pk__gt=revision.walked_to)
    if revision.scope == PolicyScope.SESSION:
        return sessions.filter(pk=revision.scope_id)
    return sessions.filter(project_id=revision.scope_id) if revision.scope == PolicyScope.PROJECT else sessions


def _stored(place: Place) -> QuerySet[PolicyValue]:
    wanted = Q(scope=PolicyScope.INSTALLATION)
    if place.project_id:
        wanted |= Q(scope=PolicyScope.PROJECT, scope_id=str(place.project_id))
    if place.scope == PolicyScope.SESSION:
        wanted |= Q(scope=PolicyScope.SESSION, scope_id=place.scope_id)
    return PolicyValue.objects.filter(wanted)


def _resolved(rows: Iterable[PolicyValue]) -> ResolvedPolicy:
    """A value that no version of the product knows any more, or that is out of its range by now, is left out."""
    values = [(row.scope, row.field, row.value) for row in rows if row.field in FIELDS]
    return resolve(values)


def _row(field: PolicyField, resolved: ResolvedPolicy, without: ResolvedPolicy, own: PolicyValue | None, narrower: int) -> FieldRow:
    return FieldRow(
        field=field,
        value=_shown(field, resolved),
        source=resolved.sources[field.name],
        own=written(field, own.value) if own else None,
        author=own.author if own else "",
        set_at=own.set_at if own else None,
        without=_shown(field, without),
        without_source=without.sources[field.name],
        narrower=narrower,
    )


def _shown(field: PolicyField, resolved: ResolvedPolicy) -> str:
    value = getattr(resolved.policy, field.name)
    if field.name == "protected_recent_messages" and value is None:
        return f"{resolved.policy.protected_messages}, {field.auto}"
    return show(field, value)


def _narrower(place: Place) -> Iterable[tuple[str, str, str]]:
    """(scope, id, field) of the values that are set below a place."""
    if place.scope == PolicyScope.SESSION:
        return ()
    rows = PolicyValue.objects.exclude(scope=PolicyScope.INSTALLATION)
    if place.scope == PolicyScope.PROJECT:
        sessions = Session.objects.filter(project_id=place.scope_id, pk__in=_ids(rows.filter(scope=PolicyScope.SESSION)))
        rows = rows.filter(scope=PolicyScope.SESSION, scope_id__in=[str(pk) for pk in sessions.values_list("pk", flat=True)])
    return rows.order_by("scope", "scope_id").values_list("scope", "scope_id", "field")


def _ids(rows: QuerySet[PolicyValue]) -> list[str]:
    return list(rows.values_list("scope_id", flat=True).distinct())


def _places(narrower: list[tuple[str, str, str]]) -> list[PlaceRow]:
    counts = Counter((scope, place_id) for scope, place_id, _ in narrower)
    shown = list(counts)[:MOST_PLACES]
    titles: dict[str, str] = {}
    for model, scope, name in ((Project, PolicyScope.PROJECT, "name"), (Session, PolicyScope.SESSION, "title")):
        ids = [place_id for found, place_id in shown if found == scope]
        manager: Any = model._default_manager
        titles |= {str(pk): title for pk, title in manager.filter(pk__in=ids).values_list("pk", name)} if ids else {}
    return [PlaceRow(scope, place_id, titles[place_id], counts[scope, place_id]) for scope, place_id in shown if place_id in titles]


def _summariser(name: str) -> SummariserRow:
    if name in SUMMARISERS:
        return SummariserRow(name, is_usable=True, why=_NO_MODEL[name], window=None)
    usable = is_usable(name)
    variable = KEYS[name.partition(":")[0]][0]
    model, window = model_of(name)
    why = f"{variable} is set" if usable else f"{variable} is not set on this server, so it is skipped"
    is_known = "@" in name or window_for(model) != DEFAULT_WINDOW
    return SummariserRow(name, usable, why if is_known else f"{why}; its window is not known here: write it behind, after an @", window)


def _windows(place: Place, policy: Policy) -> Iterable[WindowRow]:
    if place.window is not None:
        yield _window_row(place.model, place.window, 1, policy)
        return
    sessions = Session.objects.listed()
    if place.scope == PolicyScope.PROJECT:
        sessions = sessions.filter(project_id=place.scope_id)
    for model, window, count in sessions.values_list("model", "window").annotate(n=Count("pk")).order_by("-n", "model")[:MOST_MODELS]:
        yield _window_row(model, window, count, policy)


def _window_row(model: str, window: int, sessions: int, policy: Policy) -> WindowRow:
    trigger = policy.trigger_tokens(window)
    is_capped = policy.trigger_field(window) == "cap_tokens"
    return WindowRow(model, window, sessions, trigger, policy.target_tokens(window), int(policy.keep_recent_fraction * trigger), is_capped)


def _due(place: Place) -> int:
    """Sessions of the place that the last change has not reached yet."""
    wanted = Q(scope=PolicyScope.INSTALLATION) | Q(scope=PolicyScope.PROJECT, scope_id=str(place.project_id or ""))
    revision = PolicyRevision.objects.filter(wanted, is_spread=False).order_by("-pk").first()
    if revision is None:
        return 0
    due = due_sessions(revision)
    if place.scope == PolicyScope.SESSION:
        due = due.filter(pk=place.scope_id)
    elif place.scope == PolicyScope.PROJECT:
        due = due.filter(project_id=place.scope_id)
    return due.count()
