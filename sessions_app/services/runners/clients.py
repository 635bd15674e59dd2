"""A client for a runner's row, and what is kept of each time that it was asked.

A credential is read from the environment at the moment at which it is used, and is written down nowhere.
"""

import os
import re
import uuid

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from sessions_app.models import Runner, Session
from sessions_app.runners.addresses import InvalidAddress, checked_url
from sessions_app.runners.base import Health
from sessions_app.runners.errors import RunnerError, RunnerRefused, RunnerUnavailable
from sessions_app.runners.http import HttpRunner

CREDENTIAL = re.compile(r"RUNNER_TOKEN_[A-Z0-9_]{1,60}")
"""Variables that may hold one. Any other would let whoever adds a runner send another secret of this process to an address of theirs."""


def allowed_hosts() -> list[str]:
    """What the installation lets runners be on, beside this machine."""
    return list(settings.RUNNER_HOSTS)


def client_of(runner: Runner) -> HttpRunner:
    """A client of this runner. Raises `RunnerUnavailable` where its address or its credential can't be used here any more."""
    try:
        address = checked_url(runner.base_url, allowed_hosts())
    except InvalidAddress as error:
        raise RunnerUnavailable(f"{error} Nothing was sent.") from error
    return HttpRunner(address, token=_token(runner.credential_variable))


def _token(variable: str) -> str:
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip() if CREDENTIAL.fullmatch(variable) else ""
    if not token or not token.isascii() or not token.isprintable():
        raise RunnerUnavailable(
            f"The variable {variable}, which holds the runner's credential, is not set in this process. Nothing was sent."
        )
    return token


def called(session: Session) -> str:
    """What the session's runner calls it."""
    return session.external_id or str(session.pk)


def note(runner_id: uuid.UUID, error: RunnerError | None = None) -> None:
    """Keeps how a runner was found: up where it answered, whatever it said; down where it did not."""
    has_answered = error is None or isinstance(error, RunnerRefused)
    Runner.objects.filter(pk=runner_id).update(
        health=Health.UP if has_answered else Health.DOWN,
        last_error=str(error) if error else "",
        checked_at=Now(),
        last_seen_at=Now() if has_answered else F("last_seen_at"),
    )
