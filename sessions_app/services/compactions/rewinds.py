"""What an agent's rewind does to a checkpoint whose summary it goes behind: nothing, and the checkpoint says so."""

import uuid
from collections.abc import Collection

from sessions_app.engine.terms import Lineage, Status
from sessions_app.models import Compaction
from sessions_app.selectors.prefixes import REWOUND


def note(session_id: uuid.UUID, moved: Collection[int]) -> None:
    """Warns on each of this console's checkpoints that covers one of these entries, which left the live branch or came back to it.

    A view never changes by itself: its block goes on telling what it told. Drafts and running attempts end as stale by themselves.
    """
    if not moved:
        return
    covering = Compaction.objects.filter(session_id=session_id, lineage=Lineage.CONSOLE, status=Status.COMPLETED)
    for compaction in covering.filter(boundary_index__gt=min(moved)).only("pk", "warnings"):
        if REWOUND not in compaction.warnings:
            Compaction.objects.filter(pk=compaction.pk).update(warnings=[*compaction.warnings, REWOUND])
