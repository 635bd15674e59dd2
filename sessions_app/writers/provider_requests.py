"""A model view as the messages of a provider's request: OpenAI's chat completions, or Anthropic's messages.

What agents of others wrote down need not be what these interfaces take: a call's id may be too long, of other letters, or used
twice, a name may hold dots, a text nothing but spaces. One such row would have every further request refused, so it is written
as it is taken; what is stored stays as it is.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sessions_app.engine.entries import Part
from sessions_app.engine.messages import ViewMessage, sent_parts
from sessions_app.engine.terms import PartKind, Role

Message = dict[str, Any]
LoadBlob = Callable[[str], bytes]
"""The bytes of an image or a document, by the name of its blob. Raises `LookupError`."""


MAX_ID_CHARS = 40
MAX_NAME_CHARS = 64
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")


class _Calls:
    """What the calls of a request are named by: as they are stored, where that is taken and no other call has the same id."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._latest: dict[str, str] = {}  # stored id → that of its latest call

    def of_call(self, call_id: str) -> str:
        given = call_id
        if not call_id or len(call_id) > MAX_ID_CHARS or call_id in self._given or _NOT_TAKEN.search(call_id):
            given = next(
                name for number in range(len(self._given), 2 * len(self._given) + 2) if (name := f"call_{number}") not in self._given
            )
        self._given.add(given)
        self._latest[call_id] = given
        return given

    def of_result(self, call_id: str) -> str:
        return self._latest.get(call_id, call_id)


def _name(part: Part) -> str:
    return _NOT_TAKEN.sub("_", part.name)[:MAX_NAME_CHARS] or "tool"


def openai_messages(messages: Iterable[ViewMessage], load: LoadBlob) -> Iterator[Message]:
    """Messages of `POST /v1/chat/completions`. Thinking is left out: that interface takes none back.

    A tool's message holds text alone, so images of results follow in a message of the user.
    """
    calls = _Calls()
    for message in messages:
        parts = sent_parts(message)
        if message.role is Role.SYSTEM:
            yield {"role": "system", "content": _joined(parts)}
        elif message.role is Role.ASSISTANT:
            said = _openai_said(parts, calls)
            if len(said) > 1:  # of thinking alone nothing is left
                yield said
        else:
            yield from _openai_answer(parts, load, calls)


def anthropic_messages(messages: Iterable[ViewMessage], load: LoadBlob) -> Iterator[Message]:
    """Messages of `POST /v1/messages`, and first the `system` text as a message of that role, where there is one.

    Thinking is left out: without the signature that its provider gave it, it would be refused.
    """
    calls = _Calls()
    for message in messages:
        parts = sent_parts(message)
        if message.role is Role.SYSTEM:
            yield {"role": "system", "content": _joined(parts)}
            continue
        blocks = list(_anthropic_blocks(parts, load, calls))
        if blocks:
            yield {"role": message.role.value, "content": blocks}


def _joined(parts: Iterable[Part]) -> str:
    return "\n\n".join(part.text for part in parts if part.kind is PartKind.TEXT)


def _openai_said(parts: tuple[Part, ...], calls: _Calls) -> Message:
    """Its role alone where nothing of it is sent."""
    called = [
        {"id": calls.of_call(part.call_id), "type": "function", "function": {"name": _name(part), "arguments": part.text or "{}"}}
        for part in parts
        if part.kind is PartKind.CALL
    ]
    text = _joined(parts)
    said: Message = {"role": "assistant"} | ({"content": text or None} if text or called else {})
    return said | {"tool_calls": called} if called else said


def _openai_answer(parts: tuple[Part, ...], load: LoadBlob, calls: _Calls) -> Iterator[Message]:
    content: list[Message] = []
    for part in parts:
        if part.kind is PartKind.RESULT:
            yield {"role": "tool", "tool_call_id": calls.of_result(part.call_id), "content": part.text}
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


def _anthropic_blocks(parts: tuple[Part, ...], load: LoadBlob, calls: _Calls) -> Iterator[Message]:
    results: dict[str, Message] = {}
    for part in parts:
        if part.kind is PartKind.CALL:
            yield {"type": "tool_use", "id": calls.of_call(part.call_id), "name": _name(part), "input": _arguments(part.text)}
        elif part.kind is PartKind.RESULT:
            said = [{"type": "text", "text": part.text}] if part.text.strip() else []  # an empty text is refused
            result: Message = {"type": "tool_result", "tool_use_id": calls.of_result(part.call_id), "content": said}
            results[part.call_id] = result
            yield result | {"is_error": True} if part.is_error else result
        elif part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
            block = _anthropic_media(part, load)
            if part.call_id in results:
                results[part.call_id]["content"].append(block)  # the list is that of the block that was given
            else:
                yield block
        elif part.kind is PartKind.TEXT and part.text.strip():
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
    except (ValueError, RecursionError):
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
