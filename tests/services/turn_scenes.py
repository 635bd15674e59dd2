"""Sessions that are held here, a model that answers over HTTP, and processes of their own that run turns."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from django.conf import settings
from django.db import connection

from sessions_app.models import Entry, Session
from sessions_app.services.turns.run import run_turn

ROOT = Path(__file__).resolve().parents[2]
PROVIDERS = ("anthropic", "openai")


def run_beside(session: Session) -> threading.Thread:
    """Runs the next turn as a worker's thread would."""

    def work() -> None:
        try:
            run_turn(session.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


_PROCESS = """
import sys, uuid
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from sessions_app.services.turns.run import run_turn
while run_turn(uuid.UUID(sys.argv[2])):
    print("done", flush=True)
"""


def process_of(session: Session) -> "subprocess.Popen[str]":
    """A process of its own that runs the session's turns until none is left, on the database of the tests."""
    name = str(connection.settings_dict["NAME"])
    return subprocess.Popen(
        [sys.executable, "-c", _PROCESS, name, str(session.pk)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE or "project.settings.test"},
    )


def said(session: Session) -> list[tuple[str, str]]:
    """(role, text) of the session's entries, in order."""
    from sessions_app.selectors import plans

    return [(entry.role.value, "\n".join(part.text for part in entry.parts)) for entry in plans.load_entries(session.pk, whole=True)]


def asked_by(session: Session) -> list[str]:
    return [text for role, text in said(session) if role == "user"]


def indexes_are_whole(session: Session) -> bool:
    indexes = list(Entry.objects.filter(session=session).order_by("index").values_list("index", flat=True))
    return indexes == list(range(len(indexes)))
