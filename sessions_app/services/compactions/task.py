"""What an attempt is about, as the engine takes it: built from the attempt's row and its session."""

from collections.abc import Sequence

from sessions_app.engine.attempt import Task
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Trigger
from sessions_app.models import Compaction
from sessions_app.providers.crew import ThreadCrew
from sessions_app.providers.registry import summarisers_for
from sessions_app.selectors import plans
from sessions_app.services.compactions.commit import InForce


def task_of(compaction: Compaction, shapes: Sequence[EntryShape], policy: Policy) -> Task:
    """The task of an attempt with its `session`; it need not be stored yet.

    The window is the one that its trigger was about: the new model's at a switch. What a provider refused as too long
    fills its window, whatever the view was believed to occupy.
    """
    session = compaction.session
    trigger = Trigger(compaction.trigger)
    window = int(compaction.evaluation.get("window") or session.window)
    signal = session.signal_tokens or 0
    return Task(
        shapes=shapes,
        load=lambda first, last: plans.load_entries(session.pk, first, last),
        chain=plans.load_chain(session),
        previous_summary=InForce.of(session).summary(),
        policy=policy,
        window=window,
        signal_tokens=max(signal, window) if trigger is Trigger.OVERFLOW else signal,
        summarisers=summarisers_for(policy),
        trigger=trigger,
        instructions=compaction.instructions,
        goal=session.goal,
        force=compaction.force,
        boundary=compaction.boundary_index,
        crew=ThreadCrew(),
        calibration=plans.calibration_of(session),
    )
