"""The events of one session, newest first, read by sequence."""

from dataclasses import dataclass

from sessions_app.events.log import session_stream
from sessions_app.models import Event, Session

PAGE_EVENTS = 100


@dataclass(frozen=True)
class EventsPage:
    """A page of events. `older` is the sequence before which older ones lie, or None."""

    events: tuple[Event, ...]
    older: int | None
    is_newest: bool


def events_page(session: Session, *, before: int | None = None) -> EventsPage:
    """The newest events, or those before a sequence; one query."""
    events = Event.objects.filter(stream=session_stream(session.pk))
    if before is not None:
        events = events.filter(seq__lt=before)
    found = list(events.order_by("-seq")[: PAGE_EVENTS + 1])
    shown = tuple(found[:PAGE_EVENTS])
    return EventsPage(events=shown, older=shown[-1].seq if len(found) > PAGE_EVENTS else None, is_newest=before is None)
