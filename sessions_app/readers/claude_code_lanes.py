"""Which session a row belongs to: the file's own, or one of the side chains that stand inside it."""

import hashlib
from typing import Any

import msgspec

from sessions_app.engine.foreign_json import NotJson, decode
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import ChildSession, ParsedEntry, SourceIdentity
from sessions_app.readers.claude_code_facts import one_line
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_rows import first_text
from sessions_app.readers.claude_code_tree import Tree

AGENT_TOOLS = frozenset({"Task", "Agent"})


class _Started(msgspec.Struct):
    """A call that started a sub-agent."""

    call_id: str
    description: str
    agent_type: str


class Lanes:
    """Keeps apart the main conversation (lane "") and its side chains; counts the entries of each."""

    def __init__(self, identity: SourceIdentity) -> None:
        self._is_agent_file = bool(identity.agent_id)
        self._counts: dict[str, int] = {}
        self._children: dict[str, ChildSession] = {}
        self._started: dict[bytes, _Started] = {}  # by the hash of the prompt that was given
        self.agent_calls: dict[str, str] = {}  # sub-agent id → the call that started it

    def lane_of(self, row: dict[str, Any], uuid: str, tree: Tree) -> str:
        """The lane of a row: its sub-agent's id, else its parent's lane, else one that starts with it."""
        if self._is_agent_file or row.get("isSidechain") is not True:
            return ""
        if agent_id := text_of(row.get("agentId")):
            return agent_id[:100]
        parent = text_of(row.get("parentUuid"))
        return tree.lane_of(parent) or uuid[:100] or "side"

    def next_ordinal(self, lane: str, entry: ParsedEntry) -> int:
        """Counts an entry and returns its place, from 0, within its lane."""
        ordinal = self._counts.get(lane, 0)
        self._counts[lane] = ordinal + 1
        if lane and lane not in self._children:
            self._children[lane] = self._child(lane, entry)
        if entry.kind is Kind.CALL:
            self._note_starts(entry)
        elif entry.kind is Kind.RESULT:
            self._note_agent(entry)
        return ordinal

    def children(self) -> list[ChildSession]:
        """The side chains, in the order in which they begin."""
        for child in self._children.values():
            child.call_id = child.call_id or self.agent_calls.get(child.key, "")
        return list(self._children.values())

    def _child(self, lane: str, entry: ParsedEntry) -> ChildSession:
        prompt = first_text(entry.parts) if entry.role is Role.USER else ""
        started = self._started.get(_digest(prompt)) if prompt else None
        title = started.description if started and started.description else prompt
        return ChildSession(
            key=lane,
            title=one_line(title),
            call_id=started.call_id if started else "",
            agent_type=started.agent_type if started else "",
        )

    def _note_starts(self, entry: ParsedEntry) -> None:
        for part in entry.parts:
            if part.kind is PartKind.CALL and part.name in AGENT_TOOLS:
                data = entry.blobs[part.blob][1] if part.blob else part.text
                try:
                    told = decode(data)
                except NotJson:
                    continue
                if isinstance(told, dict) and (prompt := text_of(told.get("prompt"))):
                    self._started[_digest(prompt)] = _Started(
                        part.call_id, text_of(told.get("description")), text_of(told.get("subagent_type"))[:60]
                    )

    def _note_agent(self, entry: ParsedEntry) -> None:
        agent_id = entry.annex.get("agent_id")
        if isinstance(agent_id, str) and agent_id and entry.parts[0].call_id:
            self.agent_calls[agent_id] = entry.parts[0].call_id


def _digest(prompt: str) -> bytes:
    # A long prompt stands shortened in its part: the beginning tells them apart.
    return hashlib.sha256(prompt[:2_000].strip().encode()).digest()
