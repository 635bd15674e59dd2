"""Which reader reads a source."""

from sessions_app.readers.anthropic_messages import AnthropicMessagesReader
from sessions_app.readers.base import Reader
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader
from sessions_app.readers.openai_chat import OpenAIChatReader

HEAD_BYTES = 1 << 18
"""Bytes of a source's beginning that `reader_for` wants to see."""

MAX_FIRST_LINE = 1 << 24
"""Bytes of a first line that it wants to see to its end where it is longer than that."""

UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

READERS: tuple[Reader, ...] = (ClaudeCodeReader(), CodexReader(), AnthropicMessagesReader(), OpenAIChatReader())


def reader_for(head: bytes) -> Reader | None:
    """The first reader that knows the format of these first bytes, or `None`."""
    if head.startswith(UTF_16_MARKS):
        return None  # its ASCII alone would come through
    return next((reader for reader in READERS if reader.sniff(head)), None)


def known_formats() -> str:
    """The names of all formats, for messages to people."""
    return ", ".join(reader.name for reader in READERS)
