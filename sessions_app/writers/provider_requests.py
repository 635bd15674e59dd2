"""A model view as the messages of a provider's request: OpenAI's chat completions, or Anthropic's messages."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sessions_app.engine.entries import Part
from sessions_app.engine.messages import ViewMessage, sent_parts
from sessions_app.engine.terms import PartKind, Role

Message = dict[str, Any]
LoadBlob = Callable[[str], bytes]
"""The bytes of an image or a document, by the name of its blob. Raises `LookupError`."""


def openai_messages(messages: Iterable[ViewMessage], load: LoadBlob) -> Iterator[Message]:
    """Messages of `POST /v1/chat/completions`. Thinking is left out: that interface takes none back.

    A tool's message holds text alone, so images of results follow in a message of the user.
    """
    for message in messages:
        parts = sent_parts(message)
        if message.role is Role.SYSTEM:
            yield {"role": "system", "content": _joined(parts)}
        elif message.role is Role.ASSISTANT:
            yield _openai_said(parts)
        else:
            yield from _openai_answer(parts, load)


def anthropic_messages(messages: Iterable[ViewMessage], load: LoadBlob) -> Iterator[Message]:
    """Messages of `POST /v1/messages`, and first the `system` text as a message of that role, where there is one.

    Thinking is left out: without the signature that its provider gave it, it would be refused.
    """
    for message in messages:
        parts = sent_parts(message)
        if message.role is Role.SYSTEM:
            yield {"role": "system", "content": _joined(parts)}
            continue
        blocks = list(_anthropic_blocks(parts, load))
        if blocks:
            yield {"role": message.role.value, "content": blocks}


def _joined(parts: Iterable[Part]) -> str:
    return "\n\n".join(part.text for part in parts if part.kind is PartKind.TEXT)


def _openai_said(parts: tuple[Part, ...]) -> Message:
    calls = [
        {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": part.text or "{}"}}
        for part in parts
        if part.kind is PartKind.CALL
    ]
    said: Message = {"role": "assistant", "content": _joined(parts) or None}
    return said | {"tool_calls": calls} if calls else said


def _openai_answer(parts: tuple[Part, ...], load: LoadBlob) -> Iterator[Message]:
    content: list[Message] = []
    for part in parts:
        if part.kind is PartKind.RESULT:
            yield {"role": "tool", "tool_call_id": part.call_id, "content": part.text}
        elif part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
            content.append(_openai_media(part, load))
        elif part.text:
            content.append({"type": "text", "text": part.text})
    if not content:
        return
    is_text = all(item["type"] == "text" for item in content)
    yield {"role": "user", "content": content[0]["text"] if is_text and len(content) == 1 else content}


def _openai_media(part: Part, load: LoadBlob) -> Message:
    data = _data(part, load)
    if data is None or part.kind is not PartKind.IMAGE:
        return {"type": "text", "text": _placeholder(part)}
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}


def _anthropic_blocks(parts: tuple[Part, ...], load: LoadBlob) -> Iterator[Message]:
    results: dict[str, Message] = {}
    for part in parts:
        if part.kind is PartKind.CALL:
            yield {"type": "tool_use", "id": part.call_id, "name": part.name, "input": _arguments(part.text)}
        elif part.kind is PartKind.RESULT:
            result: Message = {"type": "tool_result", "tool_use_id": part.call_id, "content": [{"type": "text", "text": part.text}]}
            results[part.call_id] = result
            yield result | {"is_error": True} if part.is_error else result
        elif part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
            block = _anthropic_media(part, load)
            if part.call_id in results:
                results[part.call_id]["content"].append(block)  # the list is that of the block that was given
            else:
                yield block
        elif part.kind is PartKind.TEXT and part.text:
            yield {"type": "text", "text": part.text}


def _anthropic_media(part: Part, load: LoadBlob) -> Message:
    data = _data(part, load)
    if data is None:
        return {"type": "text", "text": _placeholder(part)}
    source = {"type": "base64", "media_type": part.media_type, "data": data}
    return {"type": "image" if part.kind is PartKind.IMAGE else "document", "source": source}


def _arguments(text: str) -> object:
    """A call's arguments as an object: that is what the interface takes."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def _data(part: Part, load: LoadBlob) -> str | None:
    if not part.blob:
        return None
    try:
        return base64.b64encode(load(part.blob)).decode()
    except LookupError:
        return None


def _placeholder(part: Part) -> str:
    return f"[{part.kind.value}: {part.media_type or 'unknown type'}, {part.size_bytes:,} bytes]"
