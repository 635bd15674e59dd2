"""What a session is for, with who said so."""

from dataclasses import dataclass

from sessions_app.events.log import session_stream
from sessions_app.events.types import EventType
from sessions_app.models import Event, Session
from sessions_app.selectors.goals import SessionGoal, goal_of


@dataclass(frozen=True)
class GoalPage:
    """`set_by` and `set_at` (as in the log) are of the last time that somebody set it; empty where it was found."""

    goal: SessionGoal
    set_by: str = ""
    set_at: str = ""


def goal_page(session: Session) -> GoalPage:
    """The goal that stands beside the next summary. One query where somebody set it, else two."""
    goal = goal_of(session)
    if not goal.is_set:
        return GoalPage(goal)
    changes = Event.objects.filter(stream=session_stream(session.pk), type=EventType.SESSION_GOAL_CHANGED).order_by("-at")
    last = changes.values_list("actor_name", "at").first()
    return GoalPage(goal, *last) if last else GoalPage(goal)
