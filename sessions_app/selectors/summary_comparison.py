"""The summaries that agents made themselves, beside ours of the same entries."""

import uuid
from collections.abc import Iterator

from sessions_app.engine import comparison
from sessions_app.engine.comparison import Comparison
from sessions_app.engine.terms import Lineage
from sessions_app.models import Compaction, Session
from sessions_app.selectors import plans


def sessions_with_agent_summaries() -> list[uuid.UUID]:
    """Ids of the sessions whose agent left a summary that can be read, in the order of their start."""
    rows = Compaction.objects.filter(lineage=Lineage.AGENT, generation__isnull=False).exclude(summary="")
    return list(rows.order_by("session__started_at", "session_id").values_list("session_id", flat=True).distinct())


def compare_summaries(session: Session) -> Iterator[Comparison]:
    """One comparison for each readable summary of the session's agent. Reads the history once, page by page."""
    rows = Compaction.objects.filter(session=session, lineage=Lineage.AGENT, generation__isnull=False).exclude(summary="")
    summaries = [(index, text) for index, text in rows.order_by("generation").values_list("divider_index", "summary") if index is not None]
    if summaries:
        yield from comparison.compare(plans.load_entries(session.pk, 0, summaries[-1][0]), summaries)
