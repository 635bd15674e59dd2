"""Content blocks of Claude Code's messages as parts, with long texts and images moved into blobs."""

import base64
import binascii
import hashlib
from typing import Any

import msgspec

from sessions_app.engine.entries import INLINE_CHARS, PREVIEW_CHARS, Part
from sessions_app.engine.terms import PartKind
from sessions_app.readers.images import IMAGE_TYPES, identify

KNOWN_BLOCKS = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "tool_reference",
        "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_use", "mcp_tool_result",
    },
)  # fmt: skip
TEXT_TYPE = "text/plain; charset=utf-8"
_ENCODER = msgspec.json.Encoder()

Blobs = dict[str, tuple[str, bytes]]


class PartBuilder:
    """Turns blocks into parts; collects their blobs and the block types that it does not know."""

    def __init__(self, tool_names: dict[str, str]) -> None:
        self.tool_names = tool_names  # call id → tool, of calls still without a result
        self.blobs: Blobs = {}
        self.unknown_blocks: list[str] = []

    def parts(self, content: Any) -> tuple[Part, ...]:
        """Parts of a message's `content`: a string, or a list of blocks. Anything else gives none."""
        if isinstance(content, str):
            return (self.text_part(PartKind.TEXT, content),) if content else ()
        found: list[Part] = []
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict):
                found.extend(self._block(block))
            elif isinstance(block, str):
                found.append(self.text_part(PartKind.TEXT, block))
        return tuple(found)

    def text_part(self, kind: PartKind, text: str, **fields: Any) -> Part:
        """A part with its text inline, or shortened with the whole in a blob."""
        if len(text) <= INLINE_CHARS:
            return Part(kind=kind, text=text, **fields)
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = (TEXT_TYPE, data)
        return Part(kind=kind, text=text[:PREVIEW_CHARS], blob=digest, chars=len(text), **fields)

    def _block(self, block: dict[str, Any]) -> list[Part]:
        said = block.get("type")
        kind = said if isinstance(said, str) else json_text(said)
        if kind == "text":
            return [self.text_part(PartKind.TEXT, text_of(block.get("text")))]
        if kind == "tool_use":
            return [self._call(block)]
        if kind == "tool_result":
            return self._result(block)
        if kind == "thinking":
            return [self._thinking(block)]
        if kind == "redacted_thinking":
            return [_ciphertext(text_of(block.get("data")))]
        if kind in {"image", "document"}:
            return [self._media(block, PartKind(kind))]
        if kind not in KNOWN_BLOCKS:
            self.unknown_blocks.append(str(kind)[:60])
        return [self.text_part(PartKind.TEXT, json_text(block), name=str(kind)[:60])]

    def _thinking(self, block: dict[str, Any]) -> Part:
        thinking = text_of(block.get("thinking"))
        if thinking:
            return self.text_part(PartKind.THINKING, thinking)
        return _ciphertext(text_of(block.get("signature")))

    def _call(self, block: dict[str, Any]) -> Part:
        name, call_id = text_of(block.get("name")), text_of(block.get("id"))
        if call_id:
            self.tool_names[call_id] = name
        return self.text_part(PartKind.CALL, json_text(block.get("input", {})), name=name, call_id=call_id)

    def _result(self, block: dict[str, Any]) -> list[Part]:
        call_id = text_of(block.get("tool_use_id"))
        content = block.get("content")
        texts: list[str] = []
        media: list[Part] = []
        for item in content if isinstance(content, list) else [content]:
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict) and item.get("type") == "text":
                texts.append(text_of(item.get("text")))
            elif isinstance(item, dict) and item.get("type") in ("image", "document"):  # a tuple: what is asked for may be a list
                media.append(msgspec.structs.replace(self._media(item, PartKind(item["type"])), call_id=call_id))
            elif item is not None:
                texts.append(json_text(item))
        result = self.text_part(
            PartKind.RESULT,
            "\n".join(texts),
            name=self.tool_names.pop(call_id, ""),
            call_id=call_id,
            is_error=block.get("is_error") is True,
        )
        return [result, *media]

    def _media(self, block: dict[str, Any], kind: PartKind) -> Part:
        source = block.get("source")
        source = source if isinstance(source, dict) else {}
        data = source.get("data")
        if not isinstance(data, str):
            return Part(kind=kind, name=text_of(source.get("url"))[:200])
        if source.get("type") == "text":
            return self.text_part(kind, data, media_type=TEXT_TYPE)
        try:
            raw = base64.b64decode(data)
        except (binascii.Error, ValueError):
            return Part(kind=kind, size_bytes=len(data))
        media_type, width, height = identify(raw)
        if kind is PartKind.DOCUMENT and raw.startswith(b"%PDF-"):
            media_type = "application/pdf"
        if kind is PartKind.IMAGE and media_type not in IMAGE_TYPES:
            return Part(kind=kind, size_bytes=len(raw), media_type=media_type)
        digest = hashlib.sha256(raw).hexdigest()
        self.blobs[digest] = (media_type, raw)
        return Part(kind=kind, blob=digest, media_type=media_type, size_bytes=len(raw), width=width, height=height)


def _ciphertext(data: str) -> Part:
    return Part(kind=PartKind.THINKING, encrypted=True, chars=len(data), size_bytes=len(data))


def json_text(value: Any) -> str:
    """Compact JSON in the order of the source."""
    return _ENCODER.encode(value).decode()


def text_of(value: Any) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
