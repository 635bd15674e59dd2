"""What commands have in common: a database that is there, who acts, how results and refusals are told."""

import sys
from abc import ABC, abstractmethod
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter, handle_default_options
from django.db import connections

from sessions_app.events import deferred
from sessions_app.events.actors import Actor
from sessions_app.management.exits import EXIT_WORDS, CommandFailure, Exit, failure_of
from sessions_app.management.output import Output, error_document, leave_quietly, plain_line
from sessions_app.management.preflight import check_data_directory, missing_database, prepare_database
from sessions_app.management.signals import interrupted_by_signals
from sessions_app.models import Project, Session
from sessions_app.permissions import Action, access_session, command_actor, require, unknown_session
from sessions_app.selectors.memory import project_names, projects_like
from sessions_app.selectors.short_ids import session_ids_like


class DatabaseCommand(BaseCommand):
    """Finds a database that is there and up to date, as `up` does. Ends in one sentence where that can't be."""

    may_make_database: ClassVar[bool] = False
    """Whether there is something to do in an empty one. Else one that is gone would be told as one that holds nothing."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        check_data_directory(settings.DATA_DIR)
        missing = missing_database()
        if missing and not self.may_make_database:
            raise CommandError(
                f"There is no database {missing}. Nothing was done. Put it back or give another directory with PALIMPSEST_DATA_DIR; "
                "a new one is made by up, migrate, import_sessions, watch, demo, create_user and new_session."
            )
        prepare_database(may_migrate=settings.SETS_ITSELF_UP)
        if missing:
            self.stderr.write(f"A new, empty database was made: {missing}")
        return super().execute(*args, **options)


class _HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Keeps examples as they are written."""


class ConsoleCommand(DatabaseCommand, ABC):
    """A command for people and scripts: acts for somebody, answers as text or JSON, ends with a code of `Exit`.

    A subclass says `help`, `examples`, `add_options` and `run`. In `run` it has `self.actor`, and `self.out` for results;
    whatever a layer below raises becomes a sentence (or an error document) and the code of its kind.
    """

    requires_system_checks = ()  # they are about serving, and load every page first
    suppressed_base_arguments = {  # noqa: RUF012  Django's own shape
        "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--skip-checks", "--force-color", "--no-color",
    }  # fmt: skip
    examples: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(what follows `manage.py`, what it does), for the help."""
    has_lines: ClassVar[bool] = False
    """Whether its result is a list, which `--jsonl` gives one object a line."""

    actor: Actor
    out: Output

    def add_options(self, parser: CommandParser) -> None:
        """The command's own arguments."""

    @abstractmethod
    def run(self, options: Mapping[str, Any]) -> Exit | None:
        """Does it. None is `Exit.OK`."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # No shortened options: a script that relies on one breaks when another option begins the same.
        shape: dict[str, Any] = {"allow_abbrev": False, "formatter_class": _HelpFormatter, "epilog": self._epilog()}
        return super().create_parser(prog_name, subcommand, **(shape | kwargs))

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_options(parser)
        shared = parser.add_argument_group("for scripts")
        shared.add_argument("--json", action="store_true", dest="as_json", help="the result as one JSON document; errors as JSON too")
        if self.has_lines:
            shared.add_argument("--jsonl", action="store_true", dest="as_jsonl", help="the result as one JSON object a line")
        shared.add_argument("--as", dest="acting_as", default="", metavar="NAME", help="act with the rights of this user")

    def handle(self, *args: Any, **options: Any) -> None:
        self.out = Output(self.stdout, self.stderr, as_json=options["as_json"], as_jsonl=options.get("as_jsonl", False))
        with failures(), interrupted_by_signals(), deferred.at_once():  # a command may be stopped at any moment
            self.actor = command_actor(options["acting_as"])
            end = self.run(options)
        if end:
            sys.exit(int(end))

    def run_from_argv(self, argv: list[str]) -> None:
        """As Django does it, but errors are told in the shape that was asked for, and a closed pipe in none."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 must not end a command
        as_json = "--json" in argv or "--jsonl" in argv
        try:
            with leave_quietly(), failures():
                options = self._parse(argv)
                arguments = options.pop("args", ())
                handle_default_options(Namespace(**options))
                self.execute(*arguments, **options)
        except CommandFailure as failure:
            self._tell(failure, as_json=as_json)
            sys.exit(failure.returncode)
        except KeyboardInterrupt:
            self._tell(CommandFailure("Stopped.", Exit.CANCELLED), as_json=as_json)
            sys.exit(Exit.CANCELLED)
        except Exception as error:
            if not as_json:
                raise
            sentence = f"It failed on something unforeseen ({type(error).__name__}). Without --json it says where."
            self._tell(CommandFailure(sentence, code="internal_error"), as_json=True)
            sys.exit(Exit.FAILED)
        finally:
            connections.close_all()

    def _parse(self, argv: list[str]) -> dict[str, Any]:
        parser = self.create_parser(argv[0], argv[1])
        try:
            return vars(parser.parse_args(argv[2:]))
        except CommandError as error:
            sentence = str(error).removeprefix("Error: ").removeprefix("argument ")
            raise CommandFailure(f"{sentence[:1].upper()}{sentence[1:]}. Nothing was done. --help says more.", Exit.USAGE) from error

    def _tell(self, failure: CommandFailure, *, as_json: bool) -> None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{error_document(failure) if as_json else plain_line(str(failure))}\n")

    def _epilog(self) -> str:
        wide = max((len(call) for call, _ in self.examples), default=0)
        lines = [f"  manage.py {call:{wide}}  {does}" for call, does in self.examples]
        examples = ["examples:", *lines, ""] if lines else []
        return "\n".join((*examples, f"exit codes: {', '.join(f'{end:d} {words}' for end, words in EXIT_WORDS.items())}"))


class SessionCommand(ConsoleCommand):
    """A command about one session: its id, or a part of it that only one has, is the first argument.

    `action` is what it does; `self.session` is there when `run` begins, reached through the gate.
    """

    action: ClassVar[Action] = Action.READ
    session: Session

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="the session's id, or the beginning or end of it")
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with failures():
            self.session = session_named(command_actor(options["acting_as"]), options["session"], self.action)
        super().handle(*args, **options)


def session_named(actor: Actor, named: object, action: Action) -> Session:
    """The session with this id, or with an id that begins or ends so, if the actor may do `action` with it.

    Raises `CommandFailure` when several have such an id, and what `access_session` raises.
    """
    text = str(named)
    require(actor, Action.READ, target=("session", text[:64]))  # before the look: whether it exists is not for everybody
    found = session_ids_like(text)
    if len(found) > 1:
        ids = ", ".join(map(str, found[:5]))
        message = f"“{text}” stands for several sessions: {ids}. Nothing was done. Give more of the id."
        raise CommandFailure(message, Exit.USAGE, field="session")
    if not found:
        raise unknown_session(actor, text, action)
    return access_session(actor, found[0], action)


def project_named(named: str) -> Project:
    """The project with this name, key or id. Raises `CommandFailure` where there is none, or several."""
    found = projects_like(named)
    if len(found) > 1:
        keys = ", ".join(project.key for project in found[:5])
        raise CommandFailure(f"“{named}” stands for several projects: {keys}. Nothing was done.", Exit.USAGE, field="project")
    if not found:
        known = ", ".join(project_names())
        message = f"There is no project {named[:60]!r}. Nothing was done." + (f" Some that there are: {known}." if known else "")
        raise CommandFailure(message, Exit.NOT_FOUND, field="project")
    return found[0]


@contextmanager
def failures() -> Iterator[None]:
    """Turns what a layer below raises into the `CommandFailure` of its kind; lets through what nobody foresaw."""
    try:
        yield
    except Exception as error:
        failure = failure_of(error)
        if failure is None or failure is error:
            raise
        raise failure from error
