"""Content of OpenAI's chat messages as parts."""

import re
from typing import Any

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.foreign_json import NotJson, decode
from sessions_app.engine.terms import PartKind
from sessions_app.readers.claude_code_parts import PartBuilder, json_text, text_of

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)


class OpenAIParts(PartBuilder):
    """Turns content, refusals and calls into parts. Addresses of images stay text: nothing is ever fetched."""

    def content(self, content: Any) -> tuple[Part, ...]:
        """Parts of a message's `content`: a string, or a list of parts. Anything else gives none."""
        return self.parts(content)

    def calls(self, message: dict[str, Any]) -> list[Part]:
        """The calls of an assistant's message, those of the old form included."""
        told = message.get("tool_calls")
        calls = [call for call in told if isinstance(call, dict)] if isinstance(told, list) else []
        found = [self._tool_call(call) for call in calls]
        if isinstance(message.get("function_call"), dict):
            found.append(self._tool_call({"function": message["function_call"]}))
        return found

    def result(self, message: dict[str, Any], call_id: str) -> tuple[Part, ...]:
        """The result that a `tool` or `function` message tells; its images follow it."""
        parts = self.parts(message.get("content"))
        # Put together again: a long text lies in a blob by now, and the result has one of its own.
        texts = [self.blobs[part.blob][1].decode() if part.chars else part.text for part in parts if part.kind is PartKind.TEXT]
        for part in parts:
            if part.chars:
                self.blobs.pop(part.blob, None)
        name = text_of(message.get("name")) or self.tool_names.get(call_id, "")
        self.tool_names.pop(call_id, None)
        media = [msgspec.structs.replace(part, call_id=call_id) for part in parts if part.kind is not PartKind.TEXT]
        return (self.text_part(PartKind.RESULT, "\n".join(texts), name=name[:200], call_id=call_id), *media)

    def _tool_call(self, call: dict[str, Any]) -> Part:
        kind = "custom" if isinstance(call.get("custom"), dict) else "function"
        body = call.get(kind)
        body = body if isinstance(body, dict) else {}
        said = body.get("input" if kind == "custom" else "arguments", "")
        name, call_id = text_of(body.get("name"))[:200], text_of(call.get("id"))[:200]
        if call_id:
            self.tool_names[call_id] = name
        return self.text_part(PartKind.CALL, _arguments(said), name=name, call_id=call_id)

    def _block(self, block: dict[str, Any]) -> list[Part]:
        kind = text_of(block.get("type"))
        if kind in {"text", "input_text", "output_text"}:
            return [self.text_part(PartKind.TEXT, text_of(block.get("text")))]
        if kind == "refusal":
            return [self.text_part(PartKind.TEXT, text_of(block.get("refusal")), name="refusal")]
        if kind in {"thinking", "redacted_thinking"}:  # as gateways pass them on
            return super()._block(block)
        body = block.get(kind)
        if kind == "image_url":
            address = body if isinstance(body, str) else text_of(body.get("url")) if isinstance(body, dict) else ""
            return [self._from_address(address, PartKind.IMAGE)]
        if kind == "input_audio" and isinstance(body, dict):
            return [self._media({"source": {"data": text_of(body.get("data"))}}, PartKind.DOCUMENT)]
        if kind == "file" and isinstance(body, dict):
            if data := text_of(body.get("file_data")):
                return [self._from_address(data, PartKind.DOCUMENT)]
            return [self.text_part(PartKind.TEXT, json_text(body), name="file")]
        self.unknown_blocks.append(kind[:60] or "(no type)")
        return [self.text_part(PartKind.TEXT, json_text(block), name=kind[:60])]

    def _from_address(self, address: str, kind: PartKind) -> Part:
        """The media that a `data:` address holds; of any other address only its text."""
        if head := _DATA_URL.match(address):
            return self._media({"source": {"data": address[head.end() :]}}, kind)
        return self.text_part(PartKind.TEXT, f"[{kind.value} at {address}]", name=f"{kind.value} address")


def _arguments(said: Any) -> str:
    """Arguments as JSON text: as they were written if they are JSON, else that text as a JSON string."""
    if not isinstance(said, str):
        return json_text(said)
    try:
        decode(said)
    except NotJson:
        return json_text(said)
    return said
