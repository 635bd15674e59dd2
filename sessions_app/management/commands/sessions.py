"""`manage.py sessions`: the list of sessions, with the filters, the order and the pages that its page has."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.forms import SessionListForm
from sessions_app.management.arguments import add_form_options, add_limit, bound_form, check_known
from sessions_app.management.base import ConsoleCommand, project_named
from sessions_app.management.output import Column
from sessions_app.management.shapes import session_shape
from sessions_app.models.ids import short
from sessions_app.permissions import Action, require
from sessions_app.selectors.agents import AGENT_NAMES
from sessions_app.selectors.session_filters import SessionFilters, facets_and_matching
from sessions_app.selectors.session_list import SessionRow, session_list_page

PAGE = 500
PLACE = ("sort", "after")
FILTER_WORDS = {
    "view": "one of the views above the list",
    "q": "what the list is searched for",
    "agent": "the agent's name, such as claude-code or codex",
    "model": "the model's name",
    "status": "what the session is doing",
    "project": "the project's name, key or id",
    "kind": "whose context it is",
    "pressure": "at least so many per cent of the window are used",
}
COLUMNS = (
    Column("ID"),
    Column("TITLE", stretches=True, least=16),
    Column("AGENT", rank=4),
    Column("STATUS", rank=1),
    Column("CONTEXT", rank=2, right=True),
    Column("ENTRIES", rank=3, right=True),
    Column("COMPACTED", rank=6, right=True),
    Column("ACTIVE (UTC)", rank=5),
)


class Command(ConsoleCommand):
    help = "Lists sessions, the latest first. The id in the first column is the end of the whole one; every command takes it."
    examples = (
        ("sessions --view attention", "those that need somebody"),
        ("sessions --agent codex --pressure 80 --sort context", "the fullest Codex sessions first"),
        ("sessions --json --limit 20", "one document, with the cursor of the next page"),
        ("sessions --jsonl --limit 0", "all of them, an object a line"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        add_form_options(parser, SessionListForm, FILTER_WORDS, without=PLACE)
        place = parser.add_argument_group("order and place")
        orders = [value for value, _ in SessionListForm.base_fields["sort"].choices]  # type: ignore[attr-defined]
        place.add_argument("--sort", choices=orders, metavar="COLUMN", help=f"{', '.join(one for one in orders if one[0] != '-')}")
        place.add_argument("--reverse", action="store_true", help="the other way round")
        place.add_argument("--after", default="", metavar="CURSOR", help="go on where the page before ended")
        add_limit(place, of="sessions")

    def run(self, options: Mapping[str, Any]) -> None:
        require(self.actor, Action.READ)
        listing = _Listing(options)
        if self.out.is_json:
            ids = {"first_id": lambda: listing.first_id, "last_id": lambda: listing.last_id}
            end = {"has_more": lambda: bool(listing.next), "next": lambda: listing.next or None, "matching": lambda: listing.matching}
            self.out.objects((session_shape(row) for row in listing), tail={**ids, **end})
            return
        rows = [_cells(row) for row in listing]
        if not rows:
            self.out.note("No session matches.")
            return
        self.out.table(COLUMNS, rows)
        if listing.next:
            self.out.note(f"{len(rows):,} of {listing.matching:,}. Go on with --after {listing.next}")


class _Listing:
    """The rows that are asked for, page by page; what stands around them is known once they were read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        project = project_named(options["project"]).pk if options["project"] else None
        form = bound_form(SessionListForm, dict(options) | {"project": project})
        self._filters = form.filters()
        _check(self._filters)
        self._sort, is_reversed = form.order()
        self._reverse = is_reversed != options["reverse"]
        self._limit = options["limit"]
        self.next = options["after"]
        self.matching = 0
        self.first_id: uuid.UUID | None = None
        self.last_id: uuid.UUID | None = None

    def __iter__(self) -> Iterator[SessionRow]:
        left = self._limit or None
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = session_list_page(self._filters, sort=self._sort, reverse=self._reverse, cursor=self.next, size=size)
            self.matching = page.matching
            for row in page.rows:
                self.first_id = self.first_id or row.id
                self.last_id = row.id
                yield row
            self.next = page.position.next
            if not self.next:
                return
            left = None if left is None else left - len(page.rows)


def _check(filters: SessionFilters) -> None:
    """Raises `CommandFailure` on an agent or a model that no session has, where there are any sessions."""
    facets, _ = facets_and_matching(SessionFilters())
    offered = {choices.name: [choice.value for choice in choices.offered] for choices in facets.choices}
    if offered["agent"]:
        check_known("agent", filters.agent, [*offered["agent"], *AGENT_NAMES])
        check_known("model", filters.model, offered["model"])


def _cells(row: SessionRow) -> tuple[object, ...]:
    meter = row.meter
    about = "~" if meter.is_estimated else ""
    context = "unknown" if meter.share is None else f"{about}{meter.share:.0%} of {meter.window // 1000}k"
    status = f"{row.status} {row.chunk[0]}/{row.chunk[1]}" if row.chunk else row.status
    return short(row.id), row.title, row.agent, status, context, f"{row.entries:,}", row.compactions, f"{row.active_at:%Y-%m-%d %H:%M}"
