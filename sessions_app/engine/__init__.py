"""Compaction as a library: what a history is, what a model sees of it, and how one becomes the other.

Pure: no Django, no network, no clock. Histories come in as entries (or as their shapes, where text is not needed);
`run` yields the steps of one attempt and returns a `Commit`, or `Ended` with the reason; `build` makes the view of a
checkpoint. Nothing here ever changes an entry.

    steps = run(Task(shapes=…, load=…, chain=…, summarisers=[ExtractiveSummariser()], …), should_stop=…)

`message`, `compact` and `checkpoint_of` are the short way in: see docs/library.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.engine.attempt import Task, run
    from sessions_app.engine.boundary import IllegalBoundary, choose
    from sessions_app.engine.entries import Checkpoint, Entry, Part, Segment, SyntheticMessage, Usage
    from sessions_app.engine.extractive import ExtractiveSummariser
    from sessions_app.engine.fates import fate_of
    from sessions_app.engine.library import checkpoint_of, compact, message
    from sessions_app.engine.mechanical import collect
    from sessions_app.engine.plan import Plan
    from sessions_app.engine.plan import make as make_plan
    from sessions_app.engine.policy import Policy
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

_PLACES = {
    "Checkpoint": "entries",
    "Commit": "steps",
    "Ended": "steps",
    "Entry": "entries",
    "EntryShape": "shapes",
    "ExtractiveSummariser": "extractive",
    "IllegalBoundary": "boundary",
    "MechanicalState": "state",
    "Part": "entries",
    "Plan": "plan",
    "Policy": "policy",
    "Segment": "entries",
    "Summariser": "steps",
    "SummaryAnswer": "steps",
    "SummaryRequest": "steps",
    "SyntheticMessage": "entries",
    "Task": "attempt",
    "Usage": "entries",
    "ViewMessage": "view",
    "build": "view",
    "checkpoint_of": "library",
    "choose": "boundary",
    "collect": "mechanical",
    "compact": "library",
    "fate_of": "fates",
    "make_plan": "plan:make",
    "message": "library",
    "run": "attempt",
    "shape_of": "shapes",
}
"""In which module each stands: it is loaded when it is first asked for, since most processes need a few words of the engine alone."""


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, other = place.partition(":")
    found: object = getattr(import_module(f"{__name__}.{module}"), other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
