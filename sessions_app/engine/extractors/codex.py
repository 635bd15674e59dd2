"""Facts from calls of Codex's own tools, and from the lines that it writes before what they put out."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import OK, Arguments, CallFacts, FileAction, ResultFacts, Todo, TodoStatus, one_line, string
from sessions_app.engine.extractors.generic import telling_line
from sessions_app.engine.foreign_json import NotJson, decode

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.{1,1000}?)\s*$", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: (.{1,1000}?)\s*$", re.MULTILINE)
_ACTIONS = {"Add": FileAction.WRITTEN, "Update": FileAction.EDITED, "Delete": FileAction.DELETED}
_SHELLS = ("bash", "sh", "zsh", "pwsh", "powershell")
_EXITED = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?(?:Process exited with code|Exit code:) (-?\d{1,6})\b")
_RUNNING = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?Process running with session ID (\d{1,10})\b")
_METADATA = re.compile(r'"metadata":\s*\{"exit_code":\s*(-?\d{1,6})\b[^{}]{0,80}\}\}\s*\Z')
_OUTPUT = re.compile(r"^Output:\n", re.MULTILINE)
_REFUSED = re.compile(r"\A(?:(?:patch |exec command |command )?rejected by user|exec_command failed: .{0,80}\bRejected\()", re.IGNORECASE)
_INTERRUPTED = re.compile(r"\A(?:Wall time: .*\n)?(?:command was )?aborted(?: by user)?\b", re.IGNORECASE)


def patch_call(text: str) -> CallFacts:
    """The files of a patch between `*** Begin Patch` and `*** End Patch`, and what becomes of them."""
    named = _PATCHED.findall(text)
    paths = tuple(dict.fromkeys([path for _, path in named] + _MOVED.findall(text)))
    actions = {_ACTIONS[word] for word, _ in named}
    action = actions.pop() if len(actions) == 1 else FileAction.EDITED if actions else None
    return CallFacts(target=one_line(", ".join(paths), 160), action=action, paths=paths)


def _apply_patch(arguments: Arguments) -> CallFacts:
    return patch_call(string(arguments, "input", "patch"))


def _command(arguments: Arguments) -> CallFacts:
    told = arguments.get("command") or arguments.get("cmd")
    words = [word for word in told if isinstance(word, str)] if isinstance(told, list) else []
    if words[:1] == ["apply_patch"]:
        return patch_call("\n".join(words[1:]))
    is_wrapped = len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1].startswith("-")
    command = words[2] if is_wrapped else " ".join(words) if words else string(arguments, "command", "cmd")
    if "*** Begin Patch" in command:
        return patch_call(command)
    return CallFacts(target=one_line(command, 160), command=command)


def _stdin(arguments: Arguments) -> CallFacts:
    job = str(arguments.get("session_id", ""))[:60]
    return CallFacts(target=f"job {job}", job=job)


def _plan(arguments: Arguments) -> CallFacts:
    raw = arguments.get("plan")
    steps = [step for step in raw if isinstance(step, dict)] if isinstance(raw, list) else []
    todos = tuple(Todo(one_line(string(step, "step"), 200), TodoStatus.of(step.get("status"))) for step in steps)
    return CallFacts(target="plan", todos=todos, replaces_todos=True)


def _image(arguments: Arguments) -> CallFacts:
    path = string(arguments, "path")
    return CallFacts(target=path, action=FileAction.READ, paths=(path,) if path else ())


def _agent(arguments: Arguments) -> CallFacts:
    return CallFacts(target=one_line(string(arguments, "task_name", "message", "prompt", "id", "target"), 160))


_TOOLS: dict[str, Callable[[Arguments], CallFacts]] = {
    "shell": _command,
    "shell_command": _command,
    "local_shell": _command,
    "exec_command": _command,
    "write_stdin": _stdin,
    "apply_patch": _apply_patch,
    "update_plan": _plan,
    "view_image": _image,
    "spawn_agent": _agent,
    "send_input": _agent,
    "wait_agent": _agent,
}


NAMES: frozenset[str] = frozenset(_TOOLS)


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of Codex."""
    tool = _TOOLS.get(name)
    return tool(arguments) if tool else None


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:
    """How the call ended where Codex has its own words for it, else None."""
    if name not in _TOOLS:
        return None
    head = text[:600]
    if _REFUSED.match(head):
        return ResultFacts(status="refused")
    if _INTERRUPTED.match(head):
        return ResultFacts(status="interrupted")
    if running := _RUNNING.match(head):
        # Whoever looks at a running command again starts no other.
        return ResultFacts(status="running in background", job="" if name == "write_stdin" else running[1])
    code = _EXITED.match(head) or (_METADATA.search(text[-200:]) if text.startswith("{") else None)
    if code is None:
        return None if is_error else OK
    failed = code[1] != "0"
    return ResultFacts(
        status=f"exit {code[1]}" if failed else "ok", message=telling_line(_said(text)) if failed else "", job_ended=name == "write_stdin"
    )


def _said(text: str) -> str:
    """What the command itself put out."""
    if text.startswith("{"):
        try:
            told = decode(text)
        except NotJson:
            return text
        output = told.get("output") if isinstance(told, dict) else None
        return output if isinstance(output, str) else text
    return text[match.end() :] if (match := _OUTPUT.search(text[:600])) else text
