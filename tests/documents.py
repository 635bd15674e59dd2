"""The documents, and the calls of manage.py that they show."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HOW_TO = ROOT / "docs/how-to"
NUMBERS = {"ENTRY": "4"}
"""What stands for a number in an example."""


class Example(NamedTuple):
    """One call. `reads` and `writes` are the files that a shell would give it."""

    name: str
    arguments: list[str]
    reads: str = ""
    writes: str = ""

    def __str__(self) -> str:
        return shlex.join(["manage.py", self.name, *self.arguments])


def examples(document: Path) -> list[Example]:
    """Every call in the consoles of a document, and those that stand whole in its text."""
    text = document.read_text()
    lines = [line for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    return [example for line in [*lines, *re.findall(r"`(python3 manage\.py [^`\n]+)`", text)] for example in _calls(line)]


def _calls(line: str) -> Iterator[Example]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    call: list[str] = []
    files = {"<": "", ">": ""}
    redirects = ""
    for word in [*lexer, ";"]:
        if word in files:
            redirects = word
        elif redirects:
            files[redirects], redirects = word, ""
        elif not call and re.match(r"[A-Z_]+=", word):
            continue  # a variable for this call alone
        elif word[0] not in ";&|()":
            call.append(NUMBERS.get(word, word))
        else:
            if call[:2] == ["python3", "manage.py"] and len(call) > 2:
                yield Example(call[2], call[3:], files["<"], files[">"])
            call, files = [], {"<": "", ">": ""}
