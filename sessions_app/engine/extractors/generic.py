"""Facts from a call of a tool that nobody here knows: by the names of its arguments and the words in its own name."""

import re

from sessions_app.engine.extractors.base import OK, Arguments, CallFacts, FileAction, ResultFacts, one_line, string

_ACTIONS = (
    (re.compile(r"delete|remove|unlink", re.IGNORECASE), FileAction.DELETED),
    (re.compile(r"write|create|save|put", re.IGNORECASE), FileAction.WRITTEN),
    (re.compile(r"edit|patch|replace|append|insert|update", re.IGNORECASE), FileAction.EDITED),
    (re.compile(r"read|view|open|cat|load|get", re.IGNORECASE), FileAction.READ),
)
_EXIT = re.compile(
    r"(?:\A|\b)(?:Error: )?(?:exit(?:ed)?(?: with)?(?: status| code)?|exit_code|return ?code)\W{1,4}(-?\d{1,5})", re.IGNORECASE
)
_TROUBLE = (
    "error", "fail", "fatal", "exception", "denied", "not found", "cannot", "can't", "unable", "invalid", "undefined", "panic", "missing",
    "refused", "timed out",
)  # fmt: skip
_NOISE = re.compile(r"</?[a-z_]+>|\x1b\[[0-9;]*[A-Za-z]")


def call_facts(name: str, arguments: Arguments) -> CallFacts:
    """What the call does, as far as its arguments tell."""
    path = string(arguments, "file_path", "path", "filename", "file", "notebook_path", "target_file", "absolute_path")
    command = string(arguments, "command", "cmd", "script")
    url = string(arguments, "url", "uri")
    action = next((action for words, action in _ACTIONS if words.search(name)), None) if path else None
    if command and not path:
        return CallFacts(target=one_line(command, 160), command=command)
    target = path or command or url or string(arguments, "query", "pattern", "description", "prompt", "title", "name")
    return CallFacts(
        target=one_line(target, 160),
        action=action,
        paths=(path,) if action else (),
        command=command,
        urls=(url,) if url.startswith("http") else (),
    )


def result_facts(text: str, *, is_error: bool) -> ResultFacts:
    """How the call ended: by its error flag, or by an exit status at the head or the end of its text."""
    code = (_EXIT.match(text) if text[:1] in "EeRr" else None) or (_EXIT.search(text[-200:]) if is_error else None)
    if code and code.group(1) != "0":
        return ResultFacts(status=f"exit {code.group(1)}", message=telling_line(text))
    return failed(text) if is_error else OK


def failed(text: str) -> ResultFacts:
    return ResultFacts(status="failed", message=telling_line(text))


def telling_line(text: str) -> str:
    """The line that best says what went wrong: the first with a word of trouble, else the first; ≤ 240 characters."""
    lines = [line for raw in _NOISE.sub("", text[:6_000]).splitlines() if (line := raw.strip()) and not _EXIT.fullmatch(line)]
    return one_line(next((line for line in lines if _tells_of_trouble(line.lower())), lines[0] if lines else ""), 240)


def _tells_of_trouble(lower: str) -> bool:
    return any(word in lower for word in _TROUBLE)
