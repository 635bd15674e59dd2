"""What a tool call is about, in one line, and how it is drawn: icon, diff, folded output."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from sessions_app.rendering.diffs import Diff, diff_of, diff_of_hunks, diff_of_patch

_SUBJECTS = (
    "command", "cmd", "file_path", "path", "filePath", "notebook_path", "pattern",
    "query", "url", "description", "prompt", "subject", "name",
)  # fmt: skip
_ICONS = (
    ("term", ("bash", "shell", "exec", "terminal", "command", "run")),
    ("edit", ("edit", "write", "patch", "replace", "create")),
    ("file", ("read", "cat", "view", "open", "notebook")),
    ("search", ("grep", "glob", "search", "find", "ls", "list")),
    ("globe", ("fetch", "web", "http", "browser")),
    ("branch", ("agent", "task", "delegate")),
    ("image", ("image", "screenshot")),
)
PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_SHELL_FLAGS = ("-c", "-lc")
_QUIET = ("file", "search", "globe")
"""Tools whose output is what they read: long, and rarely what a person is after. It is folded away."""


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call as a mapping; empty when they are none."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"input": text} if text else {}
    return found if isinstance(found, dict) else {"input": found}


def icon_of(name: str) -> str:
    """The symbol of a tool by its name, in whatever spelling its agent has."""
    lowered = name.lower()
    return next((icon for icon, words in _ICONS if any(word in lowered for word in words)), "gear")


def is_quiet(name: str) -> bool:
    """Whether the tool's output starts folded."""
    return icon_of(name) in _QUIET


def subject_of(arguments: Mapping[str, Any]) -> str:
    """What the call is about: its command, file, pattern …; of a patch its files; else its first short argument."""
    for key in _SUBJECTS:
        said = arguments.get(key)
        if isinstance(said, str) and said:
            return said
        if isinstance(said, list) and said and all(isinstance(word, str) for word in said):
            return said[2] if len(said) == 3 and said[1] in _SHELL_FLAGS else " ".join(said)
    text = next((value for value in arguments.values() if isinstance(value, str) and value), "")
    return ", ".join(_PATCHED.findall(text)) or text if text.startswith(PATCH) else text


def diffs_of(arguments: Mapping[str, Any], annex: Mapping[str, Any]) -> tuple[Diff, ...]:
    """The edits of a call, if it is one: from the agent's own patch where there is one, else from the arguments."""
    hunks = annex.get("structuredPatch") or annex.get("structured_patch")
    if isinstance(hunks, list) and hunks:
        return (diff_of_hunks(hunks),)
    edits = arguments.get("edits")
    if isinstance(edits, list):
        return tuple(diff for edit in edits if isinstance(edit, dict) for diff in _edit(edit))
    return _edit(arguments)


def _edit(arguments: Mapping[str, Any]) -> tuple[Diff, ...]:
    for old_key, new_key in (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"), ("oldText", "newText")):
        old, new = arguments.get(old_key), arguments.get(new_key)
        if isinstance(new, str) and isinstance(old, str):
            return (diff_of(old, new),)
    patch = next((value for key, value in arguments.items() if key in ("patch", "input", "diff") and isinstance(value, str)), "")
    if patch.startswith(PATCH) or "\n@@" in patch[:4000]:
        return (diff_of_patch(patch),)
    content = arguments.get("content", arguments.get("file_text"))
    if isinstance(content, str) and any(key in arguments for key in ("file_path", "path", "filePath")):
        return (diff_of("", content),)
    return ()
