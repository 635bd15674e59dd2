"""Users and their locks, as far as pages need them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User

from sessions_app.permissions import ROLE_BY_GROUP

PAGE_ROWS = 500


@dataclass(frozen=True)
class Lock:
    """Sign-in with one name from one address, locked. `key` is the user's name, or stands for one that nobody has."""

    key: str
    is_of_user: bool
    address: str
    failures: int
    until: datetime


@dataclass(frozen=True)
class UserRow:
    """One account. `role` is empty for somebody in no group."""

    id: int
    name: str
    role: str
    is_active: bool
    last_sign_in: datetime | None
    joined: datetime
    has_one_time_password: bool
    locks: tuple[Lock, ...]


@dataclass(frozen=True)
class UsersPage:
    """All accounts by name, the locks of names that nobody has, and how many accounts are not listed."""

    users: tuple[UserRow, ...]
    other_locks: tuple[Lock, ...]
    unlisted: int


def id_of_user_named(name: str) -> str:
    """The id of the user with exactly this name, active or not; empty when there is none. One query."""
    identifier = User.objects.filter(username=name).values_list("pk", flat=True).first() if "\0" not in name else None
    return "" if identifier is None else str(identifier)


def users_page(*, at: datetime) -> UsersPage:
    """Everything that the page of users shows. Four queries."""
    standing = locks(at=at)
    users = User.objects.select_related("one_time_password").prefetch_related("groups").order_by("username")[: PAGE_ROWS + 1]
    rows = tuple(_row(user, standing) for user in users[:PAGE_ROWS])
    return UsersPage(
        users=rows,
        other_locks=tuple(lock for lock in standing if not lock.is_of_user),
        unlisted=max(0, User.objects.count() - len(rows)),
    )


def user_row(user_id: int, *, at: datetime) -> UserRow | None:
    """One account; None when there is none of that id."""
    user = User.objects.select_related("one_time_password").prefetch_related("groups").filter(pk=user_id).first()
    return _row(user, locks(at=at)) if user is not None else None


def has_one_time_password(user_id: int) -> bool:
    """Whether somebody else made the password that the user has."""
    return User.objects.filter(pk=user_id, one_time_password__isnull=False).exists()


def locks(*, at: datetime) -> list[Lock]:
    """The locks that stand at a moment, those that end last first. One query, and one more where there are any."""
    young = AccessAttempt.objects.filter(attempt_time__gte=at - settings.AXES_COOLOFF_TIME)
    rows = list(young.filter(failures_since_start__gte=settings.AXES_FAILURE_LIMIT).order_by("-attempt_time")[:PAGE_ROWS])
    names = set(User.objects.filter(username__in={row.username for row in rows}).values_list("username", flat=True)) if rows else set()
    return [
        Lock(
            key=row.username or "",
            is_of_user=row.username in names,
            address=row.ip_address or "",
            failures=row.failures_since_start,
            until=row.attempt_time + settings.AXES_COOLOFF_TIME,
        )
        for row in rows
    ]


def lock_ends_in(key: str, address: str | None, *, at: datetime) -> timedelta:
    """How long the lock on a name from an address still lasts; nothing where there is none."""
    attempts = AccessAttempt.objects.filter(username=key, ip_address=address).order_by("-attempt_time")
    last: datetime | None = attempts.values_list("attempt_time", flat=True).first()
    return max(timedelta(), last + settings.AXES_COOLOFF_TIME - at) if last is not None else timedelta()


def _row(user: User, standing: list[Lock]) -> UserRow:
    groups = {group.name for group in user.groups.all()}
    return UserRow(
        id=user.pk,
        name=user.get_username(),
        role=next((role for group, role in ROLE_BY_GROUP.items() if group in groups), ""),
        is_active=user.is_active,
        last_sign_in=user.last_login,
        joined=user.date_joined,
        has_one_time_password=hasattr(user, "one_time_password"),
        locks=tuple(lock for lock in standing if lock.key == user.get_username()),
    )
