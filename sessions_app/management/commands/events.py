"""`manage.py events`: the audit log, with the filters that its page has; or what happened to one session."""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.events.log import session_stream
from sessions_app.events.types import EventType
from sessions_app.forms import AuditForm
from sessions_app.management.arguments import add_form_options, bound_form, check_known, count
from sessions_app.management.base import ConsoleCommand, session_named
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import event_shape
from sessions_app.models import Event
from sessions_app.permissions import Action, allows, require
from sessions_app.rendering.ledger import event_line
from sessions_app.selectors import audit, audit_streams
from sessions_app.selectors.audit import AuditFilters
from sessions_app.selectors.new_events import events_between
from sessions_app.services import audit as audits
from sessions_app.services.access import record_view

LOOK_S = 0.5
LIMIT = 50
ALWAYS_THERE = ("", "security", "access", "imports")  # kinds of streams that may be asked for before anything stands in them
PLACE = ("before", "after", "opened", "newer_than", "format", "session")
FILTER_WORDS = {
    "stream": "one stream, such as security or access:2026-11-30",
    "family": "a kind of streams",
    "actor": "who did it: the name",
    "kind": "what did it: a person, the command line, the system …",
    "role": "the role that it had then",
    "action": "the type, such as compaction.requested",
    "target": "id of what it was done to",
    "result": "how it went",
    "compaction": "id of an attempt",
    "request": "id of a page request",
    "gesture": "id of a click",
    "address": "the network address it came from",
    "since": "from this moment on, UTC: 2026-11-30 or 2026-11-30T21:00",
    "until": "before this moment",
    "q": "words in it",
}
COLUMNS = (
    Column("ID", rank=5, right=True),
    Column("AT (UTC)"),
    Column("ACTOR", rank=1),
    Column("ROLE", rank=4),
    Column("TYPE"),
    Column("RESULT", rank=3),
    Column("FACTS", rank=2, stretches=True, least=20),
)


class Command(ConsoleCommand):
    help = (
        "Shows the latest events that match, the newest last. All streams are for admins; "
        "with --session and no other filter, everybody who may read a session sees its events."
    )
    examples = (
        ("events --session 44c5e046", "what happened to a session"),
        ("events --result refused --since 2026-11-01", "what was refused this month"),
        ("events --action compaction.requested --follow", "requests as they come, until Ctrl-C"),
        ("events --actor ana --jsonl", "an object a line"),
        ("events --family security --export csv > FILE", "all that match, with their hashes; noted as an export"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--session", default="", metavar="SESSION", help="id of a session, or the beginning or end of it")
        add_form_options(parser, AuditForm, FILTER_WORDS, without=PLACE)
        place = parser.add_argument_group("how many, and how")
        place.add_argument("--limit", type=count, default=LIMIT, metavar="N", help=f"at most so many, from 1 (default: {LIMIT})")
        place.add_argument("--before", type=count, metavar="ID", help="only those before this event")
        place.add_argument("-f", "--follow", action="store_true", help="go on with new ones as they come, until Ctrl-C")
        place.add_argument("--export", choices=["jsonl", "csv"], help="all that match, the oldest first, as the page exports them")

    def run(self, options: Mapping[str, Any]) -> None:
        if not options["limit"]:
            raise CommandFailure(
                "At least one event: --limit takes a number from 1. For all of them use --export.", Exit.USAGE, field="limit"
            )
        filters = bound_form(AuditForm, dict(options) | {"session": None}).filters()
        check_known("action", filters.action, list(EventType))
        filters = self._allowed(filters, options["session"])
        if options["export"]:
            for block in audits.export(actor=self.actor, filters=filters, file_format=options["export"]):
                self.out.raw(block)
            return
        latest, more = _latest(filters, options["limit"], options["before"])
        if options["follow"]:
            self._follow(filters, latest)
        elif self.out.is_json:
            self.out.objects((event_shape(event) for event in latest), tail={"has_more": more is not None, "next": more})
        elif latest:
            self.out.table(COLUMNS, [_cells(event) for event in latest])
            if more is not None:
                self.out.note(f"Older ones: --before {more}")
        else:
            self.out.note("No event matches.")

    def _allowed(self, filters: AuditFilters, named: str) -> AuditFilters:
        """The filters with the session that was named; for those who may not audit, its stream alone."""
        if named and filters == AuditFilters() and not allows(self.actor, Action.AUDIT):
            session = session_named(self.actor, named, Action.READ)
            record_view(actor=self.actor, session=session)
            return AuditFilters(stream=session_stream(session.pk))
        require(self.actor, Action.AUDIT, target=audits.TARGET)
        if named:
            filters = replace(filters, session=str(session_named(self.actor, named, Action.READ).pk))
        if filters.stream.partition(":")[0] not in ALWAYS_THERE and not audit_streams.exists(filters.stream):
            check_known("stream", filters.stream, {"security", "imports", *audit_streams.shared_names()})
        audits.record_view(actor=self.actor, filters=filters)
        return filters

    def _follow(self, filters: AuditFilters, latest: list[Event]) -> None:
        last = audit.newest_id()
        self._tell_as_they_come(latest)
        try:
            while True:
                time.sleep(LOOK_S)
                newest = audit.newest_id()
                if newest > last:
                    self._tell_as_they_come(list(events_between(filters, last, newest)))
                    last = newest
        except KeyboardInterrupt:
            return

    def _tell_as_they_come(self, events: list[Event]) -> None:
        for event in events:
            if self.out.is_json:
                self.out.document(event_shape(event))
            else:
                self.out.line("  ".join(str(cell) for cell in _cells(event)[1:]))
        sys.stdout.flush()


def _latest(filters: AuditFilters, limit: int, before: int | None) -> tuple[list[Event], int | None]:
    """The newest events that match, the oldest of them first, and the id before which there are more."""
    found: list[Event] = []
    has_more = True
    while has_more and len(found) <= limit:
        page = audit.audit_page(filters, before=before)
        found += page.events
        before, has_more = page.older, page.older is not None
    kept = found[:limit]
    is_cut = has_more or len(found) > limit
    return kept[::-1], kept[-1].pk if is_cut and kept else None


def _cells(event: Event) -> tuple[object, ...]:
    line = event_line(event)
    target = f"{event.target_kind} {event.target_id[-8:]}" if event.target_id else ""
    facts = " · ".join(filter(None, (target, line.facts)))
    return event.pk, f"{event.at[:10]} {event.at[11:19]}", line.actor, line.role, event.type, event.result, facts
