"""Finds or makes the session that a source belongs to, and ties sub-agents to the calls that started them."""

from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath

from sessions_app.models import Project, Session, SessionKind, SessionRelation
from sessions_app.readers.base import SourceIdentity

MAX_KEY = 400


def session_key(agent: str, identity: SourceIdentity) -> str:
    """The key under which a source's session is found again."""
    key = f"{agent}:{identity.session_id}"
    return (f"{key}/agent-{identity.agent_id}" if identity.agent_id else key)[:MAX_KEY]


def child_key_of(parent: Session, child_key: str) -> str:
    """The key of a side chain inside a parent's file: the same as that of the sub-agent's own file."""
    return f"{parent.source_key}/agent-{child_key}"[:MAX_KEY]


def find(source_key: str) -> Session | None:
    """The session of that key, if there is one."""
    return Session.objects.filter(source_key=source_key).first()


def side_chains_of(parent: Session) -> dict[str, Session]:
    """Key → session of everything that hangs on a parent's key, its sub-agents' own files among them."""
    return {session.source_key: session for session in Session.objects.filter(source_key__startswith=f"{parent.source_key}/agent-")}


def make(source_key: str, *, agent: str, title: str, parent: Session | None = None) -> Session:
    """A new session. It is incomplete: no list shows it until its import ends."""
    return Session.objects.create(
        source_key=source_key,
        title=title[:300] or "Untitled session",
        agent=agent,
        kind=SessionKind.IMPORTED,
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


def project_of(folder: str) -> Project | None:
    """The project of a working folder; `None` (unfiled) when the source names none."""
    folder = folder.strip()[:500]
    if not folder:
        return None
    path = PureWindowsPath(folder) if "\\" in folder and "/" not in folder else PurePosixPath(folder)
    key = folder.rstrip("/\\") or folder
    return (
        Project.objects.filter(key=key).first() or Project.objects.get_or_create(key=key, defaults={"name": (path.name or folder)[:200]})[0]
    )


def link_children(session: Session, agent_calls: dict[str, str]) -> int:
    """Ties sub-agents of this session, whichever came first, to the calls that started them. Returns how many."""
    linked = 0
    root_key = session.source_key.partition("/agent-")[0]
    for agent_id, call_id in agent_calls.items():
        changed = (
            Session.objects.filter(source_key=f"{root_key}/agent-{agent_id}"[:MAX_KEY])
            .exclude(pk=session.pk)
            .exclude(parent=session, parent_call_id=call_id)
            .update(parent=session, relation=SessionRelation.SUB_AGENT, parent_call_id=call_id[:200])
        )
        linked += changed
    if session.source_key == root_key:
        prefix = f"{root_key}/agent-"
        orphans = Session.objects.filter(source_key__startswith=prefix, parent=None)
        linked += orphans.update(parent=session, relation=SessionRelation.SUB_AGENT)
    return linked


def call_that_started(session: Session, identity: SourceIdentity) -> tuple[Session, str] | None:
    """(session, call id) of the call that started a sub-agent, going by what its possible parents' files said."""
    root_key = session.source_key.partition("/agent-")[0]
    relatives = Session.objects.filter(source_key=root_key) | Session.objects.filter(source_key__startswith=f"{root_key}/agent-")
    for relative in relatives.exclude(pk=session.pk):
        for report in relative.source_files.order_by("-version").values_list("report", flat=True)[:1]:
            if call_id := (report.get("agent_calls") or {}).get(identity.agent_id):
                return relative, str(call_id)
    return None
