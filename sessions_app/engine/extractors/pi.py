"""Facts from calls of pi's own tools, and from the lines that it writes behind what they put out."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import (
    Arguments,
    CallFacts,
    FileAction,
    ResultFacts,
    command_call,
    exited,
    file_call,
    search_call,
    string,
)
from sessions_app.engine.extractors.generic import failed, telling_line

_FILE_TOOLS = {"read": FileAction.READ, "write": FileAction.WRITTEN, "edit": FileAction.EDITED}
_ENDED = re.compile(r"(?:\A|\n)Command (?:exited with code (-?\d{1,6})|(timed out after [\d.]{1,20} seconds)|aborted)\s*\Z")
_NOT_RUN = re.compile(r"\A(?:Blocked by user|Tool execution was blocked)\b")
_CUT_OFF = ("Operation aborted", "Skipped due to queued user message")
_NOT_EDITED = re.compile(r"\A(?:Could not find (?:the exact text|edits\[\d+\]) in |No changes made to |Found \d+ occurrences of )")


def _file(name: str, arguments: Arguments) -> CallFacts | None:
    path = string(arguments, "path")  # others have a `read`, a `write` and an `edit` as well
    return file_call(_FILE_TOOLS[name], path) if path else None


def _command(_name: str, arguments: Arguments) -> CallFacts:
    return command_call(string(arguments, "command"))


def _search(_name: str, arguments: Arguments) -> CallFacts:
    what, where = string(arguments, "pattern"), string(arguments, "path", "glob")
    return search_call(what, where) if what else search_call(where)


_TOOLS: dict[str, Callable[[str, Arguments], CallFacts | None]] = {
    **dict.fromkeys(_FILE_TOOLS, _file),
    **dict.fromkeys(("grep", "find", "ls"), _search),
    "bash": _command,
}
NAMES: frozenset[str] = frozenset(_TOOLS)


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of pi."""
    tool = _TOOLS.get(name)
    return tool(name, arguments) if tool else None


def _command_ended(text: str) -> ResultFacts | None:
    ended = _ENDED.search(text[-200:])
    if ended is None:
        return None
    if ended[1]:
        said = text[: len(text) - len(ended[0])].strip()
        return exited(ended[1], telling_line(said) if said != "(no output)" else "")
    return ResultFacts(status="failed", message=f"Command {ended[2]}") if ended[2] else ResultFacts(status="interrupted")


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:
    """How the call ended where pi has its own words for it, else None."""
    if is_error and _NOT_RUN.match(text):
        return ResultFacts(status="refused")
    if is_error and text.startswith(_CUT_OFF):
        return ResultFacts(status="interrupted")
    if name == "bash":
        return _command_ended(text)
    return failed(text) if name == "edit" and _NOT_EDITED.match(text) else None
