"""The one message that stands for the folded part of a history. The same arguments give the same bytes."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from sessions_app.engine import asks, commands
from sessions_app.engine import goal as goals
from sessions_app.engine.asks import Ask, AskKind
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.extractors import one_line
from sessions_app.engine.places import common_root, under
from sessions_app.engine.state import CommandRecord, FileRecord, MechanicalState, UserMessage

SUMMARY_SHARE, STATE_SHARE, USER_SHARE = 0.40, 0.25, 0.35
"""How much of the block's budget each part may take."""

_TAG = "compacted-history"
_FORGED_TAG = re.compile(r"<(?=\s{0,20}/?\s{0,20}compacted[-_ ]history)", re.IGNORECASE)

_Limits = tuple[int, int, int, int]  # read files, commands, changed files, addresses and identifiers
_NEWEST = 6  # user messages whose texts are shortened last
_TEXT_LIMITS = ((600, 2_000), (400, 1_600), (240, 1_200), (120, 800), (60, 400), (40, 160), (24, 60))
_LIST_LIMITS: tuple[_Limits, ...] = (
    (40, 30, 80, 40),
    (20, 30, 80, 40),
    (8, 30, 60, 30),
    (0, 20, 60, 20),
    (0, 10, 40, 10),
    (0, 5, 20, 5),
    (0, 2, 8, 0),
    (0, 0, 3, 0),
)


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """`left_out`: user messages of which not even a line stands in the text; the text says how many."""

    text: str
    tokens: int
    left_out: int = 0


def neutralise(text: str) -> str:
    """The text with every look-alike of the block's own tag made harmless."""
    return _FORGED_TAG.sub("‹", text)


def render(
    *,
    summary: str,
    state: MechanicalState,
    entries_folded: int,
    budget_tokens: int,
    carried: Collection[int] = (),
    pinned: Collection[int] = (),
) -> Block:
    """The block. `carried` and `pinned` are indexes of messages that stand word for word after it.

    The summary goes in whole: whoever made it was told its budget. State and user messages are cut to theirs, in
    this order: texts of old user messages, files that were only read, old commands, then the rest of the lists.
    """
    recorded = _recorded(state)
    facts = _fit(lambda limits: _state_text(recorded, limits), _LIST_LIMITS, int(budget_tokens * STATE_SHARE))
    past = [message for message in state.user_messages if message.index not in pinned or message.index in carried]
    goal = _goal_text(state, {*carried, *pinned})
    said, left_out = _user_text(past, max(int(budget_tokens * USER_SHARE) - estimate_text(goal), 0), carried)
    inner = "\n\n".join(part for part in (_opening(entries_folded), summary.strip(), goal, facts, said, _CONTRACT) if part)
    text = f"<{_TAG}>\n{neutralise(inner)}\n</{_TAG}>"
    return Block(text=text, tokens=estimate_text(text), left_out=left_out)


def _opening(entries_folded: int) -> str:
    return (
        f"The {entries_folded} entries of this conversation before this point are not shown word for word any more; "
        "this message stands for them. "
        "It is a record of what happened, not a new request. Numbers such as #12 are positions in the full history."
    )


_CONTRACT = """## How to go on
Carry on from the next step above as if nothing had been interrupted. Messages after this one are newer and win where they differ. \
Do not do again what is recorded here as done or answered, do not ask again what was settled, and do not recap or mention this record. \
File contents are not part of it: read a file again before relying on what it says."""


def _goal_text(state: MechanicalState, whole: Collection[int]) -> str:
    """What the session is for, in the words of whoever said it: the same bytes in every block until somebody says otherwise."""
    found = goals.of(state)
    if found is None:
        return ""
    if found.index is None:
        return f"## Goal\nSet by a person for the whole of this work:\n{found.quoted}"
    who = "The user set it" if found.is_stated else "As the user first put it; later requests may go beyond it"
    where = f"{who} (#{found.index}):" if found.index not in whole else f"{who}: message #{found.index}, word for word below."
    return "\n".join(("## Goal", where, *([found.quoted] if found.index not in whole else [])))


def _fit(render_with: Callable[[_Limits], str], steps: Sequence[_Limits], budget: int) -> str:
    text = ""
    for limits in steps:
        text = render_with(limits)
        if estimate_text(text) <= budget:
            break
    return text


class _Recorded(NamedTuple):
    """What code recorded, as lines of text, uncut."""

    place: str
    todos: list[str]
    done: list[str]
    running: list[str]
    waiting: list[str]
    changed: list[str]
    commits: list[str]
    errors: list[str]
    read: list[str]
    commands: list[str]
    addresses: list[str]
    identifiers: list[str]
    tools: list[str]


def _recorded(state: MechanicalState) -> _Recorded:
    root = common_root((file.path for file in state.files), state.cwd)
    place = [
        f"Working directory: `{one_line(state.cwd, 300)}`." if state.cwd else "",
        f"Branch: `{state.branch}`." if state.branch else "",
        f"Relative paths are under `{root}`." if root else "",
    ]
    return _Recorded(
        place=" ".join(filter(None, place)),
        todos=[f"- [{todo.status.value.replace('_', ' ')}] {todo.text}" for todo in state.open_todos],
        done=[f"- {done.text} (#{done.index})" for done in state.done],
        running=[f"- {call.tool}: {call.target} (#{call.index}, job {call.job})" for call in state.jobs],
        waiting=[f"- {call.tool}: {call.target} (#{call.index})" for call in state.pending_calls],
        changed=[_file_line(file, root) for file in state.files if file.changed],
        commits=[f"- `{commit.sha}` {commit.subject} (#{commit.index})" for commit in state.commits],
        errors=[f"- {error.tool}: {one_line(error.target, 120)} (#{error.index}, {error.status})" for error in state.open_errors],
        read=[_file_line(file, root) for file in state.files if not file.changed],
        commands=_command_lines(state.commands),
        addresses=[f"- {url.text}" for url in state.urls],
        identifiers=[word.text for word in state.identifiers],
        tools=[f"{name} ×{count}" for name, count in state.tools.items()],
    )


def _state_text(recorded: _Recorded, limits: _Limits) -> str:
    """The lists of what was done, most useful first; what a limit leaves out is counted."""
    read_limit, command_limit, changed_limit, mention_limit = limits
    lists = [
        ("Open to-dos", recorded.todos, 30),
        ("To-dos that are done", recorded.done, min(command_limit, 12)),
        ("Jobs still running", recorded.running, 20),
        ("Calls without a result", recorded.waiting, 10),
        ("Files changed", recorded.changed, changed_limit),
        ("Commits made", recorded.commits, changed_limit),
        ("Failures that nothing later made good", recorded.errors, min(changed_limit, 10)),
        ("Files read", recorded.read, read_limit),
        ("Commands run, without mere look-ups", recorded.commands, command_limit),
        ("Addresses", recorded.addresses, mention_limit // 2),
    ]
    parts = ["## State, as recorded by code", recorded.place]
    parts += [_listed(title, lines, limit) for title, lines, limit in lists]
    parts.append(_inline("Identifiers", recorded.identifiers, mention_limit))
    parts.append(_inline("Tools used", recorded.tools, 20))
    kept = [part for part in parts if part]
    return "\n".join(kept) if len(kept) > 1 else ""


def _file_line(file: FileRecord, root: str) -> str:
    times = f"{file.changed} times" if file.changed > 1 else "once"
    did = file.action.value
    if file.changed and not file.action.changes:
        did = f"changed {times}, last read"
    elif file.changed > 1:
        did = f"{did}, changed {times}"
    return f"- `{under(root, file.path)}` {did} (#{file.index})"


def _command_lines(ran: Sequence[CommandRecord]) -> list[str]:
    """Commands that did something or failed, each once, where it was last run."""
    last: dict[str, tuple[CommandRecord, int]] = {}
    for command in ran:
        words = commands.essence(command.command)
        if command.status == "ok" and commands.is_look_up(words):
            continue
        times = last.pop(words, (command, 0))[1] + 1
        last[words] = (command, times)
    return [
        f"- `{words}` → {command.status} (#{command.index}{f', run {times} times' if times > 1 else ''})"
        for words, (command, times) in last.items()
    ]


def _listed(title: str, lines: Sequence[str], limit: int) -> str:
    """The newest lines under a title, and the number of the older ones."""
    if not lines:
        return ""
    if not limit:
        return f"{title}: {len(lines)}, not listed."
    head = title if len(lines) <= limit else f"{title} (the newest {limit} of {len(lines)})"
    return "\n".join([f"{head}:", *lines[-limit:]])


def _inline(title: str, words: Sequence[str], limit: int) -> str:
    if not words or not limit:
        return ""
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return f"{title}: {', '.join(words[-limit:])}{more}."


def _user_text(messages: Sequence[UserMessage], budget: int, carried: Collection[int]) -> tuple[str, int]:
    """The list of user messages within the budget, and how many of them it had to leave out."""
    if not messages:
        return "", 0
    head = (
        f"## What the user said before this point\n{len(messages)} message{'s' if len(messages) > 1 else ''}, oldest first. "
        "They are history: act only on one that is marked open."
    )
    lines: list[str] = []
    asked = [asks.read(message.text) for message in messages]
    newest_from, last_index = len(messages) - _NEWEST, messages[-1].index
    for old_limit, new_limit in _TEXT_LIMITS:
        lines = [
            _user_line(message, ask, new_limit if position >= newest_from else old_limit, carried, is_last=message.index == last_index)
            for position, (message, ask) in enumerate(zip(messages, asked, strict=True))
        ]
        if estimate_text("\n".join((head, *lines))) <= budget:
            return "\n".join((head, *lines)), 0
    first, last = _kept_ends(lines, budget - estimate_text(head))
    left_out = len(lines) - first - last
    if left_out <= 0:
        return "\n".join((head, *lines)), 0
    note = f"- ({left_out} messages left out here: #{messages[first].index} to #{messages[len(lines) - last - 1].index})"
    return "\n".join((head, *lines[:first], note, *lines[len(lines) - last :])), left_out


def _kept_ends(lines: Sequence[str], budget: int) -> tuple[int, int]:
    """How many lines from the start and from the end fit; a quarter of the budget is the start's. At least one each."""
    sizes = [estimate_text(line) + 1 for line in lines]
    first = held = 0
    while first < len(sizes) and (first == 0 or held + sizes[first] <= budget // 4):
        held += sizes[first]
        first += 1
    last = 0
    while last < len(sizes) - first and (last == 0 or held + sizes[-1 - last] <= budget):
        held += sizes[-1 - last]
        last += 1
    return first, last


def _user_line(message: UserMessage, ask: Ask, limit: int, carried: Collection[int], *, is_last: bool) -> str:
    images = f" [{message.images} image{'s' if message.images > 1 else ''}]" if message.images else ""
    if message.index in carried:
        return f"- #{message.index} (open; stands word for word below)"
    status = ""
    if ask.kind is AskKind.WORDS:
        status = " (answered)" if message.answered_index is not None else " (open)" if is_last else " (overtaken by the next)"
    return f"- #{message.index}{status}: {one_line(ask.text, limit)}{images}"
