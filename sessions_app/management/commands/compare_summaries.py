"""`manage.py compare_summaries [SESSION…|--all]`: agents' own summaries beside ours of the same entries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.comparison import Comparison, Side
from sessions_app.management.base import ConsoleCommand, session_named
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import Shape
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session
from sessions_app.selectors.summary_comparison import compare_summaries, sessions_with_agent_summaries
from sessions_app.services.access import record_view

COLUMNS = (
    Column("SESSION"),
    Column("ENTRIES", right=True),
    Column("WHOSE"),
    Column("TOKENS", right=True, rank=3),
    Column("KEPT", right=True),
    Column("PARAPHRASED", right=True, rank=1),
    Column("DROPPED", right=True),
    Column("UNSUPPORTED", right=True, rank=2),
)


class Command(ConsoleCommand):
    help = (
        "Compares each summary that an agent made itself with the one that this console makes of the same entries without a "
        "model, at the same length: how many of the entries' facts each keeps, and what each says that no entry does."
    )
    examples = (
        ("compare_summaries 44c5e046", "every summary of one session's agent"),
        ("compare_summaries --all --json", "all sessions, with the unsupported claims by name"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("sessions", nargs="*", metavar="SESSION", help="the session's id, or the beginning or end of it")
        parser.add_argument("--all", action="store_true", dest="everything", help="all sessions whose agent left a summary")

    def run(self, options: Mapping[str, Any]) -> Exit | None:
        if bool(options["sessions"]) == options["everything"]:
            raise CommandFailure("Name sessions, or say --all. Nothing was done.", Exit.USAGE, field="sessions")
        found = [(session, one) for session in self._sessions(options) for one in compare_summaries(session)]
        if self.out.is_json:
            self.out.document({"comparisons": [_shape(session, one) for session, one in found], "total": _total([one for _, one in found])})
        elif found:
            self.out.table(COLUMNS, [row for session, one in found for row in _rows(session, one)] + _total_rows([one for _, one in found]))
        else:
            self.out.note("No agent of these sessions left a summary that can be read.")
        return None

    def _sessions(self, options: Mapping[str, Any]) -> Iterator[Session]:
        ids = sessions_with_agent_summaries() if options["everything"] else []
        named = [session_named(self.actor, text, Action.READ) for text in options["sessions"]]
        for session in [*named, *(access_session(self.actor, one, Action.READ) for one in ids)]:
            record_view(actor=self.actor, session=session)
            yield session


def _rows(session: Session, one: Comparison) -> Iterator[tuple[object, ...]]:
    entries = f"{one.first}–{one.last}"
    yield (session.pk, entries, "agent", *_numbers(one.theirs))
    yield ("", "", "ours", *_numbers(one.ours))


def _total_rows(found: Sequence[Comparison]) -> list[tuple[object, ...]]:
    total = _total(found)
    return [("in all" if whose == "agent" else "", "", whose, *total[whose].values()) for whose in ("agent", "ours")]


def _numbers(side: Side) -> tuple[int, ...]:
    return side.tokens, side.count.kept, side.count.paraphrased, side.count.dropped, len(side.unsupported)


def _total(found: Sequence[Comparison]) -> dict[str, dict[str, int]]:
    names = ("tokens", "kept", "paraphrased", "dropped", "unsupported")
    sides = {"agent": [_numbers(one.theirs) for one in found], "ours": [_numbers(one.ours) for one in found]}
    return {whose: {name: sum(row[place] for row in rows) for place, name in enumerate(names)} for whose, rows in sides.items()}


def _shape(session: Session, one: Comparison) -> Shape:
    return {"session": session.pk, "first": one.first, "last": one.last, "agent": _side_shape(one.theirs), "ours": _side_shape(one.ours)}


def _side_shape(side: Side) -> Shape:
    return {
        "tokens": side.tokens,
        "kept": side.count.kept,
        "paraphrased": side.count.paraphrased,
        "dropped": side.count.dropped,
        "claims": side.claims,
        "unsupported": [{"kind": claim.kind, "text": claim.text} for claim in side.unsupported],
    }
