"""Who guessed too often: what django-axes counts, and under which names.

Its rows are bounded: one for each name and address, nothing of what was sent, and the sweep removes the old ones.
"""

import hashlib
import hmac
import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, QueryDict

UNKNOWN = "?"
"""Begins the key of a name that nobody has. No name of a user can hold it."""

CLOCK_SLACK = timedelta(minutes=1)


class Throttle(AxesDatabaseHandler):  # type: ignore[misc]  # untyped
    """Counts failures in the database, so that all processes see them. Browser and form do not matter to it."""

    def user_login_failed(self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any) -> None:
        if request is not None:
            # A row for each browser's name would be as many as somebody likes to send.
            request.axes_user_agent = request.axes_http_accept = request.axes_path_info = ""  # type: ignore[attr-defined]
            asked, sent = request.GET, request.POST
            request.GET = request.POST = QueryDict()  # else it keeps all fields but the password
        try:
            super().user_login_failed(sender, credentials, request, **more)
        finally:
            if request is not None:
                request.GET, request.POST = asked, sent


def name_key(_request: HttpRequest, credentials: dict[str, Any] | None) -> str:
    """A user's name as it is, any other one as a keyed hash: now and then it is a password in the wrong field."""
    name = str((credentials or {}).get("username") or "")
    if User.objects.filter(username=name).exists():
        return name
    return UNKNOWN + hmac.new(settings.SECRET_KEY.encode(), name.encode(), hashlib.sha256).hexdigest()[:32]


def address_of(request: HttpRequest) -> str | None:
    """The address that is counted; None when there is none, as on a socket of this machine."""
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None


def forget_old_failures() -> int:
    """Removes what no longer counts, and what a clock that was wrong put into the future. Returns the number of rows."""
    now = datetime.now(UTC)
    counting = AccessAttempt.objects.filter(attempt_time__range=(now - settings.AXES_COOLOFF_TIME, now + CLOCK_SLACK))
    removed, _ = AccessAttempt.objects.exclude(pk__in=counting.values("pk")).delete()
    return int(removed)
