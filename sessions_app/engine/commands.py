"""What a shell command comes to: its essence without the wrapping, whether it only looks something up, what its exit status means."""

import re

_LEADING_CD = re.compile(r"\A(?:cd\s+(?:\"[^\"]*\"|\S+)\s*(?:&&|;)\s*)+")
_SHELL_TAIL = re.compile(r"(?:\s*2>&1|\s*\|\s*(?:head|tail)(?:\s+-n?\s*\d+)?)+\s*$")
_LOOK_UP = re.compile(
    r"(?:[A-Z_]{1,40}=\S{0,200}\s+)*"
    r"(?:cd|ls|cat|head|tail|pwd|echo|printf|which|type|wc|find|grep|egrep|rg|ag|tree|file|stat|sort|uniq|cut|tr|nl|jq|du|df|date|whoami|"
    r"realpath|dirname|basename|diff|cmp|ps|true|sed -n|command -v|"
    r"git (?:-C \S{1,200} )?(?:status|log|diff|show|branch|blame|fetch|grep|ls-files|rev-parse|remote -v))(?![\w-])"
)
_QUOTED = re.compile(r"'[^']*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z|\\\Z)|\\.", re.DOTALL)
_JOINT = re.compile(r"\s*(?:&&|\|\|?|;|\n)\s*")
_WRITES = re.compile(r"(?<!&)>>?(?!\s*(?:/dev/null|&))|\bfind\b.*\s-(?:delete|exec\w*)\b|\bsort\b.*\s-o\b")
_SEARCH = re.compile(r"(?:grep|egrep|fgrep|rg|ag|git (?:-C \S{1,200} )?grep)(?![\w-])")
_COMPARISON = re.compile(r"(?:diff|cmp|git (?:-C \S{1,200} )?diff)(?![\w-])")


def essence(command: str) -> str:
    """The command without the change of directory before it and the trimming of its output behind it."""
    return _SHELL_TAIL.sub("", without_cd(command))


def without_cd(command: str) -> str:
    """The command without the change of directory before it."""
    return _LEADING_CD.sub("", command)


def is_look_up(command: str) -> bool:
    """Whether every piece of it only reads. What is quoted joins nothing, and an unclosed quote goes on to the end."""
    bare = _bare(command)
    return not _WRITES.search(bare) and all(_LOOK_UP.match(piece) for piece in _JOINT.split(bare) if piece)


def verdict_of(command: str, status: str) -> str:
    """What an exit status of 1 means where it is an answer and no failure: `no match`, `differs`; else the status as it is."""
    if status != "exit 1":
        return status
    last = next((piece for piece in reversed(_JOINT.split(_bare(without_cd(command)))) if piece), "")
    return "no match" if _SEARCH.match(last) else "differs" if _COMPARISON.match(last) else status


def _bare(command: str) -> str:
    """The command with what is quoted taken out."""
    return _QUOTED.sub('""', command)
