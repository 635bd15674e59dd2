"""Content blocks of Anthropic's messages that only its own interface uses, as parts."""

from typing import Any

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind
from sessions_app.readers.claude_code_parts import PartBuilder, json_text, text_of

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result", "tool_search_tool_result", "mcp_tool_result", "advisor_tool_result",
    },
)  # fmt: skip
_AS_JSON = frozenset({"container_upload", "tool_reference", "fallback", "advisor_message"})


class AnthropicParts(PartBuilder):
    """Turns blocks into parts; takes what compactions left."""

    def __init__(self, tool_names: dict[str, str]) -> None:
        super().__init__(tool_names)
        self.summary: str | None = None  # of the last compaction block that has one
        self.failed_compactions = 0

    def _block(self, block: dict[str, Any]) -> list[Part]:
        kind = text_of(block.get("type"))
        if kind == "compaction":
            return self._compaction(block)
        if kind in _SERVER_CALLS:
            return [self._call(block)]
        if kind in _SERVER_RESULTS:
            return self._server_result(block)
        if kind == "search_result":
            return [self.text_part(PartKind.TEXT, _search_result(block), name=kind)]
        if kind in {"image", "document"} and (told := _outside(block)):
            return [self.text_part(PartKind.TEXT, told, name=kind)]
        if kind in _AS_JSON:
            return [self.text_part(PartKind.TEXT, json_text(block), name=kind)]
        return super()._block(block)

    def _compaction(self, block: dict[str, Any]) -> list[Part]:
        content = block.get("content")
        if isinstance(content, list):
            content = "\n".join(text_of(item.get("text")) for item in content if isinstance(item, dict))
        if not isinstance(content, str):
            self.failed_compactions += 1
            return []
        self.summary = content
        return [self.text_part(PartKind.TEXT, content, name="compaction")]

    def _result(self, block: dict[str, Any]) -> list[Part]:
        content = block.get("content")
        if isinstance(content, list):
            block = {**block, "content": [(_outside(item) or item) if isinstance(item, dict) else item for item in content]}
        return super()._result(block)

    def _server_result(self, block: dict[str, Any]) -> list[Part]:
        content = block.get("content")
        body = content if isinstance(content, dict) else {}
        is_error = text_of(body.get("type")).endswith("_error") or bool(body.get("return_code")) or block.get("is_error") is True
        items = content if isinstance(content, list) else [content]
        found = self._result({"tool_use_id": block.get("tool_use_id"), "content": [_told(item) for item in items], "is_error": is_error})
        return [msgspec.structs.replace(found[0], name=found[0].name or text_of(block.get("type"))), *found[1:]]


def _told(item: Any) -> Any:
    """A found page by its title and address; output as its text; everything else as it is."""
    if not isinstance(item, dict):
        return item
    if item.get("type") == "web_search_result":
        return f"{text_of(item.get('title'))}\n{text_of(item.get('url'))}"
    if "stdout" in item or "stderr" in item:
        return "\n".join(text for text in (text_of(item.get("stdout")), text_of(item.get("stderr"))) if text)
    return item


def _search_result(block: dict[str, Any]) -> str:
    content = block.get("content")
    texts = [text_of(item.get("text")) for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    return "\n".join(text for text in (text_of(block.get("title")), text_of(block.get("source")), *texts) if text)


def _outside(block: dict[str, Any]) -> str:
    """The text that stands for a block whose content is no bytes of its own: an address (never fetched), or texts."""
    kind, source = text_of(block.get("type")), block.get("source")
    if kind == "search_result":
        return _search_result(block)
    if kind not in {"image", "document"} or not isinstance(source, dict) or isinstance(source.get("data"), str):
        return ""
    content = source.get("content")
    if isinstance(content, list):
        content = "\n".join(text_of(item.get("text")) for item in content if isinstance(item, dict))
    return text_of(content) or f"[{kind} at {text_of(source.get('url')) or text_of(source.get('file_id'))}]"
