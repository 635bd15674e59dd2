"""One session, or all, looked at from every side."""

import uuid
from collections.abc import Iterator

from sessions_app.models import Session
from sessions_app.services.doctor import rows, views, work
from sessions_app.services.doctor.findings import Examined, Finding, in_order

PAGE = 200


def all_ids() -> Iterator[uuid.UUID]:
    """Every session there is, hidden and archived ones too, the oldest first."""
    last: uuid.UUID | None = None
    while page := list(
        (Session.objects.filter(pk__gt=last) if last else Session.objects).order_by("pk").values_list("pk", flat=True)[:PAGE]
    ):
        yield from page
        last = page[-1]


def examine(session_id: uuid.UUID) -> Examined | None:
    """What is wrong with one session; None where there is none of that id. Reads it once from end to end, and changes nothing."""
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        return None
    return Examined(session.pk, session.title, in_order(list(_findings(session))))


def _findings(session: Session) -> Iterator[Finding]:
    if not session.is_complete:
        yield from work.unfinished(session)
        return
    yield from rows.findings_of(session.pk)
    yield from views.findings_of(session)
    yield from work.findings_of(session)
