"""`manage.py policy`: what a policy says and where each value comes from; sets and resets values."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.policy import PolicyError
from sessions_app.engine.policy_fields import FIELDS, PolicyField, in_words, read
from sessions_app.management.base import ConsoleCommand, project_named, session_named
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import Shape, iso
from sessions_app.permissions import Action, require
from sessions_app.selectors import policies
from sessions_app.selectors.policies import FieldRow, Place, PolicyPage
from sessions_app.services import policies as changes

COLUMNS = (
    Column("FIELD"),
    Column("VALUE", stretches=True, least=12),
    Column("FROM"),
    Column("WITHOUT IT", rank=2, stretches=True, least=12),
    Column("RANGE", rank=3, stretches=True, least=12),
    Column("SET BELOW", rank=4, right=True),
)


class Command(ConsoleCommand):
    help = (
        "Shows the policy of the installation, a project or a session: each value, where it comes from, and what would hold without it. "
        "Sets and resets values there, all of a call or none."
    )
    examples = (
        ("policy", "what holds for the whole installation"),
        ("policy --project Payments", "for a project, named by its name, key or id"),
        ("policy --session 44c5e046 --json", "for a session, as a document"),
        ("policy --set threshold_pct=70 cap_tokens=160k", "what an admin's save on the page does"),
        ("policy --session 44c5e046 --reset profile", "the session has the project's again"),
    )

    def add_options(self, parser: CommandParser) -> None:
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--project", metavar="PROJECT", help="of this project: its name, key or id")
        where.add_argument("--session", metavar="SESSION", help="of this session: its id, or the beginning or end of it")
        parser.add_argument(
            "--set", nargs="+", action="extend", default=[], metavar="FIELD=VALUE", dest="values", help="as the page writes it"
        )
        parser.add_argument("--reset", nargs="+", action="extend", default=[], metavar="FIELD", help="what is above holds again")

    def run(self, options: Mapping[str, Any]) -> Exit:
        require(self.actor, Action.READ)
        place = self._place(options)
        values, unset = _values(options["values"]), [_field(name, "reset").name for name in options["reset"]]
        if both := sorted(values.keys() & set(unset)):
            raise CommandFailure(f"{both[0]} is to be set and reset at once. Nothing was changed.", Exit.USAGE, field=both[0])
        saved = self._change(place, values, unset) if values or unset else None
        page = policies.policy_page(place)
        if self.out.is_json:
            self.out.document(_shape(page, saved))
        else:
            self._show(page, saved)
        return Exit.NOTHING_TO_DO if saved is not None and not saved.changed else Exit.OK

    def _place(self, options: Mapping[str, Any]) -> Place:
        if options["session"] is not None:
            return policies.session_place(session_named(self.actor, options["session"], Action.READ))
        if options["project"] is None:
            return policies.installation()
        place = policies.project_place(project_named(options["project"]).pk)
        if place is None:
            raise CommandFailure("The project is gone. Nothing was changed.", Exit.NOT_FOUND)
        return place

    def _change(self, place: Place, values: dict[str, object], unset: list[str]) -> changes.Saved:
        try:
            return changes.change(actor=self.actor, scope=place.scope, scope_id=place.scope_id, values=values, unset=unset)
        except PolicyError as error:
            sentence = f"{in_words(str(error))} Nothing was changed."
            raise CommandFailure(sentence, Exit.USAGE, field=next(iter(error.fields), "")) from error

    def _show(self, page: PolicyPage, saved: changes.Saved | None) -> None:
        if saved is not None:
            told = f"Changed: {', '.join(saved.changed)}." if saved.changed else "Nothing was changed: all of it is so already."
            self.out.note(told + (f" The meters of {saved.due:,} sessions follow in the next minutes." if saved.due else ""))
            rows = [row for row in page.rows.values() if row.field.name in saved.changed]
        else:
            rows = list(page.rows.values())
        if rows:
            self.out.table(COLUMNS, map(_cells, rows))


def _values(given: list[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in map(_read, given):
        if name in values:
            raise CommandFailure(f"{name} is set twice. Nothing was changed.", Exit.USAGE, field=name)
        values[name] = value
    return values


def _read(pair: str) -> tuple[str, object]:
    name, equals, text = pair.partition("=")
    field = _field(name.strip(), "set")
    if not equals:
        raise CommandFailure(f"--set takes FIELD=VALUE, not {pair[:60]!r}. Nothing was changed.", Exit.USAGE, field=field.name)
    try:
        return field.name, read(field, text)
    except PolicyError as error:
        raise CommandFailure(f"{error} Nothing was changed.", Exit.USAGE, field=field.name) from error


def _field(name: str, option: str) -> PolicyField:
    if name not in FIELDS:
        message = f"A policy has no field {name[:60]!r}; it has {', '.join(FIELDS)}. Nothing was changed."
        raise CommandFailure(message, Exit.USAGE, field=option)
    return FIELDS[name]


def _cells(row: FieldRow) -> Sequence[object]:
    return row.field.name, row.value, row.source, row.without if row.is_own else "", row.field.range_words, row.narrower or ""


def _shape(page: PolicyPage, saved: changes.Saved | None) -> Shape:
    own = policies.own_values(page.place)
    told: Shape = {
        "object": "policy",
        "scope": page.place.scope,
        "scope_id": page.place.scope_id or None,
        "title": page.place.title,
        "values": {name: _value_shape(row, own) for name, row in page.rows.items()},
        "sessions_due": page.due,
    }
    return told | ({"changed": list(saved.changed)} if saved is not None else {})


def _value_shape(row: FieldRow, own: Mapping[str, object]) -> Shape:
    return {
        "value": row.value,
        "source": row.source,
        "own": own.get(row.field.name),
        "author": row.author or None,
        "set_at": iso(row.set_at),
        "without": row.without,
        "without_source": row.without_source,
        "range": row.field.range_words or None,
        "set_below": row.narrower,
    }
