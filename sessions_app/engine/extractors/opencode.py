"""Facts from calls of opencode's own tools, and from the sentences with which it answers for them."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import (
    OK,
    Arguments,
    CallFacts,
    FileAction,
    ResultFacts,
    agent_call,
    answers,
    command_call,
    fetch_call,
    file_call,
    one_line,
    search_call,
    string,
    todos_call,
)
from sessions_app.engine.extractors.codex import patch_call
from sessions_app.engine.extractors.generic import failed

_FILE_TOOLS = {"read": FileAction.READ, "write": FileAction.WRITTEN, "edit": FileAction.EDITED, "multiedit": FileAction.EDITED}
_REFUSED = re.compile(
    r"\A(?:Error: )?(?:The user rejected permission to use this specific tool call(?: with the following feedback: (?P<said>.+))?"
    r"|The user has specified a rule which prevents you from using this specific tool call|The user dismissed this question)",
    re.DOTALL,
)
_ABORTED = re.compile(r"\A(?:Error: )?Tool execution aborted\b")
_METADATA = re.compile(r"<(?:bash|shell)_metadata>\n(.{1,1000})\n</(?:bash|shell)_metadata>\s*\Z", re.DOTALL)
_NOT_EDITED = re.compile(
    r"\A(?:Error: )?(?:Could not find oldString|oldString not found|Found multiple matches for oldString|Refusing replacement )"
)
_TASK = re.compile(r'\A<task id="([\w-]{1,60})" state="(running|completed|error)">')


def _file(name: str, arguments: Arguments) -> CallFacts | None:
    path = string(arguments, "filePath")  # others have a `read`, a `write` and an `edit` as well
    return file_call(_FILE_TOOLS[name], path) if path else None


def _patch(_name: str, arguments: Arguments) -> CallFacts | None:
    text = string(arguments, "patchText")
    return patch_call(text) if text else None


def _command(_name: str, arguments: Arguments) -> CallFacts:
    return command_call(string(arguments, "command"))


def _search(_name: str, arguments: Arguments) -> CallFacts:
    what = string(arguments, "pattern", "query")
    where = string(arguments, "path", "include", "glob")
    return search_call(what, where) if what else search_call(where)


def _fetch(_name: str, arguments: Arguments) -> CallFacts:
    return fetch_call(string(arguments, "url"))


def _agent(_name: str, arguments: Arguments) -> CallFacts:
    return agent_call(string(arguments, "description", "prompt"))


def _todos(_name: str, arguments: Arguments) -> CallFacts:
    return todos_call(arguments.get("todos"), "content")


_TOOLS: dict[str, Callable[[str, Arguments], CallFacts | None]] = {
    **dict.fromkeys(_FILE_TOOLS, _file),
    **dict.fromkeys(("patch", "apply_patch"), _patch),
    **dict.fromkeys(("glob", "grep", "list", "websearch", "codesearch"), _search),
    "bash": _command,
    "webfetch": _fetch,
    "task": _agent,
    "todowrite": _todos,
}
NAMES: frozenset[str] = frozenset((*_TOOLS, "question"))


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of opencode."""
    tool = _TOOLS.get(name)
    return tool(name, arguments) if tool else None


def _command_ended(text: str) -> ResultFacts | None:
    """opencode tells the model no exit status, only what cut the command short."""
    tail = text[-1_200:].rstrip()
    told = _METADATA.search(tail) if tail.endswith("_metadata>") else None
    if told is None:
        return None
    if "User aborted the command" in told[1]:
        return ResultFacts(status="interrupted")
    return ResultFacts(status="failed", message=one_line(told[1], 240)) if "terminated command after exceeding timeout" in told[1] else None


def _edited(text: str) -> ResultFacts | None:
    return failed(text) if _NOT_EDITED.match(text) else None


def _agent_ended(text: str) -> ResultFacts | None:
    told = _TASK.match(text)
    if told is None:
        return None
    if told[2] == "running":
        return ResultFacts(status="running in background", job=told[1])
    return OK if told[2] == "completed" else failed(text[told.end() :])


_RESULTS: dict[str, Callable[[str], ResultFacts | None]] = {
    "bash": _command_ended,
    "edit": _edited,
    "multiedit": _edited,
    "task": _agent_ended,
    "question": answers,
}


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    """How the call ended where opencode has its own words for it, else None."""
    if refused := _REFUSED.match(text[:2_000]):
        return ResultFacts(status="refused", said=one_line(refused["said"] or "", 600))
    if _ABORTED.match(text):
        return ResultFacts(status="interrupted")
    told = _RESULTS.get(name)
    return told(text) if told else None
