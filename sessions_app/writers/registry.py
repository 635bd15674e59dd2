"""The agents whose sessions can be continued."""

from sessions_app.writers.base import Writer
from sessions_app.writers.claude_code import ClaudeCodeWriter
from sessions_app.writers.codex import CodexWriter

_WRITERS: dict[str, Writer] = {writer.agent: writer for writer in (ClaudeCodeWriter(), CodexWriter())}


def writer_for(agent: str) -> Writer | None:
    """The writer of an agent's format, or `None` when there is none."""
    return _WRITERS.get(agent)
