"""The short way in for programs that hold their own history: entries from messages, one call for a whole attempt."""

from collections.abc import Sequence

from sessions_app.engine.attempt import Task, run
from sessions_app.engine.counting import estimate_parts
from sessions_app.engine.entries import Checkpoint, Entry, Part
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.plan import view_tokens
from sessions_app.engine.policy import DEFAULT_WINDOW, Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Commit, Ended, Summariser
from sessions_app.engine.terms import Kind, Lineage, Outcome, PartKind, Role
from sessions_app.engine.tools import ToolDefinition, beside_view, estimate_tools


def message(index: int, role: str, text: str) -> Entry:
    """The entry of a plain message. `role` is `system`, `user` or `assistant`; indexes count from 0 without a gap.

    Raises `ValueError` on another role. Calls and results are entries with parts of their own kinds: see `Entry`.
    """
    parts = (Part(kind=PartKind.TEXT, text=text),)
    return Entry(index=index, role=Role(role), kind=Kind.MESSAGE, parts=parts, tokens=estimate_parts(parts), source_id=str(index))


def compact(
    history: Sequence[Entry],
    *,
    chain: Sequence[Checkpoint] = (),
    previous_summary: str = "",
    policy: Policy | None = None,
    window: int = DEFAULT_WINDOW,
    summarisers: Sequence[Summariser] = (),
    instructions: str = "",
    force: bool = False,
    tool_definitions: Sequence[ToolDefinition] = (),
) -> Commit | Ended:
    """One attempt to its end, without progress and without a stop. Changes nothing of the history.

    `chain` are the checkpoints in force, oldest first, and `previous_summary` what the last one says. Without
    `summarisers`, the extractive one works alone. `tool_definitions` stand in every request: they count
    in what fills it, and what is kept makes room for them. Tokens everywhere.
    """
    shapes = [shape_of(entry) for entry in history]
    tools = estimate_tools(tool_definitions)
    task = Task(
        shapes=shapes,
        load=lambda first, last: iter(history[first : last + 1]),
        chain=chain,
        previous_summary=previous_summary,
        policy=policy or Policy(),
        window=window,
        signal_tokens=view_tokens(shapes, chain[-1] if chain else None) + tools,
        calibration=beside_view(tools),
        summarisers=summarisers or [ExtractiveSummariser()],
        instructions=instructions,
        force=force,
    )
    return to_its_end(task)


def to_its_end(task: Task) -> Commit | Ended:
    """What an attempt comes to, whatever its steps say on the way."""
    steps = run(task, should_stop=lambda: None)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Commit | Ended = end.value
            return result


def checkpoint_of(commit: Commit, generation: int) -> Checkpoint:
    """The checkpoint that a committed attempt becomes; its generation counts from 1 within a history."""
    return Checkpoint(
        generation=generation,
        lineage=Lineage.CONSOLE,
        segments=commit.segments,
        boundary_index=commit.boundary_index,
        cleared=frozenset(commit.cleared),
        trimmed=commit.outcome is Outcome.TRIMMED,
    )
