"""`manage.py up`: the whole product in one process: pages, live updates, background work.

Where services are named it is one process of many: it prepares their database and serves, but makes no demo and no accounts.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from channels.routing import get_default_application
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from sessions_app.events import deferred
from sessions_app.events.actors import system_actor
from sessions_app.live.pauses import keep_what_is_loaded
from sessions_app.management.preflight import check_data_directory, check_port, check_settings, port_number, prepare_database
from sessions_app.permissions import ActionRefused, NoAccess, command_actor
from sessions_app.services import demo
from sessions_app.services.watching import Watch, WatchStatus, check_folders

WATCH_STOP_S = 3.0
EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104


class _Leaving:
    """Takes the signals that end it. Until the server runs, whoever starts it may swallow what is raised: the wish is kept."""

    def __init__(self) -> None:
        self._is_wished = False
        self._stop: Callable[[], object] | None = None

    def __call__(self, number: int, frame: object) -> None:
        self._is_wished = True
        if self._stop is None:
            raise KeyboardInterrupt
        self._stop()

    def is_up_to(self, stop: Callable[[], object]) -> bool:
        """Whether it is to end at once. From now on a signal calls `stop`."""
        self._stop = stop
        return self._is_wished


class WatchThread:
    """A watch beside the server."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._thread = threading.Thread(target=watch.run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """False: it still runs."""
        self._watch.stop()
        if self._thread.ident is not None:
            self._thread.join(WATCH_STOP_S)
        return not self._thread.is_alive()


class Command(BaseCommand):
    help = "Starts Palimpsest. Options win over PALIMPSEST_HOST, PALIMPSEST_PORT and PALIMPSEST_DATA_DIR."
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # No shortened options: manage.py reads --data-dir by its whole name, and would take another directory without a word.
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help=f"address to listen on (default: {settings.HOST})")
        parser.add_argument("--port", default=str(settings.PORT), help=f"port to listen on (default: {settings.PORT})")
        # Read in manage.py, before the settings are: it decides where the database is.
        parser.add_argument(
            "--watch", action="append", default=[], metavar="FOLDER", help="follow a folder of session files; may be repeated"
        )
        parser.add_argument("--data-dir", help="folder for the database, uploads and keys (default: data in the checkout)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], port_number(options["port"])
        check_settings(self.stderr.write)
        check_data_directory(settings.DATA_DIR)
        check_port(host, port)
        prepare_database()
        if settings.STATIC_ROOT:
            call_command("collectstatic", interactive=False, verbosity=0)
        watch = self._watch(options["watch"])
        if host not in EVERYWHERE:
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
        background = import_string(settings.BACKGROUND_WORK)()
        leaving = _Leaving()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, leaving)  # until the server takes the signals over
        try:
            # Before the workers: the demo runs its compactions itself, one after the other.
            sign_ins = demo.fill(actor=system_actor("up")).sign_ins if settings.SETS_ITSELF_UP else ()
            if share_connections := getattr(settings, "SHARE_CONNECTIONS", ""):
                import_string(share_connections)()
            background.start()
            if watch is not None:
                watch.start()
            self._serve(host, port, sign_ins, leaving)
        except KeyboardInterrupt:
            pass  # the same wish, before the server listened to it
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)  # it is stopping already
            stopped = (watch is None or watch.stop()) & background.stop()
            deferred.flush()  # reads that still wait: an abrupt end below would lose them
        self.stdout.write("Palimpsest has stopped.")
        if not stopped:
            # A thread that can't be killed still works. What it has not finished is undone by its transaction.
            sys.stdout.flush()
            os._exit(0)

    def _watch(self, folders: list[str]) -> "WatchThread | None":
        """A watch that is not started yet. Raises `CommandError` when a folder can't be followed."""
        try:
            return WatchThread(Watch(actor=command_actor(), folders=check_folders(folders), tell=self._tell)) if folders else None
        except (ValueError, NoAccess, ActionRefused) as error:
            raise CommandError(str(error)) from error

    def _tell(self, status: WatchStatus) -> None:
        if status.problem:
            self.stderr.write(status.problem)

    def _serve(self, host: str, port: int, sign_ins: Iterable[demo.SignIn], leaving: _Leaving) -> None:
        from twisted.internet import reactor as installed  # noqa: PLC0415  by the server's module, which must come first

        reactor: Any = installed
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host in EVERYWHERE else host

        def begin() -> None:
            if leaving.is_up_to(lambda: reactor.callFromThread(reactor.stop)):
                reactor.stop()
            else:
                self._greet(f"http://{shown}:{port}/", sign_ins)
                keep_what_is_loaded()

        Server(
            application=import_string(settings.STATIC_FILES)(get_default_application()),
            endpoints=build_endpoint_description_strings(host=host, port=port),
            verbosity=0,
            application_close_timeout=1,
            # Not before the server runs: who reads the greeting may send a signal at once.
            ready_callable=lambda: reactor.callWhenRunning(begin),
        ).run()

    def _greet(self, address: str, sign_ins: Iterable[demo.SignIn]) -> None:
        self.stdout.write(f"Palimpsest is at {address} (Ctrl-C stops it).")
        for sign_in in sign_ins:
            self.stdout.write(f"  sign in as {sign_in.name} ({sign_in.role}) with the password {sign_in.password}")
        if sign_ins:
            self.stdout.write("  These passwords are shown only now.")
        self.stdout.flush()
