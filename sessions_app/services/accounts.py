"""People's accounts: made and changed here and nowhere else, each change with an event that says before and after."""

import secrets

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import OneTimePassword
from sessions_app.permissions import ADMINS, ROLE_BY_GROUP, Action, require

GROUP_BY_ROLE = {role: group for group, role in ROLE_BY_GROUP.items()}


class AccountError(Exception):
    """An account could not be made or changed; the message says why, and that nothing was changed."""


def ensure_groups() -> None:
    """Makes the groups that the roles come from, where they are missing."""
    for name in ROLE_BY_GROUP:
        Group.objects.get_or_create(name=name)


def create_user(*, actor: Actor, name: str, role: str, password: str, is_one_time: bool = False) -> User:
    """Makes an account with a role (`operator`, `support` or `admin`) and tells the security stream.

    `is_one_time`: the password is to be changed before anything else is shown.
    Raises `AccountError` for a name that is taken or malformed, an unknown role or a weak password, and
    `ActionRefused` when the actor may not manage users.
    """
    require(actor, Action.MANAGE_USERS, target=("user", name), stream=log.SECURITY)
    group = _group_of(role)
    if User.objects.filter(username=name).exists():
        raise _taken(name)
    user = User(username=name)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise AccountError(f"{' '.join(error.messages)} Nothing was changed.") from error
    _check(password, user)
    user.set_password(password)
    with transaction.atomic():
        ensure_groups()
        _insert(user)
        user.groups.add(Group.objects.get(name=group))
        if is_one_time:
            OneTimePassword.objects.create(user=user)
        log.append(log.SECURITY, EventType.USER_CREATED, actor=actor, target=_target(user), payload={"name": name, "role": role})
    return user


def _insert(user: User) -> None:
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:  # somebody was first while the password was checked and hashed
        raise _taken(user.username) from error


def _taken(name: str) -> AccountError:
    return AccountError(f"There is already a user {name!r}. Nothing was changed.")


def make_password() -> str:
    """A password that nobody guesses, to be told once."""
    return secrets.token_urlsafe(12)


def change_password(*, actor: Actor, user_id: int, password: str) -> User:
    """Gives a user the password that they chose themselves. Every other sign-in of theirs ends with it.

    The caller has checked the old one. Raises `AccountError` for one that is weak or the same.
    """
    with transaction.atomic():
        user = _locked_user(user_id)
        if user.check_password(password):
            raise AccountError("This is the password that you have already; choose another one. Nothing was changed.")
        _check(password, user)
        user.set_password(password)
        user.save(update_fields=["password"])
        OneTimePassword.objects.filter(user=user).delete()
        log.append(log.SECURITY, EventType.PASSWORD_CHANGED, actor=actor, target=_target(user), payload={"name": user.username})
    return user


def reset_password(*, actor: Actor, user_id: int) -> str:
    """Gives a user a one-time password, which is returned, and ends their sign-ins."""
    require(actor, Action.MANAGE_USERS, target=("user", str(user_id)), stream=log.SECURITY)
    password = make_password()
    with transaction.atomic():
        user = _locked_user(user_id)
        if _is_self(actor, user):
            raise AccountError("Your own password is changed on the page “Password”, with the old one. Nothing was changed.")
        user.set_password(password)
        user.save(update_fields=["password"])
        OneTimePassword.objects.update_or_create(user=user)
        log.append(log.SECURITY, EventType.PASSWORD_RESET, actor=actor, target=_target(user), payload={"name": user.username})
    return password


def change_role(*, actor: Actor, user_id: int, role: str) -> None:
    """Puts a user into the group of a role and takes them out of the others. Nothing is written when it is theirs already.

    Raises `AccountError` for an unknown role, for one's own admin right, and for the last admin's.
    """
    require(actor, Action.MANAGE_USERS, target=("user", str(user_id)), stream=log.SECURITY)
    group = _group_of(role)
    with transaction.atomic():
        user = _locked_user(user_id)
        groups = set(user.groups.filter(name__in=ROLE_BY_GROUP).values_list("name", flat=True))
        if groups == {group}:
            return
        if ADMINS in groups:
            _check_admin_may_go(actor, user)
        user.groups.remove(*Group.objects.filter(name__in=groups - {group}))
        user.groups.add(Group.objects.get(name=group))
        before = next((named for name, named in ROLE_BY_GROUP.items() if name in groups), "")
        log.append(
            log.SECURITY,
            EventType.ROLE_CHANGED,
            actor=actor,
            target=_target(user),
            before={"role": before},
            after={"role": role},
            payload={"name": user.username},
        )


def switch_user(*, actor: Actor, user_id: int, is_active: bool) -> None:
    """Switches an account off, which ends its sign-ins, or on again. Its events keep its name.

    Raises `AccountError` for one's own account and for the last admin's.
    """
    require(actor, Action.MANAGE_USERS, target=("user", str(user_id)), stream=log.SECURITY)
    with transaction.atomic():
        user = _locked_user(user_id)
        if user.is_active == is_active:
            return
        if not is_active:
            _check_admin_may_go(actor, user)
        user.is_active = is_active
        user.save(update_fields=["is_active"])
        log.append(
            log.SECURITY,
            EventType.USER_SWITCHED,
            actor=actor,
            target=_target(user),
            before={"active": not is_active},
            after={"active": is_active},
            payload={"name": user.username},
        )


def _group_of(role: str) -> str:
    group = GROUP_BY_ROLE.get(role)
    if group is None:
        raise AccountError(f"There is no role {role!r}; choose one of {', '.join(sorted(GROUP_BY_ROLE))}. Nothing was changed.")
    return group


def _check(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise AccountError(f"{' '.join(error.messages)} Nothing was changed.") from error


def _locked_user(user_id: int) -> User:
    """The user, for the length of the transaction. The groups' rows come first: two admins must not remove each other at once."""
    ensure_groups()
    list(Group.objects.select_for_update().filter(name=ADMINS))
    user = User.objects.select_for_update().filter(pk=user_id).first()
    if user is None:
        raise AccountError("There is no such user any more. Nothing was changed.")
    return user


def _check_admin_may_go(actor: Actor, user: User) -> None:
    """Raises `AccountError` where nobody could undo it."""
    if _is_self(actor, user):
        raise AccountError("You can't take your own right or account away; another admin can. Nothing was changed.")
    admins = User.objects.filter(groups__name=ADMINS, is_active=True)
    if admins.filter(pk=user.pk).exists() and not admins.exclude(pk=user.pk).exists():
        raise AccountError(f"{user.username} is the last admin. Nothing was changed; make somebody else an admin first.")


def _is_self(actor: Actor, user: User) -> bool:
    return actor.id == str(user.pk)


def _target(user: User) -> tuple[str, str]:
    return ("user", str(user.pk))
