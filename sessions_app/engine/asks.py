"""What a person's message is: words meant for the agent, or the trace of a command, an interruption, a notice."""

import re
from enum import StrEnum

import msgspec

from sessions_app.engine.extractors import one_line


class AskKind(StrEnum):
    WORDS = "words"
    COMMAND = "command"  # a command of the agent's own prompt: it ran, it asks for nothing any more
    OUTPUT = "output"
    INTERRUPTION = "interruption"
    NOTICE = "notice"


class Ask(msgspec.Struct, frozen=True):
    kind: AskKind
    text: str


_TAG = re.compile(r"\s*<([a-z][a-z-]{1,40})>(.*?)(?:</\1>|\Z)", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]{0,40}\]")


def read(text: str) -> Ask:
    """The message as a person would tell it, whitespace kept in words and collapsed in the rest."""
    plain = _REMINDER.sub("", text[:40_000]).strip()
    if _INTERRUPTED.fullmatch(plain):
        return Ask(AskKind.INTERRUPTION, "interrupted the assistant")
    if not plain.startswith("<"):
        return Ask(AskKind.WORDS, _INTERRUPTED.sub("", plain).strip() if plain.startswith("[Request") else plain)
    tags = {match.group(1): match.group(2).strip() for match in _TAG.finditer(plain[:8_000])}
    if "command-name" in tags:
        words = f"{tags['command-name']} {tags.get('command-args', '')}"
        return Ask(AskKind.COMMAND, "ran " + one_line(words, 300))
    if "bash-input" in tags:
        return Ask(AskKind.COMMAND, "ran " + one_line(tags["bash-input"], 300))
    for tag in ("local-command-stdout", "local-command-stderr", "bash-stdout", "local-command-caveat"):
        if tag in tags:
            return Ask(AskKind.OUTPUT, "output of a command: " + one_line(tags[tag], 200))
    if "task-notification" in tags:
        inner = {match.group(1): match.group(2) for match in _TAG.finditer(tags["task-notification"])}
        return Ask(AskKind.NOTICE, "notice: " + one_line(inner.get("summary", tags["task-notification"]), 300))
    return Ask(AskKind.WORDS, plain)
