"""Facts of tool calls and results: one module per agent's tools, and a general one that goes by argument names.

To teach the engine another agent's tools, add a module with `call_facts` and `result_facts` and name it in `_KNOWN`.
"""

import re
from typing import Protocol

from sessions_app.engine.extractors import claude_code, codex, generic
from sessions_app.engine.extractors.base import Arguments, CallFacts, FileAction, ResultFacts, Todo, TodoStatus, one_line
from sessions_app.engine.foreign_json import NotJson, decode


class Extractor(Protocol):
    """One agent's tools. Both answer None for what they do not know."""

    def call_facts(self, name: str, arguments: Arguments) -> CallFacts | None: ...
    def result_facts(self, name: str, text: str, *, is_error: bool) -> ResultFacts | None: ...


_KNOWN: tuple[Extractor, ...] = (claude_code, codex)
_SHORT_ARGUMENT = re.compile(
    r'"(file_path|path|notebook_path|command|cmd|url|query|pattern|description|subject)"\s*:\s*("(?:[^"\\]|\\.){1,2000}")'
)


def decode_arguments(text: str) -> Arguments:
    """The arguments of a call from its JSON text. Of a text that was shortened, those that stand in it whole."""
    try:
        decoded = decode(text)
    except NotJson:
        found: dict[str, object] = {}
        for match in _SHORT_ARGUMENT.finditer(text):
            try:
                found.setdefault(match.group(1), decode(match.group(2)))
            except NotJson:
                continue
        return found
    return decoded if isinstance(decoded, dict) else {}


def call_facts(name: str, text: str) -> CallFacts:
    """What a call does. `text` is the JSON of its arguments. Never raises."""
    arguments = decode_arguments(text)
    for agent in _KNOWN:
        if (facts := agent.call_facts(name, arguments)) is not None:
            return facts
    return generic.call_facts(name, arguments)


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts:
    """How a call of the tool `name` ended. Never raises."""
    for agent in _KNOWN:
        if (facts := agent.result_facts(name, text, is_error=is_error)) is not None:
            return facts
    return generic.result_facts(text, is_error=is_error)


__all__ = ["CallFacts", "FileAction", "ResultFacts", "Todo", "TodoStatus", "call_facts", "decode_arguments", "one_line", "result_facts"]
