"""Sessions whose time of last activity can't be true, from when it was taken as their sources tell it."""

from datetime import UTC, datetime

from django.db.models import Q, QuerySet

from sessions_app import prepared
from sessions_app.models import Entry, Session
from sessions_app.readers.times import AHEAD, FIRST, can_be, parse_time


def in_doubt() -> QuerySet[Session]:
    """The sessions that stand out of their place in every list that is in order of time."""
    return Session.objects.filter(Q(last_activity_at__gt=datetime.now(UTC) + AHEAD) | Q(last_activity_at__lt=FIRST))


def plausible_time(session: Session) -> datetime:
    """When it was last active, as far as its entries tell a time that can be true; else when it was imported."""
    now = datetime.now(UTC)
    latest = session.created_at
    times = Entry.objects.filter(session=session, synthetic_time=False).order_by().values_list("timestamp", flat=True).distinct()
    told = [moment for text in times.iterator(chunk_size=1_000) if (moment := parse_time(text)) is not None and can_be(moment, now)]
    return max(told, default=latest)


def set_right(session: Session) -> datetime:
    """Gives a session its place in time back. Entries keep the times that their source tells."""
    last = plausible_time(session)
    prepared.save(session, last_activity_at=last)
    return last
