"""What a shell command comes to: its essence without the wrapping, and whether it only looks something up."""

import re

_LEADING_CD = re.compile(r"\A(?:cd\s+(?:\"[^\"]*\"|\S+)\s*(?:&&|;)\s*)+")
_SHELL_TAIL = re.compile(r"(?:\s*2>&1|\s*\|\s*(?:head|tail)(?:\s+-n?\s*\d+)?)+\s*$")
_LOOK_UP = re.compile(
    r"(?:cd|ls|cat|head|tail|pwd|echo|which|wc|find|grep|rg|tree|file|stat|sort|jq|sed -n|"
    r"git (?:status|log|diff|show|branch|blame|fetch))\b"
)
_JOINT = re.compile(r"\s*(?:&&|\|\|?|;)\s*")


def essence(command: str) -> str:
    """The command without the change of directory before it and the trimming of its output behind it."""
    return _SHELL_TAIL.sub("", without_cd(command))


def without_cd(command: str) -> str:
    """The command without the change of directory before it."""
    return _LEADING_CD.sub("", command)


def is_look_up(command: str) -> bool:
    """Whether every piece of it only reads."""
    return all(_LOOK_UP.match(piece) for piece in _JOINT.split(command) if piece)
