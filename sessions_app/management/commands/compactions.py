"""`manage.py compactions SESSION`: the ledger of a session, and one attempt opened."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.arguments import add_limit, count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import detail_shape, ledger_shape
from sessions_app.selectors.compactions_page import AttemptDetail, LedgerRow, attempt_detail, ledger_page
from sessions_app.services.access import record_view

COLUMNS = (
    Column("NO."),
    Column("OUTCOME"),
    Column("BEFORE", rank=2, right=True),
    Column("AFTER", rank=2, right=True),
    Column("FOLDED", rank=4, right=True),
    Column("BY", rank=3),
    Column("SUMMARY BY", rank=6),
    Column("TOOK", rank=5, right=True),
    Column("STARTED (UTC)", rank=1),
    Column("WHY", rank=7, stretches=True, least=20),
)


class Command(SessionCommand):
    help = "Lists the compactions of a session, the latest first: what each came to, and which is in force (*)."
    examples = (
        ("compactions 44c5e046", "the ledger"),
        ("compactions 44c5e046 --attempt 1", "one of them: summary, state, the policy as it was"),
        ("compactions 44c5e046 --jsonl | tail -n 1", "the first there was, as an object"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--attempt", type=count, metavar="N", help="open the attempt of this number: a3 is 3")
        parser.add_argument("--generation", type=count, metavar="N", help="open the checkpoint of this number: #2 is 2")
        parser.add_argument("--before", type=count, metavar="N", help="only attempts before this number")
        add_limit(parser, of="attempts")

    def run(self, options: Mapping[str, Any]) -> None:
        record_view(actor=self.actor, session=self.session)
        if options["attempt"] is not None or options["generation"] is not None:
            self._tell_one(self._opened(options))
            return
        listing = self._rows(options["before"], options["limit"])
        if self.out.is_json:
            self.out.objects(ledger_shape(row) for row in listing)
            return
        rows = [_cells(row) for row in listing]
        if rows:
            self.out.table(COLUMNS, rows)
        else:
            self.out.note("This session was never compacted." if options["before"] is None else "There is no attempt before that one.")

    def _rows(self, before: int | None, limit: int) -> Iterator[LedgerRow]:
        given = 0
        while True:
            page = ledger_page(self.session, before=before)
            for row in page.rows:
                if limit and given >= limit:
                    return
                given += 1
                yield row
            before = page.older
            if before is None:
                return

    def _opened(self, options: Mapping[str, Any]) -> AttemptDetail:
        attempt, generation = options["attempt"], options["generation"]
        rows = self._rows(None, 0)
        wanted = (row for row in rows if row.attempt.attempt == attempt or (attempt is None and row.attempt.generation == generation))
        row = next(wanted, None)
        detail = attempt_detail(self.session, row.attempt.id) if row is not None else None
        if detail is None:
            named = f"attempt {attempt}" if attempt is not None else f"checkpoint #{generation}"
            raise CommandFailure(f"This session has no {named}.", Exit.NOT_FOUND)
        return detail

    def _tell_one(self, detail: AttemptDetail) -> None:
        if self.out.is_json:
            self.out.document(detail_shape(detail))
            return
        attempt = detail.row.attempt
        self.out.line(f"a{attempt.attempt}{f' #{attempt.generation}' if attempt.generation else ''} {_outcome(detail.row)}")
        for name, value in _facts(detail):
            if value not in (None, "", 0, ()):
                self.out.line(f"  {name}: {value}")
        for title, text in (("Summary", detail.summary), ("Block", detail.block)):
            if text:
                self.out.line()
                self.out.line(f"== {title}")
                self.out.text(text)


def _facts(detail: AttemptDetail) -> Iterator[tuple[str, object]]:
    attempt = detail.row.attempt
    yield "why", attempt.explanation or (detail.evaluation.explanation if detail.evaluation else "")
    yield "requested by", attempt.requested_by
    yield "started from", detail.started_from
    yield "boundary", detail.boundary_index
    yield "folded", f"{attempt.entries_folded:,} entries, {attempt.entries_kept:,} kept"
    yield "tokens", f"{_tokens(attempt.tokens_before)} before ({attempt.before_origin} {attempt.before_scope})"
    yield "counted by", detail.estimator
    yield "tokens", f"{_tokens(attempt.tokens_after)} after ({attempt.after_origin} {attempt.after_scope})"
    for rung in detail.rungs:
        sizes = f"{rung.tokens_before:,} → {rung.tokens_after:,} tokens, {rung.entries:,} entries"
        yield "rung", f"{rung.name}: {sizes}{f'. {rung.note}' if rung.note else ''}"
    for call in detail.tried:
        if call.refused:
            yield "not used", f"{call.summariser}, chunk {call.chunk_index}: {call.refused}"
    yield "summary by", attempt.summariser
    if detail.cost_usd is not None:
        yield "cost", f"${detail.cost_usd:.4f} by list prices"
    if detail.memory is not None:
        yield "memory", f"{detail.memory.status.replace('_', ' ')}. {detail.memory.words}"
    yield "instructions", detail.instructions
    yield "standing instructions", detail.standing_instructions
    for warning in attempt.warnings:
        yield "warning", warning
    for one in detail.state:
        yield one.name, f"{one.total} ({'; '.join(one.lines)})"


def _outcome(row: LedgerRow) -> str:
    return (row.attempt.outcome or row.attempt.status).replace("_", " ") + ("*" if row.is_active else "")


def _tokens(amount: int | None) -> str:
    return "" if amount is None else f"{amount:,}"


def _cells(row: LedgerRow) -> tuple[object, ...]:
    attempt = row.attempt
    return (
        f"#{attempt.generation}" if attempt.generation else f"a{attempt.attempt}",
        _outcome(row),
        _tokens(attempt.tokens_before),
        _tokens(attempt.tokens_after),
        f"{attempt.entries_folded:,}",
        attempt.requested_by or row.lineage,
        attempt.summariser or attempt.summary_source,
        "" if attempt.duration_s is None else f"{attempt.duration_s:.1f} s",
        f"{attempt.since:%Y-%m-%d %H:%M}",
        attempt.explanation,
    )
