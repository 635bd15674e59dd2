"""Events as they come, for whoever follows the log."""

from collections.abc import Iterator

from sessions_app.models import Event
from sessions_app.selectors.audit import AuditFilters, filters_condition

AT_ONCE = 500


def events_between(filters: AuditFilters, after: int, upto: int) -> Iterator[Event]:
    """Matching events behind one id, up to another, the oldest first; one query for so many."""
    condition = filters_condition(filters)
    while True:
        events = list(Event.objects.filter(condition, pk__gt=after, pk__lte=upto).order_by("pk")[:AT_ONCE])
        yield from events
        if len(events) < AT_ONCE:
            return
        after = events[-1].pk
