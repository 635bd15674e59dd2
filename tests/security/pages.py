"""Every address under which something of a session is shown."""

from collections.abc import Iterator

from django.urls import reverse

from sessions_app.models import Compaction, Entry, Session

LAYOUTS = ("canonical", "view", "split")


def pages_of(session: Session) -> Iterator[str]:
    """The pages of a session: every layout from its start, each tab, each checkpoint."""
    detail = reverse("session-detail", args=[session.pk])
    for layout in LAYOUTS:
        yield f"{detail}?layout={layout}&start=0"
        yield f"{detail}?layout={layout}"
    for name in ("compaction-list", "session-events", "session-raw", "session-exports", "compaction-create", "compaction-panel"):
        yield reverse(name, args=[session.pk])
    if session.project_id is not None:
        yield reverse("memory-project", args=[session.project_id])
    for compaction in Compaction.objects.filter(session=session):
        yield reverse("compaction-detail", args=[session.pk, compaction.pk])


def pages_of_entries(session: Session, *, limit: int) -> Iterator[str]:
    """For the first entries: permalink, raw record, and the whole text of each part."""
    for entry in Entry.objects.filter(session=session).order_by("index")[:limit]:
        yield reverse("entry-detail", args=[session.pk, entry.index])
        yield reverse("entry-raw", args=[session.pk, entry.index])
        yield reverse("part-text", args=[session.pk, entry.index, 0])
