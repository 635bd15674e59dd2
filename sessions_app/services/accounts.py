"""People's accounts: made here and nowhere else, each with a role and an event."""

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.permissions import ROLE_BY_GROUP, Action, require

GROUP_BY_ROLE = {role: group for group, role in ROLE_BY_GROUP.items()}


class AccountError(Exception):
    """An account could not be made; the message says why, and that nothing was changed."""


def ensure_groups() -> None:
    """Makes the groups that the roles come from, where they are missing."""
    for name in ROLE_BY_GROUP:
        Group.objects.get_or_create(name=name)


def create_user(*, actor: Actor, name: str, role: str, password: str) -> User:
    """Makes an account with a role (`operator`, `support` or `admin`) and tells the security stream.

    Raises `AccountError` for a name that is taken or malformed, an unknown role or a weak password, and
    `ActionRefused` when the actor may not manage users.
    """
    require(actor, Action.MANAGE_USERS, target=("user", name), stream=log.SECURITY)
    group = GROUP_BY_ROLE.get(role)
    if group is None:
        raise AccountError(f"There is no role {role!r}; choose one of {', '.join(sorted(GROUP_BY_ROLE))}. Nothing was changed.")
    if User.objects.filter(username=name).exists():
        raise AccountError(f"There is already a user {name!r}. Nothing was changed.")
    user = User(username=name)
    try:
        user.full_clean(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise AccountError(f"{' '.join(error.messages)} Nothing was changed.") from error
    user.set_password(password)
    with transaction.atomic():
        ensure_groups()
        user.save()
        user.groups.add(Group.objects.get(name=group))
        log.append(log.SECURITY, EventType.USER_CREATED, actor=actor, target=("user", str(user.pk)), payload={"name": name, "role": role})
    return user
