"""Compaction as a library: what a history is, what a model sees of it, and how one becomes the other.

Pure: no Django, no network, no clock. Histories come in as entries (or as their shapes, where text is not needed);
`run` yields the steps of one attempt and returns a `Commit`, or `Ended` with the reason; `build` makes the view of a
checkpoint. Nothing here ever changes an entry.

    steps = run(Task(shapes=…, load=…, chain=…, summarisers=[ExtractiveSummariser()], …), should_stop=…)

`message`, `compact` and `checkpoint_of` are the short way in: see docs/library.md.
"""

from sessions_app.engine.boundary import IllegalBoundary, choose
from sessions_app.engine.entries import Checkpoint, Entry, Part, Segment, SyntheticMessage, Usage
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.fates import fate_of
from sessions_app.engine.library import checkpoint_of, compact, message
from sessions_app.engine.mechanical import collect
from sessions_app.engine.plan import Plan
from sessions_app.engine.plan import make as make_plan
from sessions_app.engine.policy import Policy
from sessions_app.engine.run import Task, run
from sessions_app.engine.shapes import EntryShape, shape_of
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import Commit, Ended, Summariser, SummaryAnswer, SummaryRequest
from sessions_app.engine.view import ViewMessage, build

__all__ = [
    "Checkpoint",
    "Commit",
    "Ended",
    "Entry",
    "EntryShape",
    "ExtractiveSummariser",
    "IllegalBoundary",
    "MechanicalState",
    "Part",
    "Plan",
    "Policy",
    "Segment",
    "Summariser",
    "SummaryAnswer",
    "SummaryRequest",
    "SyntheticMessage",
    "Task",
    "Usage",
    "ViewMessage",
    "build",
    "checkpoint_of",
    "choose",
    "collect",
    "compact",
    "fate_of",
    "make_plan",
    "message",
    "run",
    "shape_of",
]
