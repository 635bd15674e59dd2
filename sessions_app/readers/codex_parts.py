"""Content of Codex's items as parts: texts, images, reasoning, calls and what they returned."""

import contextlib
import re
from typing import Any

import msgspec
import orjson

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind
from sessions_app.readers.claude_code_parts import Blobs, PartBuilder, json_text, text_of

TEXT_ITEMS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"})
_DATA_URL = re.compile(r"data:[\w/+.-]*;base64,")
_EXITED = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?(?:Process exited with code|Exit code:) (-?\d{1,6})\b")
_WALL_TIME = re.compile(r"^Wall time: ([\d.]{1,12}) seconds$", re.MULTILINE)
_METADATA = re.compile(r'"metadata":\s*\{"exit_code":\s*(-?\d{1,6}),\s*"duration_seconds":\s*([\d.]{1,12})\}\}\s*\Z')
_FAILED = re.compile(
    r"\A(?:Wall time: .*\n)?(?:failed in sandbox|execution error|exec_command failed|apply_patch verification failed|unsupported call"
    r"|failed to parse function|patch rejected by user|rejected by user|aborted|err: )",
    re.IGNORECASE,
)


class CodexParts:
    """Turns items into parts; collects their blobs and the content types that it does not know."""

    def __init__(self, tool_names: dict[str, str]) -> None:
        self._builder = PartBuilder(tool_names)

    @property
    def blobs(self) -> Blobs:
        return self._builder.blobs

    @property
    def unknown(self) -> list[str]:
        return self._builder.unknown_blocks

    def text(self, text: str, *, name: str = "", kind: PartKind = PartKind.TEXT) -> Part:
        """A part with this text; a long one is moved into a blob."""
        return self._builder.text_part(kind, text, name=name)

    def content(self, content: Any, *, name: str = "") -> tuple[Part, ...]:
        """Parts of a message's `content`: a list of items, one item, or a string. Anything else gives none."""
        found: list[Part] = []
        for item in content if isinstance(content, list) else [content]:
            if isinstance(item, str):
                found.append(self.text(item, name=name))
            elif isinstance(item, dict):
                found += self._item(item, name)
        return tuple(found)

    def reasoning(self, item: dict[str, Any]) -> tuple[Part, ...]:
        """What is readable of a reasoning item, and its ciphertext where there is one."""
        said = [text for part in (item.get("summary"), item.get("content")) for text in texts_of(part) if text]
        parts = [self.text("\n\n".join(said), kind=PartKind.THINKING)] if said else []
        if data := text_of(item.get("encrypted_content")):
            parts.append(ciphertext(data))
        return tuple(parts)

    def call(self, name: str, call_id: str, arguments: Any) -> Part:
        """A call. Arguments that are no JSON object (a patch, a script) become the `input` of one."""
        if call_id:
            self._builder.tool_names[call_id] = name
        return self._builder.text_part(PartKind.CALL, _arguments(arguments), name=name, call_id=call_id)

    def result(self, call_id: str, output: Any, *, name: str = "") -> tuple[tuple[Part, ...], dict[str, object]]:
        """(the result and its images, small facts about it)."""
        texts, media, succeeded = self._output(output)
        text = "\n".join(texts)
        facts, is_error = _status(text)
        name = self._builder.tool_names.pop(call_id, "") or name
        part = self._builder.text_part(
            PartKind.RESULT, text, name=name, call_id=call_id, is_error=not succeeded if succeeded is not None else is_error
        )
        return (part, *(msgspec.structs.replace(item, call_id=call_id) for item in media)), facts

    def image(self, data: str) -> Part:
        """An image from base64 text."""
        (part,) = self._builder.parts([{"type": "image", "source": {"type": "base64", "data": data}}])
        return part

    def _output(self, output: Any) -> tuple[list[str], list[Part], bool | None]:
        succeeded = None
        if isinstance(output, dict) and "type" not in output:
            succeeded = output["success"] if isinstance(output.get("success"), bool) else None
            output = output.get("content") or output.get("content_items") or output.get("body") or ""
        texts: list[str] = []
        media: list[Part] = []
        for item in output if isinstance(output, list) else [output]:
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict) and item.get("type") in ("input_image", "image"):
                media += self._item(item, "")
            elif isinstance(item, dict) and "text" in item:
                texts.append(text_of(item["text"]))
            elif item is not None:
                texts.append(json_text(item))
        return texts, media, succeeded

    def _item(self, item: dict[str, Any], name: str) -> list[Part]:
        kind = item.get("type")
        if isinstance(kind, str) and kind in TEXT_ITEMS:
            return [self.text(text_of(item.get("text") or item.get("refusal")), name=name)]
        if kind in ("input_image", "image"):
            url = item.get("image_url")
            url = text_of(url.get("url") if isinstance(url, dict) else url)
            if match := _DATA_URL.match(url):
                return [self.image(url[match.end() :])]
            return [Part(kind=PartKind.IMAGE, name=url[:200])]
        if kind == "encrypted_content":
            return [ciphertext(text_of(item.get("encrypted_content")))]
        kind = kind if isinstance(kind, str) else "(no type)"
        self.unknown.append(kind[:60])
        return [self.text(json_text(item), name=kind[:60])]


def texts_of(content: Any) -> list[str]:
    """The texts of a list of content items, in order; of a string, that string."""
    if isinstance(content, str):
        return [content]
    items = content if isinstance(content, list) else []
    return [item if isinstance(item, str) else text_of(item.get("text")) for item in items if isinstance(item, str | dict)]


def ciphertext(data: str) -> Part:
    """Reasoning that only its provider can read; of the data, only the size is kept here."""
    return Part(kind=PartKind.THINKING, encrypted=True, chars=len(data), size_bytes=len(data))


def _arguments(arguments: Any) -> str:
    if not isinstance(arguments, str):
        return json_text(arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments})
    try:
        told = orjson.loads(arguments)
    except ValueError:
        told = None
    return arguments if isinstance(told, dict) else json_text({"input": arguments} if arguments else {})


def _status(text: str) -> tuple[dict[str, object], bool]:
    """Exit status and duration where Codex wrote them before or behind an output, and whether the call failed."""
    head = text[:400]
    facts: dict[str, object] = {}
    code = _EXITED.match(head)
    wall = _WALL_TIME.search(head)
    if text.startswith("{") and (metadata := _METADATA.search(text[-200:])):
        code, seconds = metadata, metadata[2]
    else:
        seconds = wall[1] if wall else ""
    if code:
        facts["exit_status"] = int(code[1])
    with contextlib.suppress(ValueError):
        facts["duration_ms"] = round(float(seconds) * 1000)
    return facts, (code is not None and code[1] != "0") or _FAILED.match(head) is not None
