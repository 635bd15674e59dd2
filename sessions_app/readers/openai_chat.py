"""The reader of OpenAI's chat messages: a list, a request with its `messages`, or JSON Lines of either."""

from collections.abc import Callable
from typing import Any, BinaryIO

from sessions_app.engine.entries import Part, Usage
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.chat_detect import ChatFormat, format_of, message_of
from sessions_app.readers.chat_reading import ChatReading, Heard
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.openai_chat_parts import OpenAIParts

_RESULT_ROLES = frozenset({"tool", "function"})


class OpenAIChatReader:
    """Reads conversations in the form of OpenAI's Chat Completions. Plain texts without any sign of their maker count as this form."""

    name = ChatFormat.OPENAI.value
    version = 1
    system_key = ""

    def sniff(self, head: bytes) -> bool:
        """Whether the first bytes of a source are in this format. Never raises."""
        return format_of(head) is ChatFormat.OPENAI

    def read(self, source: BinaryIO, *, path: str = "", cancelled: Callable[[], bool] = lambda: False) -> ChatReading:
        """Starts one pass over a seekable source."""
        return ChatReading(self, source, path, cancelled)

    def hear(self, value: dict[str, Any], tool_names: dict[str, str]) -> Heard:
        """What a message says. `tool_names` maps the ids of calls still without a result to their tools."""
        value = message_of(value)
        builder = OpenAIParts(tool_names)
        role = text_of(value.get("role"))
        entry: ParsedEntry | None = None
        if role in _RESULT_ROLES:
            entry = ParsedEntry(role=Role.TOOL, kind=Kind.RESULT, parts=builder.result(value, _answered_call(value, tool_names)))
        elif role == "assistant":
            entry = _assistant(value, builder)
        elif role in {"system", "developer", "user"} and (parts := builder.content(value.get("content"))):
            entry = ParsedEntry(role=Role.USER if role == "user" else Role.SYSTEM, kind=Kind.MESSAGE, parts=parts)
        if entry is not None:
            entry.blobs = builder.blobs
            entry.annex |= {key: said[:200] for key in ("name",) if role == "user" and (said := text_of(value.get(key)))}
        return Heard(entry=entry, unknown_blocks=builder.unknown_blocks)

    def usage(self, told: Any) -> Usage | None:
        """What a call took; `prompt_tokens` includes what came from the cache."""
        if not isinstance(told, dict):
            return None
        details = told.get("prompt_tokens_details")
        prompt = _count(told.get("prompt_tokens"))
        cached = min(prompt, _count(details.get("cached_tokens"))) if isinstance(details, dict) else 0
        output = _count(told.get("completion_tokens"))
        return Usage(input=prompt - cached, cache_read=cached, output=output) if prompt or output else None


def _answered_call(value: dict[str, Any], tool_names: dict[str, str]) -> str:
    """The call that a result answers: the one that it names, else the first open one of its tool, or of any."""
    if call_id := text_of(value.get("tool_call_id")):
        return call_id[:200]
    name = text_of(value.get("name"))
    return next((call_id for call_id, tool in tool_names.items() if not name or tool == name), "")


def _assistant(value: dict[str, Any], builder: OpenAIParts) -> ParsedEntry | None:
    parts: list[Part] = []
    if reasoning := text_of(value.get("reasoning_content")) or text_of(value.get("reasoning")):
        parts.append(builder.text_part(PartKind.THINKING, reasoning))
    parts += builder.content(value.get("content"))
    if refusal := text_of(value.get("refusal")):
        parts.append(builder.text_part(PartKind.TEXT, refusal, name="refusal"))
    audio = value.get("audio")
    if isinstance(audio, dict) and (transcript := text_of(audio.get("transcript"))):
        parts.append(builder.text_part(PartKind.TEXT, transcript, name="audio"))
    calls = builder.calls(value)
    if not parts and not calls:
        return None
    kinds = {part.kind for part in parts}
    kind = Kind.CALL if calls else Kind.THINKING if kinds == {PartKind.THINKING} else Kind.MESSAGE
    return ParsedEntry(role=Role.ASSISTANT, kind=kind, parts=(*parts, *calls))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
