"""Facts of tool calls and results: one module per agent's tools, and a general one that goes by argument names.

To teach the engine another agent's tools, add a module with `NAMES`, `call_facts` and `result_facts` and put it into `_KNOWN`.
Several agents have tools of one name (`read`, `edit`, `bash`): each looks at the arguments and at the text, and the first that knows
them decides.
"""

import re
from typing import Protocol

from sessions_app.engine.extractors import claude_code, codex, gemini, generic, opencode, openhands, openworker, pi
from sessions_app.engine.extractors.base import OK, Arguments, CallFacts, FileAction, ResultFacts, Todo, TodoStatus, one_line
from sessions_app.engine.foreign_json import NotJson, decode


class Extractor(Protocol):
    """One agent's tools: their names, and what is known of them. Both functions answer None for what they do not know.

    `result_facts` is asked for tools that nobody names as well: agents refuse and interrupt those of others in the same words.
    """

    @property
    def NAMES(self) -> frozenset[str]: ...  # noqa: N802  a constant of the module
    def call_facts(self, name: str, arguments: Arguments) -> CallFacts | None: ...
    def result_facts(self, name: str, text: str, *, is_error: bool) -> ResultFacts | None: ...


_KNOWN: tuple[Extractor, ...] = (claude_code, opencode, pi, gemini, openhands, openworker, codex)
_OF_NAME: dict[str, tuple[Extractor, ...]] = {
    name: (claude_code,) if name in claude_code.NAMES else (claude_code, *(agent for agent in _KNOWN if name in agent.NAMES))
    for name in frozenset[str]().union(*(agent.NAMES for agent in _KNOWN))
}
_OTHERS_TEXT = frozenset(
    (
        "read", "read_file", "read_file_lines", "read_many_files", "grep", "glob", "find", "ls", "list", "list_files", "list_directory",
        "grep_search", "search_file_content", "search_files", "webfetch", "web_fetch", "websearch", "web_search", "google_web_search",
        "codesearch",
    )
)  # fmt: skip
"""Tools that give what stands somewhere: an exit status in it is not theirs."""
_SHORT_ARGUMENT = re.compile(
    r'"(file_path|filePath|absolute_path|path|notebook_path|command|cmd|url|query|pattern|description|subject)"\s*:\s*("(?:[^"\\]|\\.){1,2000}")'
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
    for agent in _OF_NAME.get(name, ()):
        if (facts := agent.call_facts(name, arguments)) is not None:
            return facts
    return generic.call_facts(name, arguments)


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts:
    """How a call of the tool `name` ended. Never raises."""
    for agent in _OF_NAME.get(name, _KNOWN):
        if (facts := agent.result_facts(name, text, is_error=is_error)) is not None:
            return facts
    if name in _OTHERS_TEXT and not is_error:
        return OK
    return generic.result_facts(text, is_error=is_error)


__all__ = ["CallFacts", "FileAction", "ResultFacts", "Todo", "TodoStatus", "call_facts", "decode_arguments", "one_line", "result_facts"]
