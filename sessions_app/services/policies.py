"""Changes policies: any number of fields at once, each save one event, spread over the sessions that it concerns."""

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import transaction

from sessions_app import prepared
from sessions_app.engine.policy import PolicyError, check_value, resolve
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import PolicyRevision, PolicyScope, PolicyValue, Session
from sessions_app.permissions import Action, require
from sessions_app.selectors import policies
from sessions_app.services import signals

AT_ONCE = 20
"""So many sessions are renewed with the change itself; where it concerns more, the sweep renews them all."""

WALKED_AT_ONCE = 50
IDS_AT_ONCE = 500
_ALL: tuple[str, str] = (PolicyScope.INSTALLATION, "")
_UNSET = object()


class ChangedMeanwhile(Exception):  # noqa: N818  it says what is the matter
    """Somebody else changed what was to be changed, since it was read. Nothing was stored. `fields` are those."""

    def __init__(self, fields: Collection[str], author: str) -> None:
        self.fields = tuple(fields)
        self.author = author
        changed = ", ".join(self.fields)
        super().__init__(f"{author or 'Somebody'} changed {changed} while you were at it. Nothing of yours was stored.")


@dataclass(frozen=True)
class Saved:
    """What came of a save: the fields that changed, and how many sessions are renewed only in the minutes to come."""

    changed: tuple[str, ...]
    due: int


def set_value(*, actor: Actor, scope: str, scope_id: uuid.UUID | str = "", field: str, value: object) -> Saved:
    """Sets one field; see `change`."""
    return change(actor=actor, scope=scope, scope_id=scope_id, values={field: value})


def change(
    *,
    actor: Actor,
    scope: str,
    scope_id: uuid.UUID | str = "",
    values: Mapping[str, object],
    unset: Collection[str] = (),
    seen: Mapping[str, object] | None = None,
) -> Saved:
    """Sets and unsets fields of the policy of the installation (no `scope_id`), a project or a session, all or none.

    `seen`: what the actor saw set at this place, by field; whatever is to change and is another now is not overwritten.
    A session is renewed at once, as are the few of a small project; those of a larger scope by `spread`.
    Raises `engine.policy.PolicyError` when a value is out of its range or contradicts another one that is in force
    somewhere in the scope, `ChangedMeanwhile`, and `permissions.ActionRefused` when the actor may not. Nothing is changed then.
    """
    place = (PolicyScope(scope), str(scope_id))
    require(actor, Action.MANAGE_POLICIES, target=("policy", f"{scope} {scope_id}".strip()))
    for field, value in values.items():
        check_value(field, value)
    with transaction.atomic():
        # Two values that contradict each other must not be set at once, each without a sight of the other.
        prepared.take_turn("policies")
        rows = {row.field: row for row in PolicyValue.objects.filter(scope=place[0], scope_id=place[1])}
        before = {field: row.value for field, row in rows.items()}
        after = {field: value for field, value in (before | dict(values)).items() if field not in unset}
        changed = _differing(before, after)
        if seen is not None and (lost := [field for field in _differing(before, seen) if field in changed]):
            raise ChangedMeanwhile(lost, next((rows[field].author for field in lost if field in rows), ""))
        if not changed:
            return Saved((), 0)
        _store(place, {field: after.get(field, _UNSET) for field in changed}, actor)
        _check_places(place)
        due = _renew(place, actor)  # before the event: sessions are locked before their streams, everywhere
        log.append(
            log.session_stream(place[1]) if place[0] == PolicyScope.SESSION else log.SECURITY,
            EventType.POLICY_CHANGED,
            actor=actor,
            target=place,
            before={field: before[field] for field in changed if field in before} or None,
            after={field: after[field] for field in changed if field in after} or None,
            payload={"due": due} if due else None,
        )
    return Saved(tuple(changed), due)


def spread(*, for_s: float) -> int:
    """Renews the columns of sessions whose policy changed above them, for so many seconds. Returns how many were renewed.

    Several processes may do it at once, and one that is stopped goes on where it was: a session is renewed twice at worst.
    """
    until, count = time.monotonic() + for_s, 0
    for revision in PolicyRevision.objects.filter(is_spread=False).order_by("pk"):
        while True:
            due = list(policies.due_sessions(revision).values_list("pk", flat=True)[:WALKED_AT_ONCE])
            for session_id in due:
                count += _renew_one(session_id)
                revision.walked_to = session_id
                if time.monotonic() >= until:
                    break
            is_spread = not due or (revision.walked_to == due[-1] and len(due) < WALKED_AT_ONCE)
            PolicyRevision.objects.filter(pk=revision.pk, is_spread=False).update(walked_to=revision.walked_to, is_spread=is_spread)
            if time.monotonic() >= until:
                return count
            if is_spread:
                break
    return count


def _renew_one(session_id: uuid.UUID) -> int:
    try:
        signals.refresh(session_id)
    except Session.DoesNotExist:  # deleted since the list was read
        return 0
    return 1


def _differing(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    return sorted(field for field in one.keys() | other.keys() if one.get(field, _UNSET) != other.get(field, _UNSET))


def _store(place: tuple[PolicyScope, str], values: Mapping[str, object], actor: Actor) -> None:
    here = PolicyValue.objects.filter(scope=place[0], scope_id=place[1])
    here.filter(field__in=[field for field, value in values.items() if value is _UNSET]).delete()
    for field, value in values.items():
        if value is not _UNSET:
            defaults = {"value": value, "author": actor.name}
            PolicyValue.objects.update_or_create(scope=place[0], scope_id=place[1], field=field, defaults=defaults)


def _renew(place: tuple[PolicyScope, str], actor: Actor) -> int:
    """Renews the sessions of a place, or notes that they are to be renewed. Returns how many are left for later."""
    revision = PolicyRevision.objects.create(scope=place[0], scope_id=place[1], author=actor.name)
    concerned = list(policies.due_sessions(revision).values_list("pk", flat=True)[: AT_ONCE + 1])
    if len(concerned) <= AT_ONCE:
        for session_id in concerned:
            signals.refresh(session_id)
        PolicyRevision.objects.filter(pk=revision.pk).update(is_spread=True)
        return 0
    if place[0] == PolicyScope.INSTALLATION:  # it reaches everything that older ones would
        PolicyRevision.objects.filter(is_spread=False, pk__lt=revision.pk).update(is_spread=True)
    return policies.due_sessions(revision).count()


def _check_places(place: tuple[PolicyScope, str]) -> None:
    """Resolves the policy of a place, and of each below it that has values of its own; raises `PolicyError` on a contradiction.

    One query and one for every 500 sessions with values of their own.
    """
    set_at: dict[tuple[str, str], list[tuple[str, str, object]]] = {}
    for scope, scope_id, field, value in PolicyValue.objects.values_list("scope", "scope_id", "field", "value"):
        set_at.setdefault((scope, scope_id), []).append((scope, field, value))
    everywhere = set_at.get(_ALL, [])
    if place == _ALL:
        resolve(everywhere)
    for project in [key for key in set_at if key[0] == PolicyScope.PROJECT and place in (key, _ALL)]:
        _check_one([*everywhere, *set_at[project]], "" if project == place else "a project")
    own = [scope_id for scope, scope_id in set_at if scope == PolicyScope.SESSION]
    for start in range(0, len(own), IDS_AT_ONCE):
        sessions = Session.objects.filter(pk__in=own[start : start + IDS_AT_ONCE])
        for session_id, project_id, title in sessions.values_list("pk", "project_id", "title"):
            here, above = (PolicyScope.SESSION, str(session_id)), (PolicyScope.PROJECT, str(project_id))
            if place in (here, above, _ALL):
                _check_one([*everywhere, *set_at.get(above, []), *set_at[here]], "" if here == place else f"the session “{title}”")


def _check_one(values: list[tuple[str, str, object]], below: str) -> None:
    try:
        resolve(values)
    except PolicyError as error:
        if not below:
            raise
        raise PolicyError(f"{error} That would be so for {below}, which has values of its own.", *error.fields) from error
