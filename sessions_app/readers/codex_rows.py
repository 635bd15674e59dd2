"""One row of a Codex rollout as an entry: who speaks, what it is, and which facts stand beside it."""

import re
from typing import Any

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.claude_code_parts import json_text, text_of
from sessions_app.readers.codex_parts import CodexParts, texts_of

ROW_TYPES = frozenset(
    {
        "session_meta", "response_item", "compacted", "turn_context", "event_msg", "inter_agent_communication",
        "inter_agent_communication_metadata", "token_usage_record", "world_state", "security_risk_score", "retained_context",
        "realtime_item",
    },
)  # fmt: skip
ITEM_TYPES = frozenset(
    {
        "message", "agent_message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "local_shell_call_output", "tool_search_call", "tool_search_output", "web_search_call", "image_generation_call",
        "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger", "other",
    },
)  # fmt: skip
SUMMARY_ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})
SUMMARY_PREFIX = "Another language model started to solve this problem"
MAX_NAME = 200
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|permissions instructions|collaboration_mode"
    r"|[a-z_]+_instructions|turn_aborted|skills?|subagent_notification|user_shell_command|user_action|model_switch|INSTRUCTIONS"
    r"|goal_context|hook_prompt|personality_spec|context_window)\b)",
)
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "tool_search_call": "arguments", "local_shell_call": "action"}
_OUTPUTS = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "tool_search_output": "tools",
    "local_shell_call_output": "output",
}
_NOTICES = {
    "turn_aborted": "The turn was aborted",
    "thread_rolled_back": "Turns were taken back",
    "entered_review_mode": "A review began",
    "exited_review_mode": "The review ended",
    "error": "Error",
    "stream_error": "The connection to the model failed",
    "warning": "Warning",
}
_ERRORS = frozenset({"error", "stream_error"})


def kind_of(row: dict[str, Any]) -> str:
    """The source's own word for a row, with that of its payload: `session_meta`, `response_item/function_call`."""
    kind = row.get("type")
    if not isinstance(kind, str):
        return "(no type)"
    detail = payload_of(row).get("type") if kind in ("response_item", "event_msg") else None
    return f"{kind}/{detail}"[:80] if isinstance(detail, str) and detail else kind[:80]


def payload_of(row: dict[str, Any]) -> dict[str, Any]:
    """What a row holds; an empty object where it holds none."""
    payload = row.get("payload")
    return payload if isinstance(payload, dict) else {}


def is_known(row: dict[str, Any]) -> bool:
    """Whether the row's type is one that this reader was written for. Events come in any number of types: all are kept as records."""
    kind, detail = row.get("type"), payload_of(row).get("type")
    if kind == "response_item":
        return isinstance(detail, str) and detail in ITEM_TYPES
    return isinstance(kind, str) and kind in ROW_TYPES


def turn_of(row: dict[str, Any]) -> str:
    """The id of the turn that a row names, or an empty text."""
    payload = payload_of(row)
    for named in (payload, payload.get("internal_chat_message_metadata_passthrough"), payload.get("metadata")):
        if isinstance(named, dict) and (turn := text_of(named.get("turn_id"))):
            return turn[:100]
    return ""


def is_summary_output(row: dict[str, Any]) -> bool:
    """Whether an answer is what the agent got when it asked for a summary: it is never sent again."""
    metadata = row.get("metadata")
    return isinstance(metadata, dict) and metadata.get("compaction_output") is True


def is_injected(item: dict[str, Any]) -> bool:
    """Whether a message is one that the agent put there: instructions, surroundings, notices. Never raises."""
    if item.get("role") in ("developer", "system"):
        return True
    metadata = item.get("internal_chat_message_metadata_passthrough")
    kinds = metadata.get("content_item_kinds") if isinstance(metadata, dict) else None
    told = [kind for kind in kinds if isinstance(kind, str) and kind != "unknown"] if isinstance(kinds, list) else []
    if told:
        return not any(kind.startswith("user.") for kind in told)
    text = next((text for text in texts_of(item.get("content")) if text.strip()), "")
    return _INJECTED.match(text) is not None or text.startswith(SUMMARY_PREFIX)


def entry_of(item: dict[str, Any], parts: CodexParts, *, place: str) -> ParsedEntry | None:
    """The entry of a `response_item`, or `None` for one that holds nothing. Ids, time and place in the session are the caller's to fill.

    `place` names the row where a call has no id of its own.
    """
    kind = text_of(item.get("type"))
    if kind == "message":
        return _message(item, parts)
    if kind == "agent_message":  # from another agent of the same tree
        said = parts.content(item.get("content"), name=text_of(item.get("author"))[:MAX_NAME])
        return ParsedEntry(role=Role.USER, kind=Kind.OTHER, parts=said, meta=True) if said else None
    if kind == "reasoning":
        thought = parts.reasoning(item)
        return ParsedEntry(role=Role.ASSISTANT, kind=Kind.THINKING, parts=thought) if thought else None
    call_id = text_of(item.get("call_id"))[:MAX_NAME]
    if kind in _CALLS and (call_id or kind != "tool_search_call"):
        name = text_of(item.get("name")) or kind.removesuffix("_call")
        call_id = call_id or text_of(item.get("id"))[:MAX_NAME] or place
        return ParsedEntry(role=Role.ASSISTANT, kind=Kind.CALL, parts=(parts.call(name[:MAX_NAME], call_id, item.get(_CALLS[kind])),))
    if kind in _OUTPUTS and (call_id or kind != "tool_search_output"):
        call_id = call_id or text_of(item.get("id"))[:MAX_NAME]
        found, facts = parts.result(call_id, item.get(_OUTPUTS[kind]))
        return ParsedEntry(role=Role.TOOL, kind=Kind.RESULT, parts=found, annex=facts)
    return _hosted(item, kind, parts)


def _message(item: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
    said = parts.content(item.get("content"))
    if not said:
        return None
    role = item.get("role")
    if role == "assistant":
        return ParsedEntry(role=Role.ASSISTANT, kind=Kind.MESSAGE, parts=said)
    if role in ("developer", "system"):
        return ParsedEntry(role=Role.SYSTEM, kind=Kind.REMINDER, parts=said, meta=True)
    if not is_injected(item):
        return ParsedEntry(role=Role.USER, kind=Kind.MESSAGE, parts=said)
    is_summary = said[0].text.startswith(SUMMARY_PREFIX)
    return ParsedEntry(role=Role.USER, kind=Kind.SUMMARY if is_summary else Kind.REMINDER, parts=said, meta=True)


def _hosted(item: dict[str, Any], kind: str, parts: CodexParts) -> ParsedEntry | None:
    """What the provider does by itself: its call and its result are one item, which needs no answer."""
    if kind == "image_generation_call":
        found: list[Part] = [parts.image(data)] if (data := text_of(item.get("result"))) else []
        if prompt := text_of(item.get("revised_prompt")):
            found.append(parts.text(prompt, name=kind))
        return ParsedEntry(role=Role.ASSISTANT, kind=Kind.OTHER, parts=tuple(found)) if found else None
    if kind in ("web_search_call", "tool_search_call", "tool_search_output"):
        body = item.get("action") or item.get("arguments") or item.get("tools") or {}
        return ParsedEntry(role=Role.ASSISTANT, kind=Kind.OTHER, parts=(parts.text(json_text(body), name=kind),))
    return None


def notice_of(event: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
    """The entry of an event that tells people something which no item does, or `None`."""
    kind = text_of(event.get("type"))
    if kind not in _NOTICES:
        return None
    detail = text_of(event.get("message")) or text_of(event.get("reason")) or text_of(event.get("user_facing_hint"))
    if kind == "thread_rolled_back" and isinstance(event.get("num_turns"), int):
        detail = str(event["num_turns"])
    text = f"{_NOTICES[kind]}: {detail}" if detail else _NOTICES[kind]
    return ParsedEntry(role=Role.NOTICE, kind=Kind.ERROR if kind in _ERRORS else Kind.OTHER, parts=(parts.text(text, name=kind),))


def prompt_of(event: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
    """The entry of a `user_message` event, for files that hold the prompt nowhere else."""
    text = text_of(event.get("message"))
    return ParsedEntry(role=Role.USER, kind=Kind.MESSAGE, parts=(parts.text(text),)) if text.strip() else None


def base_instructions(meta: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
    """The system prompt that a `session_meta` row holds."""
    told = meta.get("base_instructions")
    text = text_of(told.get("text") if isinstance(told, dict) else told)
    if not text.strip():
        return None
    return ParsedEntry(role=Role.SYSTEM, kind=Kind.MESSAGE, parts=(parts.text(text, name="base_instructions"),), meta=True)


def plain_text(parts: tuple[Part, ...]) -> str:
    """The first text part's text, or an empty string."""
    return next((part.text for part in parts if part.kind is PartKind.TEXT), "")
