"""The agents themselves go on with what this console wrote: recorded by them, imported, compacted, exported, resumed, imported again.

Runs where the binaries are (`TEST_CLAUDE_BINARY`, `TEST_CODEX_BINARY`, or `claude` and `codex` on the path), offline,
against the scripted model server.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from sessions_app.engine.messages import ViewMessage, sent_parts
from sessions_app.engine.terms import Lineage, PartKind, Role
from sessions_app.models import Compaction, Entry, Session
from sessions_app.selectors.plans import load_view
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.writers.registry import writer_for
from tests.agents.binaries import CLAUDE, CODEX, Agent, ClaudeCode, Codex
from tests.fakes.model_server import Answer, Asked, ModelServer, call, say
from tests.importing import ACTOR
from tests.services.import_scenes import take
from tests.writers.scenes import BLOCK, plan, read, written

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

needs_claude = pytest.mark.skipif(not CLAUDE, reason="the agent is not here: set TEST_CLAUDE_BINARY to the path of claude")
needs_codex = pytest.mark.skipif(not CODEX, reason="the agent is not here: set TEST_CODEX_BINARY to the path of codex")
AGENTS = [pytest.param("claude-code", marks=needs_claude), pytest.param("codex", marks=needs_codex)]

FILLER = "The parser keeps a table of open spans, and each span carries its offset, length and owner. "
PROMPTS = (
    "Remember: the magic number is 4217.",
    "Read notes.txt and tell me what it says.",
    "Explain the parser.",
    "Explain the worker.",
    "Read notes.txt again.",
    "What is next?",
)
CALL_NUMBERS = itertools.count(1)
SURROUNDINGS = re.compile(r"<(?:system-reminder|environment_context|[a-z_]+[_ ]instructions)>")
UNFRAMED = ("skill_listing", "agent_listing_delta", "deferred_tools_delta", "mcp_instructions_delta")
GO_ON = "Go on where we were."
Said = list[tuple[str, str, Any, str]]
"""(role, kind, text or arguments, call id) of each block."""


def answer_for(asked: Asked) -> Answer:
    """Long answers with a number of their own, and a call for whoever asks to read. The counts tell of a context that is nearly full."""
    number = len(asked.blocks)
    prompt = max(place for place, block in enumerate(asked.blocks) if block.kind == "text" and block.text in (*PROMPTS, GO_ON, "And then?"))
    is_answered = any(block.kind == "result" for block in asked.blocks[prompt:])
    if asked.blocks[prompt].text.startswith("Read notes.txt") and not is_answered:
        if "Read" in asked.tools:
            return call("Read", f"toolu_{next(CALL_NUMBERS)}", file_path="notes.txt")
        return call("exec_command", f"call_{next(CALL_NUMBERS)}", cmd="cat notes.txt")
    return say(f"Answer {number}. " + FILLER * 12, input_tokens=80_000)


@dataclass
class Scene:
    """An agent with a session that it recorded itself."""

    agent: Agent
    name: str
    source: Path
    session: Session

    @property
    def server(self) -> ModelServer:
        return self.agent.server


@pytest.fixture
def scene(name: str, tmp_path: Path) -> Iterator[Scene]:
    home, folder = tmp_path / "home" / "agent", tmp_path / "work"
    home.mkdir(parents=True)
    folder.mkdir()
    (folder / "notes.txt").write_text("The queue is drained every night.\n" * 40)
    with ModelServer(answer_for) as server:
        agent = (ClaudeCode if name == "claude-code" else Codex)(home, folder, server)
        session_id = record(agent, name)
        [source] = home.rglob(f"*{session_id}.jsonl")
        yield Scene(agent, name, source, Session.objects.get(pk=take(source).session_id))


def record(agent: Agent, name: str) -> str:
    """A session of some turns, by the agent itself; returns its id."""
    session_id = agent.start(PROMPTS[0])
    for prompt in PROMPTS[1:]:
        agent.resume(session_id, prompt)
    return session_id


def compacted(session: Session, *, prompt: str) -> Compaction:
    """A checkpoint of ours that keeps everything from this prompt on."""
    boundary = next(entry.index for entry in prompts_of(session) if prompt in entry.parts)
    attempt = request(actor=ACTOR, session=session, boundary=boundary, force=True).compaction
    run_compaction(attempt.pk)
    session.refresh_from_db()
    attempt.refresh_from_db()
    assert attempt.outcome == "committed", (attempt.status, attempt.explanation)
    return attempt


def prompts_of(session: Session) -> list[Entry]:
    return list(Entry.objects.filter(session=session, role="user", kind="message", meta=False).order_by("index"))


def installed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The continuation, where the agent looks for it."""
    before = set(scene.agent.home.rglob("*.jsonl"))
    monkeypatch.setenv(scene.agent.variable, str(scene.agent.home))
    call_command("export", str(scene.session.pk), "--format", "continuation", "--install")
    [new] = set(scene.agent.home.rglob("*.jsonl")) - before
    return new


def id_of(path: Path) -> str:
    return path.stem[-36:]


def in_view(messages: tuple[ViewMessage, ...]) -> Said:
    """What a view says, in the same form as `requested`.

    Some versions of Claude Code do not record how they send what they add to a request: left out here, as in `without_surroundings`.
    """
    found: Said = []
    for message in messages:
        for part in sent_parts(message):
            if part.name in UNFRAMED:
                continue
            body: object = json.loads(part.text) if part.kind is PartKind.CALL else part.text.strip()
            found.append((message.role.value, part.kind.value, body, part.call_id))
    return found


def requested(asked: Asked) -> Said:
    """What a request says."""
    return [
        (block.role, block.kind, json.loads(block.text) if block.kind == "call" else block.text.strip(), block.call_id)
        for block in asked.blocks
    ]


def without_surroundings(said: Said) -> Said:
    """Without what the agent itself adds to every request: reminders, instructions, surroundings."""
    kept: Said = []
    for role, kind, body, call_id in said:
        if role in ("system", "developer") or (kind == "text" and SURROUNDINGS.match(str(body))):
            continue
        kept.append((role, kind, str(body).split("\n\n<system-reminder>")[0] if kind == "result" else body, call_id))
    return kept


@pytest.mark.parametrize("name", AGENTS)
def test_the_agent_resumes_with_our_block_and_the_tail_and_nothing_that_was_folded(scene, monkeypatch):
    original = scene.source.read_bytes()
    attempt = compacted(scene.session, prompt="Explain the worker.")
    wanted = without_surroundings(in_view(load_view(scene.session, Lineage.CONSOLE)))
    new = installed(scene, monkeypatch)
    before = len(scene.server.prompts)
    scene.agent.resume(id_of(new), GO_ON, small=True)

    [asked] = scene.server.prompts[before:]  # one: the agent does not compact again by the old counts
    block = attempt.segments.get(kind="synthetic").payload["text"].strip()
    assert without_surroundings(requested(asked)) == [*wanted, ("user", "text", GO_ON, "")]
    assert [body for _, _, body, _ in requested(asked)].count(block) == 1
    folded = prompts_of(scene.session)[1].parts
    assert json.loads(folded)[0]["text"] not in asked.texts
    assert b"toolu_" not in asked.raw.split(b"Explain the worker.")[0]
    assert scene.source.read_bytes() == original


@pytest.mark.parametrize("name", AGENTS)
def test_what_the_agent_adds_is_read_again_with_our_boundary_as_its_own(scene, monkeypatch, tmp_path):
    attempt = compacted(scene.session, prompt="Explain the worker.")
    new = installed(scene, monkeypatch)
    written = new.read_bytes()
    scene.agent.resume(id_of(new), GO_ON)
    scene.agent.resume(id_of(new), "And then?")
    grown = new.read_bytes()
    assert grown.startswith(written)

    asked = scene.server.prompts[-1]
    cut = tmp_path / new.name
    cut.write_bytes(before_the_answer(grown, scene.name))
    session = Session.objects.get(pk=take(cut).session_id)
    ours = Compaction.objects.get(session=session)
    block = attempt.segments.get(kind="synthetic").payload["text"]
    assert (ours.lineage, ours.pk, ours.summary) == ("agent", session.active_agent_id, block)
    said, view = requested(asked), in_view(load_view(session, Lineage.AGENT))
    if scene.name == "codex" or b'"rendered"' not in grown:  # it rewrites its own instructions on their way
        said, view = without_surroundings(said), without_surroundings(view)
    assert view == said
    assert GO_ON in asked.texts


def before_the_answer(grown: bytes, name: str) -> bytes:
    """The file as it was when the last request was made."""
    lines = grown.splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    said = [number for number, row in enumerate(rows) if is_answer(row, name)]
    return b"".join(lines[: said[-1]])


def is_answer(row: dict[str, Any], name: str) -> bool:
    if name == "claude-code":
        return row["type"] == "assistant"
    return row["type"] == "response_item" and row["payload"].get("role") == "assistant"


@pytest.mark.parametrize("name", AGENTS)
def test_a_continuation_is_compacted_and_continued_again(scene, monkeypatch):
    compacted(scene.session, prompt="Explain the parser.")
    first = installed(scene, monkeypatch)
    scene.agent.resume(id_of(first), GO_ON)
    session = Session.objects.get(pk=take(first).session_id)
    attempt = compacted(session, prompt="What is next?")
    wanted = without_surroundings(in_view(load_view(session, Lineage.CONSOLE)))
    second = installed(Scene(scene.agent, scene.name, first, session), monkeypatch)
    scene.agent.resume(id_of(second), "And then?", small=True)
    asked = scene.server.prompts[-1]
    assert without_surroundings(requested(asked)) == [*wanted, ("user", "text", "And then?", "")]
    assert attempt.segments.get(kind="synthetic").payload["text"].strip() in [text.strip() for text in asked.texts]
    assert {role for role, *_ in wanted} <= {Role.USER.value, Role.ASSISTANT.value}


@pytest.mark.parametrize("name", AGENTS)
def test_in_a_large_file_too_what_is_carried_is_sent(scene):
    """An agent that reads only the end of a large file must find there all that it is to send."""
    filler = {"claude-code": {"type": "queue-operation", "content": "x" * 5_000, "sessionId": id_of(scene.source)}}.get(
        scene.name, {"timestamp": "2026-11-30T10:00:00.000Z", "type": "event_msg", "payload": {"type": "warning", "message": "x" * 5_000}}
    )
    first, *rest = scene.source.read_bytes().splitlines(keepends=True)
    source = read(b"".join([first, *[json.dumps(filler).encode() + b"\n"] * 3_000, *rest]), scene.name)
    places = {entry.text: entry.index for entry in source.live}
    writer = writer_for(scene.name)
    session_id = writer.new_session_id()
    checkpoint = plan(places["Explain the worker."], [places[PROMPTS[0]], places["Explain the parser."]])
    place = writer.place_of(session_id, working_directory=str(scene.agent.folder), at=datetime.now().astimezone())
    folder = scene.agent.home / place.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / place.name).write_bytes(written(source, scene.name, checkpoint, session_id)[0])
    scene.agent.resume(session_id, GO_ON)
    texts = [text.strip() for text in scene.server.prompts[-1].texts]
    assert [text for text in texts if text in (BLOCK, *PROMPTS)] == [BLOCK, PROMPTS[0], "Explain the parser.", *PROMPTS[3:]]
