"""Where sign-ins are kept: Django's table, with a lifetime that slides and one that does not.

A row's `expire_date` is the truth for pages and sockets alike: whatever loads a session after it finds none.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session as SignIn

BEGAN = "_began"  # epoch seconds, in the session's own data
MUST_CHANGE = "must_change_password"
"""In the browser's session while its user has a password that somebody else made."""

WRITES_PER_IDLE = 20
"""Sliding is written down once in each of so many parts of the idle time, not with every request."""

ENDED_AT_ONCE = 500


class SessionStore(db.SessionStore):
    """One browser's session, under the name that Django looks for."""

    _expires: datetime | None = None

    def create_model_instance(self, data: dict[str, Any]) -> SignIn:
        data.setdefault(BEGAN, int(time.time()))
        row = super().create_model_instance(data)
        assert isinstance(row, SignIn)
        row.expire_date = self._expires = _expiry(data[BEGAN])
        return row

    def _get_session_from_db(self) -> SignIn | None:
        row: SignIn | None = super()._get_session_from_db()  # type: ignore[misc]  # undeclared in the stubs
        self._expires = row.expire_date if row is not None else None
        return row

    def slide(self) -> None:
        """Puts the end off, since a page was asked for. Writes when that moves it by a part of the idle time.

        An end that lies further off than it may, because the clock was set back, comes nearer.
        """
        if self._expires is None or not self.session_key:
            return
        began = self.get(BEGAN)
        if began is None or began > time.time():  # from before there were lifetimes, or before the clock was set back
            self[BEGAN] = int(time.time())
            return
        wanted = _expiry(began)
        if abs(wanted - self._expires) < settings.SESSION_IDLE / WRITES_PER_IDLE:
            return
        # Conditional: what ended meanwhile, by a sign-out elsewhere, does not come back.
        SignIn.objects.filter(session_key=self.session_key).update(expire_date=wanted)
        self._expires = wanted


def forget_ended() -> int:
    """Removes sign-ins that have ended, some hundred at a time. Returns how many."""
    ended = SignIn.objects.filter(expire_date__lte=datetime.now(UTC)).values_list("pk", flat=True)[:ENDED_AT_ONCE]
    removed, _ = SignIn.objects.filter(pk__in=list(ended)).delete()
    return removed


def _expiry(began_s: int) -> datetime:
    idle = datetime.now(UTC) + settings.SESSION_IDLE
    return min(idle, datetime.fromtimestamp(began_s, UTC) + timedelta(seconds=settings.SESSION_COOKIE_AGE))
