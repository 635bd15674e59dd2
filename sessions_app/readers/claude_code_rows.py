"""One row of a Claude Code transcript as an entry: who speaks, what it is, and which facts stand beside it."""

import re
from typing import Any

import msgspec

from sessions_app.engine.entries import Part, Usage
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.claude_code_parts import PartBuilder, json_text, text_of

CHAIN_TYPES = frozenset({"user", "assistant", "system", "progress", "attachment"})
SIDE_TYPES = frozenset(
    {
        "summary", "file-history-snapshot", "queue-operation", "custom-title", "ai-title", "agent-name", "agent-color", "agent-setting",
        "permission-mode", "mode", "tag", "last-prompt", "pr-link", "bridge-session", "content-replacement", "atis-latch",
        "history-suppression", "frame-link", "file-history-delta", "artifact-autoreact-ledger", "artifact-comment-monitor", "cost-state",
        "api-request", "api-request-blob", "api-request-shape", "tools-used", "worktree-state", "relocated",
    },
)  # fmt: skip
"""Rows beside the conversation: kept, counted, exported, and no entry."""

SYNTHETIC_MODEL = "<synthetic>"
CONTINUED = "This session is being continued from a previous conversation"
MAX_ANNEX_BYTES = 16_000
_UNSENT_ATTACHMENTS = ("prompt_snapshot", "hook_success", "command_permissions")
_SENT_ATTACHMENTS = frozenset({
    "file", "nested_memory", "edited_text_file", "hook_additional_context", "plan_mode",
    "skill_listing", "agent_listing_delta", "deferred_tools_delta", "mcp_instructions_delta",
})  # fmt: skip
"""What older versions sent of these stands in no row word for word: about this, in a frame of their own."""

_LOCAL_COMMAND = re.compile(
    r"<command-name>/(?:add-dir|clear|compact|config|context|cost|doctor|exit|export|help|hooks|ide|login|logout|mcp|memory|model"
    r"|permissions|plugin|quit|release-notes|resume|rewind|status|statusline|terminal-setup|theme|usage|vim)</command-name>",
)
_MACHINE_TEXT = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "[Request interrupted", "<task-notification>", "<tick>")
_EXIT_CODE = re.compile(r"Exit code (\d+)")


def kind_of(row: dict[str, Any]) -> str:
    """The source's own word for a row, with its subtype: `user`, `system/compact_boundary`, `attachment/file`."""
    kind = row.get("type")
    if not isinstance(kind, str):
        return "(no type)"
    detail = row.get("subtype")
    if kind == "attachment":
        attachment = row.get("attachment")
        detail = attachment.get("type") if isinstance(attachment, dict) else None
    elif kind == "progress":
        data = row.get("data")
        detail = data.get("type") if isinstance(data, dict) else None
    return f"{kind}/{detail}"[:80] if isinstance(detail, str) and detail else kind[:80]


def is_known(row: dict[str, Any]) -> bool:
    """Whether the row's type is one that this reader was written for."""
    kind = row.get("type")
    return isinstance(kind, str) and (kind in CHAIN_TYPES or kind in SIDE_TYPES)


def entry_of(row: dict[str, Any], builder: PartBuilder) -> ParsedEntry | None:
    """The entry of a chain row, or `None` for rows that nobody said. Ids, time and place are the caller's to fill."""
    match row.get("type"):
        case "user":
            return _user(row, builder)
        case "assistant":
            return _assistant(row, builder)
        case "system":
            return _system(row, builder)
        case "attachment":
            return _attachment(row, builder)
    return None


def _user(row: dict[str, Any], builder: PartBuilder) -> ParsedEntry | None:
    message = row.get("message")
    parts = builder.parts(message.get("content")) if isinstance(message, dict) else ()
    if not parts:
        return None
    if any(part.kind is PartKind.RESULT for part in parts):
        is_error = any(part.is_error for part in parts)
        return ParsedEntry(role=Role.TOOL, kind=Kind.RESULT, parts=parts, annex=result_facts(row, parts[0].text if is_error else ""))
    text = parts[0].text
    if row.get("isCompactSummary") is True or (row.get("parentUuid") is None and text.startswith(CONTINUED)):
        return ParsedEntry(role=Role.USER, kind=Kind.SUMMARY, parts=parts, meta=True)
    is_meta = row.get("isMeta") is True or text.startswith(_MACHINE_TEXT) or _LOCAL_COMMAND.search(text[:300]) is not None
    return ParsedEntry(role=Role.USER, kind=Kind.MESSAGE, parts=parts, meta=is_meta)


def _assistant(row: dict[str, Any], builder: PartBuilder) -> ParsedEntry | None:
    message = row.get("message")
    if not isinstance(message, dict):
        return None
    parts = builder.parts(message.get("content"))
    if row.get("isApiErrorMessage") is True:
        # The agent shows these to the person and leaves them out of its requests.
        return ParsedEntry(role=Role.NOTICE, kind=Kind.ERROR, parts=parts)
    kinds = {part.kind for part in parts}
    kind = Kind.CALL if PartKind.CALL in kinds else Kind.THINKING if kinds == {PartKind.THINKING} else Kind.MESSAGE
    model = text_of(message.get("model"))
    return ParsedEntry(
        role=Role.ASSISTANT,
        kind=kind,
        parts=parts,
        message_key=text_of(message.get("id")) or text_of(row.get("requestId")),
        model="" if model == SYNTHETIC_MODEL else model,
        usage=None if model == SYNTHETIC_MODEL else usage_of(message.get("usage")),
    )


def _system(row: dict[str, Any], builder: PartBuilder) -> ParsedEntry:
    subtype = text_of(row.get("subtype"))
    kind = Kind.OTHER
    if subtype in {"compact_boundary", "microcompact_boundary"}:
        kind = Kind.COMPACTED
    elif subtype in {"api_error", "error", "api_refusal"}:
        kind = Kind.ERROR
    content = text_of(row.get("content"))
    if subtype == "local_command" and content:
        # What a command printed is told to the model with the next prompt, unlike all other rows of this type.
        return ParsedEntry(role=Role.USER, kind=Kind.MESSAGE, parts=(builder.text_part(PartKind.TEXT, content),), meta=True)
    text = content or _system_words(subtype, row)
    return ParsedEntry(
        role=Role.NOTICE,
        kind=kind,
        parts=(builder.text_part(PartKind.TEXT, text, name=subtype),),
        annex=_small({"level": row.get("level"), "metadata": row.get("compactMetadata") or row.get("microcompactMetadata")}),
    )


def _system_words(subtype: str, row: dict[str, Any]) -> str:
    if subtype == "turn_duration" and isinstance(row.get("durationMs"), int):
        return f"The turn took {row['durationMs'] / 1000:.1f} s"
    if subtype == "stop_hook_summary":
        return f"{row.get('hookCount', 0)} stop hooks ran"
    if subtype == "api_error":
        return f"API error, attempt {row.get('retryAttempt', '?')} of {row.get('maxRetries', '?')}"
    return subtype.replace("_", " ") or "system"


def _attachment(row: dict[str, Any], builder: PartBuilder) -> ParsedEntry | None:
    attachment = row.get("attachment")
    if not isinstance(attachment, dict):
        return None
    kind = text_of(attachment.get("type"))
    rendered = row.get("rendered")
    if isinstance(rendered, list) and rendered:
        parts = tuple(part for item in rendered if isinstance(item, dict) for part in builder.parts(item.get("content")))
        if row.get("renderedBesideToolResult") is not True:
            parts = tuple(msgspec.structs.replace(part, glued=True) for part in parts)
        return ParsedEntry(role=Role.USER, kind=Kind.REMINDER, parts=parts, meta=True, annex={"attachment": kind[:60]})
    if kind.startswith(_UNSENT_ATTACHMENTS):
        return None
    if kind == "queued_command":
        # A person's words, typed while the agent worked: older versions sent them without saying how.
        parts = builder.parts(attachment.get("prompt"))
        return ParsedEntry(role=Role.USER, kind=Kind.MESSAGE, parts=parts) if parts else None
    text = _attachment_text(attachment)
    if kind in _SENT_ATTACHMENTS and text:
        parts = (builder.text_part(PartKind.TEXT, text, name=kind),)
        return ParsedEntry(role=Role.USER, kind=Kind.ATTACHMENT, parts=parts, meta=True, annex={"attachment": kind})
    if kind.startswith("hook_") and text:
        return ParsedEntry(role=Role.NOTICE, kind=Kind.OTHER, parts=(builder.text_part(PartKind.TEXT, text, name=kind[:60]),))
    return None


def _attachment_text(attachment: dict[str, Any]) -> str:
    told = ("content", "snippet", "stderr", "blockingError", "addedLines", "addedBlocks")
    content = next((attachment[name] for name in told if attachment.get(name)), None)
    while isinstance(content, dict):
        content = content.get("content") or content.get("file") or content.get("blockingError")
    if isinstance(content, list):
        content = "\n".join(item if isinstance(item, str) else json_text(item) for item in content)
    name = text_of(attachment.get("displayPath") or attachment.get("filename") or attachment.get("path"))
    text = text_of(content)
    return f"{name}\n{text}" if name and text else text


def usage_of(usage: Any) -> Usage | None:
    """What a provider measured, or `None` when it measured nothing."""
    if not isinstance(usage, dict):
        return None
    cache_write = _count(usage.get("cache_creation_input_tokens"))
    nested = usage.get("cache_creation")
    if not cache_write and isinstance(nested, dict):  # some versions leave the flat field at 0
        cache_write = sum(_count(value) for value in nested.values())
    counts = Usage(
        input=_count(usage.get("input_tokens")),
        cache_read=_count(usage.get("cache_read_input_tokens")),
        cache_write=cache_write,
        output=_count(usage.get("output_tokens")),
    )
    return counts if counts.prompt or counts.output else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def result_facts(row: dict[str, Any], error_text: str) -> dict[str, object]:
    """What `toolUseResult` says beside the result itself: it repeats the content, so only small facts are taken."""
    facts: dict[str, object] = {}
    if match := _EXIT_CODE.match(error_text):
        facts["exit_status"] = int(match[1][:6])
    told = row.get("toolUseResult")
    if not isinstance(told, dict):
        return facts
    facts["duration_ms"] = told.get("totalDurationMs") or told.get("durationMs")
    facts["interrupted"] = told.get("interrupted") or None
    facts["agent_id"] = told.get("agentId")
    facts["file"] = told.get("filePath") or (told["file"].get("filePath") if isinstance(told.get("file"), dict) else None)
    facts["persisted_output"] = told.get("persistedOutputPath")
    facts["patch"] = told.get("structuredPatch") or None
    return _small(facts)


def _small(facts: dict[str, object]) -> dict[str, object]:
    """The facts that are set and short enough to stand beside an entry."""
    return {
        name: value
        for name, value in facts.items()
        if value is not None and (isinstance(value, bool | int | float) or len(json_text(value)) <= MAX_ANNEX_BYTES)
    }


def first_text(parts: tuple[Part, ...]) -> str:
    """The first text part's text, or an empty string."""
    return next((part.text for part in parts if part.kind is PartKind.TEXT), "")
