"""`manage.py runners [add|change|test|remove]`: the programs that own an agent's loop."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.events import log
from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.models import Runner
from sessions_app.permissions import Action, require
from sessions_app.runners.base import Health
from sessions_app.selectors.runners import RunnerRow, runner_named, runner_row, runner_rows
from sessions_app.services.runners import table
from sessions_app.shapes import Shape, runner_shape

COLUMNS = (
    Column("NAME"),
    Column("ADDRESS", rank=2, stretches=True),
    Column("HEALTH"),
    Column("LAST ANSWER (UTC)", rank=3),
    Column("SESSIONS", rank=4, right=True),
    Column("LAST ERROR", rank=1, stretches=True),
)
LIST, ADD, CHANGE, TEST, REMOVE = "list", "add", "change", "test", "remove"


class Command(ConsoleCommand):
    help = (
        "Lists, adds, changes, tests and removes runners: programs that own an agent's loop, and are asked to compact before this console "
        "does. A credential is never given here, but the name of the variable that holds it."
    )
    examples = (
        ("runners", "all that there are"),
        ("runners add box --url http://127.0.0.1:8900", "one on this machine"),
        ("runners add box --url http://127.0.0.1:8900 --credential RUNNER_TOKEN_BOX", "with a bearer token from the environment"),
        ("runners test box", "asks it whether it is there; code 1 where it is not"),
        ("runners remove box", "its sessions are bound to none from then on"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("verb", nargs="?", choices=[LIST, ADD, CHANGE, TEST, REMOVE], default=LIST)
        parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the runner's name or id")
        parser.add_argument("--url", default=None, metavar="URL", help="its address; events are posted below it")
        parser.add_argument("--credential", default=None, metavar="VARIABLE", help="variable with its bearer token: RUNNER_TOKEN_…")
        parser.add_argument("--rename", default="", metavar="NAME", help="with change: its new name")

    def run(self, options: Mapping[str, Any]) -> Exit | None:
        require(self.actor, Action.MANAGE_RUNNERS, stream=log.SECURITY)
        verb = options["verb"]
        if verb == LIST:
            self._list()
            return None
        if not options["name"]:
            raise CommandFailure(f"Which runner? runners {verb} NAME. Nothing was done.", Exit.USAGE, field="name")
        if verb == ADD:
            self._test(self._add(options))
            return None
        runner = runner_named(options["name"])
        if runner is None:
            raise CommandFailure(f"There is no runner {options['name'][:80]!r}. Nothing was done.", Exit.NOT_FOUND, field="name")
        if verb == REMOVE:
            bound = table.remove(actor=self.actor, runner=runner)
            self._show({"object": "runner", "name": runner.name, "removed": True, "unbound": bound}, f"Removed {runner.name}.")
            return None
        if verb == CHANGE:
            self._test(self._change(runner, options))
            return None
        return self._test(runner)

    def _list(self) -> None:
        rows = runner_rows()
        if self.out.is_json:
            self.out.objects(runner_shape(row) for row in rows)
        elif rows:
            self.out.table(COLUMNS, [_cells(row) for row in rows])
        else:
            self.out.note("There is no runner. Add one: runners add NAME --url URL")

    def _add(self, options: Mapping[str, Any]) -> Runner:
        if not options["url"]:
            raise CommandFailure("Where is it? runners add NAME --url URL. Nothing was done.", Exit.USAGE, field="url")
        variable = options["credential"] or ""
        return table.add(actor=self.actor, name=options["name"], base_url=options["url"], credential_variable=variable)

    def _change(self, runner: Runner, options: Mapping[str, Any]) -> Runner:
        return table.change(
            actor=self.actor,
            runner=runner,
            name=options["rename"] or runner.name,
            base_url=runner.base_url if options["url"] is None else options["url"],
            credential_variable=runner.credential_variable if options["credential"] is None else options["credential"],
        )

    def _test(self, runner: Runner) -> Exit | None:
        """Asks it, and tells what that came to. Added or changed it is in any case; only a test ends by its answer."""
        report = table.test(actor=self.actor, runner=runner)
        row = runner_row(runner.pk)
        assert row is not None
        self._show(runner_shape(row), f"{runner.name} answers." if not report.problem else f"{runner.name} is down. {report.problem}")
        return None if report.health is Health.UP else Exit.FAILED

    def _show(self, shape: Shape, sentence: str) -> None:
        if self.out.is_json:
            self.out.document(shape)
        else:
            self.out.line(sentence)


def _cells(row: RunnerRow) -> tuple[object, ...]:
    seen = f"{row.last_seen_at:%Y-%m-%d %H:%M}" if row.last_seen_at else "never"
    return row.name, row.base_url, row.health, seen, row.sessions, row.last_error
