"""`manage.py drafts`: the summaries that wait for somebody to commit or discard them."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import ConsoleCommand, session_named
from sessions_app.management.output import Column
from sessions_app.management.shapes import Shape, attempt_shape, iso
from sessions_app.permissions import Action, require
from sessions_app.selectors.compaction_panel import panel_of
from sessions_app.selectors.drafts_page import DraftRow, waiting_drafts

COLUMNS = (
    Column("DRAFT"),
    Column("SESSION", stretches=True, least=16),
    Column("BEFORE", rank=2, right=True),
    Column("AFTER", rank=2, right=True),
    Column("VERSION", rank=4),
    Column("ASKED FOR BY", rank=3),
    Column("SINCE (UTC)", rank=5),
    Column("STATE", rank=1, stretches=True, least=10),
)


class Command(ConsoleCommand):
    help = (
        "Lists the drafts that wait for a review, the oldest first: what their commit would do to the view, and whether they still fit it."
    )
    examples = (
        ("drafts", "of all sessions"),
        ("drafts 44c5e046 --json", "of one session, as a document"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("session", metavar="SESSION", nargs="?", help="only of this session: its id, or the beginning or end of it")

    def run(self, options: Mapping[str, Any]) -> None:
        require(self.actor, Action.READ)
        session = session_named(self.actor, options["session"], Action.READ) if options["session"] else None
        rows = waiting_drafts(session)
        if self.out.is_json:
            self.out.objects(draft_shape(row) for row in rows)
        elif rows:
            self.out.table(COLUMNS, [_cells(row) for row in rows])
        else:
            self.out.note("No draft waits for a review.")


def draft_shape(row: DraftRow) -> Shape:
    """A draft as the ledger shows its attempt, with its version and whether it still fits."""
    return attempt_shape(panel_of(row.compaction), lineage=row.compaction.lineage) | {
        "version": row.version,
        "version_by": row.author,
        "drafted_at": iso(row.drafted_at),
        "is_stale": row.fitness.is_stale,
        "is_blocked": row.fitness.is_blocked,
        "why": row.fitness.why,
    }


def _cells(row: DraftRow) -> tuple[object, ...]:
    draft = row.compaction
    return (
        draft.pk.hex[-8:],
        row.session.title,
        f"{draft.tokens_before or 0:,}",
        f"{draft.tokens_after or 0:,}",
        f"{row.version} by {row.author}",
        draft.requested_by,
        f"{row.drafted_at:%Y-%m-%d %H:%M}",
        "fits" if row.fitness.is_fit else f"{'stale' if row.fitness.is_stale else 'blocked'}: {row.fitness.why}",
    )
