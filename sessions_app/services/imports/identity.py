"""Finds or makes the session that a source belongs to, and ties sub-agents to the calls that started them."""

import uuid
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import orjson
from django.db import connection
from django.db.models import Q

from sessions_app import prepared
from sessions_app.engine.terms import Kind
from sessions_app.models import Entry, Project, Session, SessionKind, SessionRelation
from sessions_app.readers.base import SourceIdentity
from sessions_app.services.imports.find import open_file
from sessions_app.services.imports.outcomes import ImportFailedError

MAX_KEY = 400
MAX_META_BYTES = 65_536


def session_key(agent: str, identity: SourceIdentity) -> str:
    """The key under which a source's session is found again."""
    key = f"{agent}:{identity.session_id}"
    return (f"{key}/agent-{identity.agent_id}" if identity.agent_id else key)[:MAX_KEY]


def child_key_of(parent: Session, child_key: str) -> str:
    """The key of a side chain inside a parent's file: the same as that of the sub-agent's own file."""
    return f"{parent.source_key}/agent-{child_key}"[:MAX_KEY]


def find(source_key: str) -> Session | None:
    """The session of that key, if there is one."""
    # Most often there is none, and that is told in a tenth of the time.
    return Session.objects.filter(source_key=source_key).first() if prepared.exists(Session, source_key=source_key) else None


def side_chains_of(parent: Session) -> dict[str, Session]:
    """Key → session of everything that hangs on a parent's key, its sub-agents' own files among them."""
    return {session.source_key: session for session in Session.objects.filter(_below(parent.source_key))}


def make(source_key: str, *, agent: str, title: str, kind: SessionKind, parent: Session | None = None) -> Session:
    """A new session, not stored yet. It is incomplete: no list shows it until its import ends."""
    return Session(
        source_key=source_key,
        title=title[:300] or "Untitled session",
        agent=agent,
        kind=kind,
        is_complete=False,
        parent=parent,
        relation=SessionRelation.SUB_AGENT if parent else "",
        last_activity_at=datetime.now(UTC),
    )


def parent_of(agent: str, identity: SourceIdentity) -> Session | None:
    """The session in which a sub-agent's file was started, if it was imported."""
    if not identity.agent_id:
        return None
    return Session.objects.filter(source_key=session_key(agent, SourceIdentity(session_id=identity.session_id))).first()


def project_of(folder: str) -> uuid.UUID | None:
    """The id of a working folder's project, which is made where it is new; `None` (unfiled) when the source names none."""
    folder = folder.strip()[:500]
    if not folder:
        return None
    key = folder.rstrip("/\\") or folder
    known = prepared.find(Project, ("id",), key=key)
    if known is None:
        path = PureWindowsPath(folder) if "\\" in folder and "/" not in folder else PurePosixPath(folder)
        made = Project(key=key, name=(path.name or folder)[:200])
        if prepared.insert(made, ignore_existing=True):
            return made.pk
        known = prepared.find(Project, ("id",), key=key)
    assert known is not None
    found: uuid.UUID = Project._meta.pk.to_python(known[0])
    return found


def link_children(session: Session, agent_calls: dict[str, str]) -> int:
    """Ties sub-agents of this session, whichever came first, to the calls that started them. Returns how many."""
    root_key = session.source_key.partition("/agent-")[0]
    if connection.vendor == "sqlite" and not prepared.is_any_between(Session, "source_key", *_bounds(root_key)):
        return 0
    found: list[tuple[Any, ...]] = list(Session.objects.filter(_below(root_key)).values_list(*_LINK))
    calls = {f"{root_key}/agent-{agent_id}"[:MAX_KEY]: call_id[:200] for agent_id, call_id in agent_calls.items()}
    linked = 0
    for key, pk, parent_id, call_id in found:
        wanted: dict[str, object] = {"parent_id": session.pk, "relation": SessionRelation.SUB_AGENT}
        if key in calls and pk != session.pk and (parent_id, call_id) != (session.pk, calls[key]):
            linked += Session.objects.filter(pk=pk).update(**wanted, parent_call_id=calls[key])
        elif parent_id is None and session.source_key == root_key:
            linked += Session.objects.filter(pk=pk, parent=None).update(**wanted)
    return linked


_LINK = ("source_key", "pk", "parent_id", "parent_call_id")


def _below(root_key: str) -> Q:
    """What hangs on a session's key: its sub-agents."""
    if connection.vendor == "sqlite":  # it compares bytes, and its LIKE would read the whole table
        first, end = _bounds(root_key)
        return Q(source_key__gte=first, source_key__lt=end)
    return Q(source_key__startswith=_bounds(root_key)[0])


def _bounds(root_key: str) -> tuple[str, str]:
    """The first key that may hang on a session's, and the first behind those, in the order of bytes."""
    return f"{root_key}/agent-", f"{root_key}/agent."


def call_that_started(session: Session, identity: SourceIdentity, path: str) -> tuple[Session, str] | None:
    """(session, call id) of the call that started a sub-agent, as its possible parents' files tell it, or the one beside its own."""
    root_key = session.source_key.partition("/agent-")[0]
    relatives = Session.objects.filter(Q(source_key=root_key) | _below(root_key))
    for relative in relatives.exclude(pk=session.pk):
        for report in relative.source_files.order_by("-version").values_list("report", flat=True)[:1]:
            if call_id := (report.get("agent_calls") or {}).get(identity.agent_id):
                return relative, str(call_id)
    if call_id := _call_told_beside(path):
        calls = Entry.objects.filter(session__in=relatives, call_id=call_id, kind=Kind.CALL).exclude(session=session).exclude(call_id="")
        if found := calls.select_related("session").first():
            return found.session, call_id
    return None


def _call_told_beside(path: str) -> str:
    """The call that started a sub-agent, as the small file beside its own tells it; empty where none does."""
    place = Path(path)
    if not place.is_absolute():  # it was uploaded
        return ""
    try:
        with open_file(place.with_suffix(".meta.json")) as file:
            told = orjson.loads(file.read(MAX_META_BYTES))
    except (OSError, ValueError, ImportFailedError):
        return ""
    call_id = told.get("toolUseId") if isinstance(told, dict) else None
    return call_id[:200] if isinstance(call_id, str) else ""
