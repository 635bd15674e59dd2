"""The reader of Anthropic's messages: a request, a list, log lines of a web session, or JSON Lines of messages or requests."""

from collections.abc import Callable
from typing import Any, BinaryIO

from sessions_app.engine.entries import Part, Usage
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.anthropic_messages_parts import AnthropicParts
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.chat_conversation import REMINDER
from sessions_app.readers.chat_detect import ChatFormat, format_of, message_of
from sessions_app.readers.chat_reading import ChatReading, Heard
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_rows import CONTINUED, usage_of


class AnthropicMessagesReader:
    """Reads conversations in the form of Anthropic's Messages, compaction blocks included."""

    name = ChatFormat.ANTHROPIC.value
    version = 1
    system_key = "system"

    def sniff(self, head: bytes) -> bool:
        """Whether the first bytes of a source are in this format. Never raises."""
        return format_of(head) is ChatFormat.ANTHROPIC

    def read(self, source: BinaryIO, *, path: str = "", cancelled: Callable[[], bool] = lambda: False) -> ChatReading:
        """Starts one pass over a seekable source."""
        return ChatReading(self, source, path, cancelled)

    def hear(self, value: dict[str, Any], tool_names: dict[str, str]) -> Heard:
        """What a message says. `tool_names` maps the ids of calls still without a result to their tools."""
        message = message_of(value)
        builder = AnthropicParts(tool_names)
        parts = builder.parts(message.get("content"))
        entry: ParsedEntry | None = None
        match message.get("role"):
            case "assistant":
                entry = _assistant(parts, builder)
            case "user":
                entry = _user(value, parts)
            case "system" if parts:
                entry = ParsedEntry(role=Role.SYSTEM, kind=Kind.MESSAGE, parts=parts)
        summary = builder.summary
        if entry is not None:
            entry.blobs = builder.blobs
            if value.get("isCompactSummary") is True and summary is None:
                summary = "\n\n".join(builder.blobs[part.blob][1].decode() if part.chars else part.text for part in parts)
        return Heard(
            entry=entry,
            unknown_blocks=builder.unknown_blocks,
            summary=summary,
            tokens_before=_summarised_tokens(message) if summary is not None else None,
            failed_compactions=builder.failed_compactions,
        )

    def usage(self, told: Any) -> Usage | None:
        """What a call took: its whole input is what was sent anew, written to the cache and read from it."""
        return usage_of(told)


def _user(value: dict[str, Any], parts: tuple[Part, ...]) -> ParsedEntry | None:
    if not parts:
        return None
    if any(part.kind is PartKind.RESULT for part in parts):
        return ParsedEntry(role=Role.TOOL, kind=Kind.RESULT, parts=parts)
    if all(part.kind is PartKind.TEXT and part.text.startswith(REMINDER) for part in parts):
        return ParsedEntry(role=Role.USER, kind=Kind.REMINDER, parts=parts, meta=True)
    # Claude Code begins its requests with its summary once it has compacted.
    is_summary = value.get("isCompactSummary") is True or parts[0].text.startswith(CONTINUED)
    is_meta = is_summary or value.get("isMeta") is True
    return ParsedEntry(role=Role.USER, kind=Kind.SUMMARY if is_summary else Kind.MESSAGE, parts=parts, meta=is_meta)


def _assistant(parts: tuple[Part, ...], builder: AnthropicParts) -> ParsedEntry | None:
    if not parts:
        if not builder.failed_compactions:
            return None
        text = builder.text_part(PartKind.TEXT, "A compaction failed: the conversation went on as it was.")
        return ParsedEntry(role=Role.NOTICE, kind=Kind.ERROR, parts=(text,))
    answered = {part.call_id for part in parts if part.kind is PartKind.RESULT}
    kinds = {part.kind for part in parts}
    kind = Kind.MESSAGE
    if any(part.kind is PartKind.CALL and part.call_id not in answered for part in parts):
        kind = Kind.CALL
    elif kinds == {PartKind.THINKING}:
        kind = Kind.THINKING
    elif builder.summary is not None and len(parts) == 1:
        kind = Kind.SUMMARY
    return ParsedEntry(role=Role.ASSISTANT, kind=kind, parts=parts)


def _summarised_tokens(message: dict[str, Any]) -> int | None:
    """The input of the call that made a summary, where the usage tells it apart from the answer's."""
    usage = message.get("usage")
    iterations = usage.get("iterations") if isinstance(usage, dict) else None
    for iteration in iterations if isinstance(iterations, list) else ():
        if isinstance(iteration, dict) and text_of(iteration.get("type")) == "compaction":
            told = usage_of(iteration)
            return told.prompt if told else None
    return None
