"""Fills an empty installation with the demo: session files of our own making, taken in like any others."""

import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from sessions_app.demo.catalogue import CATALOGUE, KEEPS_FACTS, DemoSession
from sessions_app.demo.conversations import CONVERSATIONS, Conversation
from sessions_app.demo.other_stories import SideFiles
from sessions_app.demo.transcript import Transcript
from sessions_app.engine.terms import FlushMode, Lineage
from sessions_app.events.actors import Actor, system_actor
from sessions_app.models import Compaction, PolicyScope, Project, Session, SessionKind, Turn
from sessions_app.providers.scripted_model import NAME, ScriptedModel
from sessions_app.services import accounts, memory_beside, policies, signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.imports import import_paths
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin

DEMO = system_actor("demo")
"""Who the demo's compactions are by, whoever had it filled."""

LONGEST_S = 30.0
PEOPLE = (("olga", "operator"), ("ana", "support"), ("ada", "admin"))


@dataclass(frozen=True)
class SignIn:
    """An account that was just made. Its password is stored nowhere else in the clear."""

    name: str
    role: str
    password: str


@dataclass(frozen=True)
class DemoReport:
    """What filling did: nothing at all when the installation was in use already."""

    sessions: int = 0
    entries: int = 0
    sign_ins: tuple[SignIn, ...] = ()


def is_wanted() -> bool:
    """Whether nobody uses this installation yet: it has no account, and no session but those of the demo."""
    if User.objects.exists():
        return False
    keys = list(Session.objects.values_list("source_key", flat=True))
    ours = [*(demo.files()[0].session_id for demo in CATALOGUE), *(told.key for told in CONVERSATIONS)] if keys else []
    return all(any(session_id in key for session_id in ours) for key in keys)


def fill(*, actor: Actor) -> DemoReport:
    """Imports the demo's sessions, compacts some of them for real, and makes one account per role. Takes a few seconds.

    The files stay in `demo` under the data directory, as something to try the import with.
    Does nothing unless `is_wanted`. The accounts come last: when it is interrupted before, the next call goes on.
    """
    if not is_wanted():
        return DemoReport()
    now = datetime.now(UTC)
    folder = Path(settings.DATA_DIR) / "demo"
    stories = [(demo, *demo.files()) for demo in CATALOGUE]
    for demo, transcript, children in stories:
        _write(folder, transcript, children, now - demo.ended_ago)
    import_paths(actor=actor, paths=[folder])
    for project_id in Project.objects.filter(name__in=KEEPS_FACTS).values_list("pk", flat=True):
        policies.set_value(actor=actor, scope=PolicyScope.PROJECT, scope_id=project_id, field="flush_mode", value=FlushMode.PROTECT.value)
    for demo, transcript, _ in stories:
        session = Session.objects.filter(source_key__endswith=transcript.session_id, parent=None).first()
        if session is not None:
            _prepare(actor, session, demo)
            _steer(session, demo)
    for conversation in CONVERSATIONS:
        _hold(actor, conversation)
    memory_beside.wait_for_all()
    sign_ins = tuple(SignIn(name, role, secrets.token_urlsafe(9)) for name, role in PEOPLE)
    for sign_in in sign_ins:
        accounts.create_user(actor=actor, name=sign_in.name, role=sign_in.role, password=sign_in.password)
    listed = Session.objects.listed()
    return DemoReport(sessions=listed.count(), entries=sum(Session.objects.values_list("entry_count", flat=True)), sign_ins=sign_ins)


def _write(folder: Path, transcript: Transcript, children: SideFiles, ends_at: datetime) -> None:
    project = folder / transcript.cwd.replace("/", "-")
    project.mkdir(parents=True, exist_ok=True)
    (project / f"{transcript.session_id}.jsonl").write_bytes(transcript.render(ends_at))
    if children:
        side = project / transcript.session_id / "subagents"
        side.mkdir(parents=True, exist_ok=True)
        for child, about in children:
            (side / f"agent-{child.agent_id}.jsonl").write_bytes(child.render(ends_at))
            (side / f"agent-{child.agent_id}.meta.json").write_text(json.dumps(about))


def _prepare(actor: Actor, session: Session, demo: DemoSession) -> None:
    if demo.window is not None:
        Session.objects.filter(pk=session.pk).update(window_override=demo.window)
    for field, value in demo.policy.items():
        policies.set_value(actor=actor, scope=PolicyScope.SESSION, scope_id=str(session.pk), field=field, value=value)
    if demo.window is not None or demo.policy:
        signals.refresh(session.pk)


def _steer(session: Session, demo: DemoSession) -> None:
    made = Compaction.objects.filter(session=session, lineage=Lineage.CONSOLE)
    if made.exists():
        return
    for step in demo.steps:
        session.refresh_from_db()
        if step == "compact":
            _compact(session)
            continue
        wanted = int(step.removeprefix("revert:"))
        generations = list(made.filter(generation__isnull=False).order_by("generation").values_list("generation", flat=True))
        if len(generations) > wanted:
            revert(actor=DEMO, session=session, generation=generations[wanted - 1])


def _hold(actor: Actor, told: Conversation) -> None:
    """Begins the session, or goes on with it, and has every message answered; compactions come about on the way."""
    session = Session.objects.filter(source_key=f"{SessionKind.INLINE}:{told.key}").first() or begin(
        actor=actor, model=NAME, title=told.title, system=told.system, window=told.window, key=told.key
    )
    for text in told.messages[session.turns.count() :]:
        turn = send(actor=DEMO, session=session, text=text)
        run_turn(session.pk, make_client=_at_once)
        _wait_for(turn)


def _at_once(_provider: str, *, window: int, timeout_s: float) -> ScriptedModel:  # noqa: ARG001  the shape of `turn_models.make_client`
    return ScriptedModel(window=window, pause_s=0)


def _compact(session: Session) -> None:
    compaction = request(actor=DEMO, session=session).compaction
    run_compaction(compaction.pk)
    _wait_for(compaction)


def _wait_for(work: Compaction | Turn) -> None:
    """A worker that runs already may have been quicker; then the work is done there."""
    deadline = time.monotonic() + LONGEST_S
    while work.is_open and time.monotonic() < deadline:
        work.refresh_from_db()
        if work.is_open:
            time.sleep(0.02)
