"""User messages that answer calls and go on with words: results are one entry, what a person wrote behind them another."""

from typing import Any

from sessions_app.readers.chat_detect import message_of
from sessions_app.readers.json_scan import starts_of_items
from sessions_app.readers.lines import Piece


def halves(piece: Piece) -> tuple[Piece, Piece] | None:
    """The message in two, cut before the first block behind its results; `None` where there is nothing to cut.

    Together they are the piece, byte for byte; each has a message of its own as its value.
    """
    value = piece.value or {}
    message = message_of(value)
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list):
        return None
    are_results = [isinstance(block, dict) and block.get("type") == "tool_result" for block in content]
    count = sum(are_results)
    if not 0 < count < len(content) or not all(are_results[:count]):
        return None
    starts = starts_of_items(piece.raw, b'"content"', depth=2 if message is value else 3)
    if len(starts) != len(content):  # blocks that are no objects, or a second list of that name
        return None
    cut = starts[count]
    line = piece.line + piece.raw.count(b"\n", 0, cut)
    words = _with_content(value, content[count:])
    if isinstance(uuid := words.get("uuid"), str):
        words["uuid"] = f"{uuid}-2"
    return (
        piece._replace(raw=piece.raw[:cut], value=_with_content(value, content[:count])),
        Piece(line, piece.offset + cut, piece.raw[cut:], words),
    )


def _with_content(value: dict[str, Any], content: list[Any]) -> dict[str, Any]:
    message = message_of(value)
    return {**value, "content": content} if message is value else {**value, "message": {**message, "content": content}}
