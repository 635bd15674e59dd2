"""Sets policy values, each with who set it."""

import uuid

from django.db import transaction

from sessions_app import prepared
from sessions_app.engine.policy import check_value
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import PolicyScope, PolicyValue, Session
from sessions_app.permissions import Action, require
from sessions_app.selectors import plans
from sessions_app.services import signals


def set_value(*, actor: Actor, scope: str, scope_id: uuid.UUID | str = "", field: str, value: object) -> PolicyValue:
    """Sets one field of the policy of the installation (no `scope_id`), a project or a session, and refreshes what hangs on it.

    Raises `ValueError`, in words for people, when the value is out of its range or contradicts another one that is in
    force somewhere in the scope; `permissions.ActionRefused` when the actor may not. Nothing is changed then.
    """
    require(actor, Action.MANAGE_POLICIES, target=("policy", field))
    check_value(field, value)
    with transaction.atomic():
        # Two values that contradict each other must not be set at once, each without a sight of the other.
        prepared.take_turn("policies")
        before = PolicyValue.objects.filter(scope=scope, scope_id=str(scope_id), field=field).first()
        row, _ = PolicyValue.objects.update_or_create(
            scope=PolicyScope(scope), scope_id=str(scope_id), field=field, defaults={"value": value, "author": actor.name}
        )
        _check_all_places()
        for session_id in _sessions_in(row):  # before the event: sessions are locked before their streams, everywhere
            signals.refresh(session_id)
        is_session = row.scope == PolicyScope.SESSION
        log.append(
            log.session_stream(row.scope_id) if is_session else log.SECURITY,
            EventType.POLICY_CHANGED,
            actor=actor,
            target=(row.scope, row.scope_id),
            before=before and {field: before.value},
            after={field: value},
        )
    return row


def _check_all_places() -> None:
    """Resolves the policy of every place that has values of its own; raises `ValueError` on the first contradiction."""
    plans.policy_for()
    places = PolicyValue.objects.exclude(scope=PolicyScope.INSTALLATION).values_list("scope", "scope_id").distinct()
    for scope, place in places:
        if scope == PolicyScope.PROJECT:
            plans.policy_for(project_id=place)
    sessions = Session.objects.filter(pk__in=[place for scope, place in places if scope == PolicyScope.SESSION])
    for session in sessions.only("project_id"):
        plans.effective_policy(session)


def _sessions_in(row: PolicyValue) -> list[uuid.UUID]:
    sessions = Session.objects.all()
    if row.scope == PolicyScope.SESSION:
        sessions = sessions.filter(pk=row.scope_id)
    elif row.scope == PolicyScope.PROJECT:
        sessions = sessions.filter(project_id=row.scope_id)
    return list(sessions.order_by("pk").values_list("pk", flat=True))
