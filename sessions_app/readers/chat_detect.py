"""Which of the chat formats a source is in, told by its first bytes: the two share roles, containers and much of their shape."""

import hashlib
import io
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from sessions_app.readers.base import SourceIdentity
from sessions_app.readers.chat_stretches import Envelope, iter_stretches
from sessions_app.readers.json_scan import Place


class ChatFormat(StrEnum):
    """A format of chat messages, by the name of its reader."""

    OPENAI = "openai-chat"
    ANTHROPIC = "anthropic-messages"


ROLES = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
_BODY = frozenset({"content", "tool_calls", "function_call", "refusal"})
_MESSAGE_KEYS = _BODY | {
    "role", "name", "tool_call_id", "audio", "annotations", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "weight", "id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "context_management",
    "created", "created_at", "timestamp", "metadata", "cache_control", "provider_specific_fields", "logprobs", "finish_reason",
}  # fmt: skip
_REQUEST_KEYS = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "functions", "function_call", "temperature", "top_p", "top_k", "n", "stream",
        "stream_options", "stop", "stop_sequences", "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty",
        "logit_bias", "logprobs", "top_logprobs", "user", "seed", "response_format", "parallel_tool_calls", "store", "metadata",
        "service_tier", "reasoning_effort", "reasoning", "modalities", "audio", "prediction", "verbosity", "prompt_cache_key",
        "prompt_cache_retention", "safety_identifier", "web_search_options", "thinking", "context_management", "betas", "container",
        "mcp_servers", "anthropic_version", "anthropic_beta", "output_config", "output_format", "inference_geo", "cache_control", "speed",
        "fallbacks", "extra_body", "id", "title", "name", "usage", "created", "created_at", "timestamp", "task_id", "weight", "prompt_id",
        "source", "split", "category", "label", "description", "response", "kwargs", "context_window", "cost", "latency_sec", "latency_ms",
        "status", "method", "url", "path", "custom_id",
    },
)  # fmt: skip
_ANSWER_KEYS = frozenset(
    {
        "id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "timestamp", "provider",
        "prompt_filter_results", "x_groq", "stats",
    },
)  # fmt: skip
_OTHER_KEYS = {"traj": frozenset({"traj", "task_id", "reward", "info", "trial", "error"}), "loglines": frozenset({"loglines"})}
_OPENAI_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "annotations", "weight"})
_OPENAI_ROLES = frozenset({"developer", "tool", "function"})
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "refusal", "file"})
_ANTHROPIC_KEYS = frozenset(
    {"system", "stop_sequences", "top_k", "thinking", "anthropic_version", "anthropic_beta", "betas", "mcp_servers"}
)
_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result", "server_tool_use", "mcp_tool_use",
        "compaction", "container_upload",
    },
)  # fmt: skip
_FIRST_MESSAGE = re.compile(rb'\s*(?:\[\s*)?\{\s*"role"\s*:\s*"(?:developer|system|user|assistant|tool|function)"')


def message_of(value: dict[str, Any]) -> dict[str, Any]:
    """The message of an item: the item itself, what a log line holds, or what a model answered."""
    if "role" in value:
        return value
    inner = value.get("message")
    if isinstance(inner, dict):
        return inner
    choices = value.get("choices")
    chosen = choices[0] if isinstance(choices, list) and choices else None
    inner = chosen.get("message") if isinstance(chosen, dict) else None
    return inner if isinstance(inner, dict) else value


def format_of(head: bytes) -> ChatFormat | None:
    """The format of a source, or `None` where its first bytes are of neither. Never raises."""
    if b'"role"' not in head and b'"loglines"' not in head:
        return None
    envelopes: list[Envelope] = []
    messages: list[dict[str, Any]] = []
    for place, piece, _ in iter_stretches(io.BytesIO(head)):
        if piece.value is None:
            continue
        if place is Place.ITEM:
            is_logged = bool(envelopes) and "loglines" in envelopes[-1]
            if not is_logged and not _is_message(piece.value):
                return None
            messages.append(piece.value)
            continue
        if place is Place.TAIL and envelopes:
            envelopes[-1] |= piece.value
        else:
            envelopes.append(piece.value)
        if not _is_envelope(envelopes[-1]):
            return None
    # A first message that is longer than the head still shows its beginning.
    return _told_by(messages, envelopes) if messages or envelopes or _FIRST_MESSAGE.match(head) else None


def _is_message(message: dict[str, Any]) -> bool:
    if "choices" in message:
        answer = message_of(message)
        return answer is not message and message.keys() <= _ANSWER_KEYS and answer.get("role") in ROLES
    role = message.get("role")
    return isinstance(role, str) and role in ROLES and not _BODY.isdisjoint(message) and message.keys() <= _MESSAGE_KEYS


def _is_envelope(envelope: Envelope) -> bool:
    return envelope.keys() <= next((keys for name, keys in _OTHER_KEYS.items() if name in envelope), _REQUEST_KEYS)


def _told_by(messages: list[dict[str, Any]], envelopes: list[Envelope]) -> ChatFormat:
    """Plain texts alone are taken for OpenAI's, whose form is the common one."""
    if any("loglines" in envelope for envelope in envelopes):
        return ChatFormat.ANTHROPIC
    answers = [answer for envelope in envelopes if isinstance(answer := envelope.get("response"), dict)]
    if any("choices" in answer for answer in answers) or any(_speaks_openai(message) for message in messages):
        return ChatFormat.OPENAI
    if any(not _ANTHROPIC_KEYS.isdisjoint(envelope) for envelope in envelopes):
        return ChatFormat.ANTHROPIC
    is_anthropic = any(
        message.get("type") == "message" or not _ANTHROPIC_BLOCKS.isdisjoint(_types(message)) for message in (*messages, *answers)
    )
    return ChatFormat.ANTHROPIC if is_anthropic else ChatFormat.OPENAI


def _speaks_openai(message: dict[str, Any]) -> bool:
    return (
        "choices" in message
        or message.get("role") in _OPENAI_ROLES
        or not _OPENAI_KEYS.isdisjoint(message)
        or not _OPENAI_PARTS.isdisjoint(_types(message))
    )


def _types(message: dict[str, Any]) -> set[str]:
    content = message.get("content")
    blocks: Iterable[Any] = content if isinstance(content, list) else ()
    return {block["type"] for block in blocks if isinstance(block, dict) and isinstance(block.get("type"), str)}


def identify(head: bytes, path: str) -> SourceIdentity:
    """A name for a source that has none of its own: from its file's name and folder, and what was first asked in it."""
    asked = b""
    for place, piece, _ in iter_stretches(io.BytesIO(head)):
        if place is Place.ITEM and piece.value is not None and message_of(piece.value).get("role") == "user":
            asked = piece.raw.strip(b", \t\r\n")
            break
    file = PurePath(path)
    digest = hashlib.sha256(str(file.parent).encode(errors="replace") + b"\n" + asked).hexdigest()[:12]
    return SourceIdentity(session_id=f"{file.stem[:100] or 'unnamed'}@{digest}")
