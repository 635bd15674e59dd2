"""Edits as diffs: from the arguments of an editing call, from an agent's own patch, or from a patch text."""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sessions_app.rendering.plain import visible

MAX_DIFFED_CHARS = 60_000
"""Longer texts are not compared line by line (quadratic at worst) but shown as removed and added."""

SHOWN_LINES = 24
"""The rest of a longer diff is folded below them."""

MAX_LINES = 400


@dataclass(frozen=True)
class DiffLine:
    """One line. `kind` is `add`, `del`, `hunk` or empty for context; numbers are 0 where there are none."""

    kind: str
    text: str
    old: int = 0
    new: int = 0


@dataclass(frozen=True)
class Diff:
    """Lines of one edit, with how many were added and removed in the whole."""

    lines: tuple[DiffLine, ...]
    added: int
    removed: int


def diff_of(old: str, new: str) -> Diff:
    """A line diff of two texts with three lines of context."""
    before, after = visible(old).split("\n"), visible(new).split("\n")
    if old == "":
        lines = [DiffLine("add", text, new=number) for number, text in enumerate(after, 1)]
    elif len(old) + len(new) > MAX_DIFFED_CHARS:
        lines = [DiffLine("del", text, old=number) for number, text in enumerate(before, 1)]
        lines += [DiffLine("add", text, new=number) for number, text in enumerate(after, 1)]
    else:
        lines = list(_compared(before, after))
    return _counted(lines)


def diff_of_hunks(hunks: Iterable[object]) -> Diff:
    """A diff from an agent's own `structuredPatch` (hunks with `oldStart`, `newStart` and prefixed `lines`); foreign shapes give none."""
    lines: list[DiffLine] = []
    for hunk in hunks:
        if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
            continue
        old, new = (hunk.get(key) if isinstance(hunk.get(key), int) else 1 for key in ("oldStart", "newStart"))
        lines.append(DiffLine("hunk", f"@@ -{old} +{new} @@"))
        lines.extend(_numbered((str(line) for line in hunk["lines"]), int(old or 1), int(new or 1)))
    return _counted(lines)


def diff_of_patch(patch: str) -> Diff:
    """A diff from a patch text, unified or in the `*** Begin Patch` form. Headers become hunk lines."""
    lines: list[DiffLine] = []
    for line in visible(patch).split("\n"):
        if line.startswith(("***", "---", "+++", "@@", "diff ", "index ")):
            lines.append(DiffLine("hunk", line))
        else:
            lines.append(_line(line))
    return _counted(lines)


def diff_html(diff: Diff, *, label: str = "Diff") -> SafeString:
    """The diff as rows, a long one folded below its beginning; beyond 400 lines it says how many are missing."""
    head, rest = diff.lines[:SHOWN_LINES], diff.lines[SHOWN_LINES:MAX_LINES]
    if not rest:
        return _rows_html(head, label)
    missing = len(diff.lines) - MAX_LINES
    return format_html(
        '{}<details class="fold diff__rest"><summary>{}</summary>{}</details>',
        _rows_html(head, label),
        f"{len(rest)} more lines" + (f"; {missing} further ones stand in the original record" if missing > 0 else ""),
        _rows_html(rest, f"{label}, the rest"),
    )


def _rows_html(lines: Iterable[DiffLine], label: str) -> SafeString:
    rows = format_html_join("", "{}", ((_line_html(line),) for line in lines))
    return format_html('<div class="diff" tabindex="0" role="group" aria-label="{}">{}</div>', visible(label), rows)


def _line_html(line: DiffLine) -> SafeString:
    sign = {"add": "+", "del": "−"}.get(line.kind, "")
    return format_html(
        '<div class="diff__line{}"><span class="diff__n">{}</span><span class="diff__n">{}</span><span>{}</span><span>{}</span></div>',
        f" is-{line.kind}" if line.kind else "",
        line.old or "",
        line.new or "",
        sign,
        line.text,
    )


def _compared(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    for group in difflib.SequenceMatcher(None, before, after, autojunk=True).get_grouped_opcodes(3):
        first = group[0]
        if first[1] or first[3]:
            yield DiffLine("hunk", f"@@ -{first[1] + 1} +{first[3] + 1} @@")
        for operation, old_from, old_to, new_from, new_to in group:
            if operation == "equal":
                for offset in range(old_to - old_from):
                    yield DiffLine("", before[old_from + offset], old_from + offset + 1, new_from + offset + 1)
                continue
            for position in range(old_from, old_to):
                yield DiffLine("del", before[position], old=position + 1)
            for position in range(new_from, new_to):
                yield DiffLine("add", after[position], new=position + 1)


def _numbered(lines: Iterable[str], old: int, new: int) -> Iterator[DiffLine]:
    for raw in lines:
        line = _line(visible(raw))
        yield DiffLine(line.kind, line.text, old if line.kind != "add" else 0, new if line.kind != "del" else 0)
        old += line.kind != "add"
        new += line.kind != "del"


def _line(line: str) -> DiffLine:
    kind = {"+": "add", "-": "del"}.get(line[:1], "")
    return DiffLine(kind, line[1:] if kind or line[:1] == " " else line)


def _counted(lines: Iterable[DiffLine]) -> Diff:
    kept = tuple(lines)
    return Diff(kept, sum(line.kind == "add" for line in kept), sum(line.kind == "del" for line in kept))
