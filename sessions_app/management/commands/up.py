"""`manage.py up`: the whole product in one process: pages, live updates, background work."""

import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

from channels.routing import get_default_application
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils.module_loading import import_string

from sessions_app.events.actors import system_actor
from sessions_app.management.preflight import check_data_directory, check_port, check_settings, port_number, prepare_database
from sessions_app.services import demo

EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104


def _leave(number: int, frame: object) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


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
        parser.add_argument("--data-dir", help="folder for the database, uploads and keys (default: data in the checkout)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], port_number(options["port"])
        check_settings(self.stderr.write)
        check_data_directory(settings.DATA_DIR)
        check_port(host, port)
        prepare_database()
        if host not in EVERYWHERE:
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
        background = import_string(settings.BACKGROUND_WORK)()
        signal.signal(signal.SIGTERM, _leave)  # until the server takes the signals over
        try:
            # Before the workers: the demo runs its compactions itself, one after the other.
            sign_ins = demo.fill(actor=system_actor("up")).sign_ins
            background.start()
            self._serve(host, port, sign_ins)
        except KeyboardInterrupt:
            pass  # the same wish, before the server listened to it
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)  # it is stopping already
            stopped = background.stop()
        self.stdout.write("Palimpsest has stopped.")
        if not stopped:
            # A thread that can't be killed still works. What it has not finished is undone by its transaction.
            sys.stdout.flush()
            os._exit(0)

    def _serve(self, host: str, port: int, sign_ins: Iterable[demo.SignIn]) -> None:
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host in EVERYWHERE else host
        Server(
            application=import_string(settings.STATIC_FILES)(get_default_application()),
            endpoints=build_endpoint_description_strings(host=host, port=port),
            verbosity=0,
            application_close_timeout=1,
            ready_callable=lambda: self._greet(f"http://{shown}:{port}/", sign_ins),
        ).run()

    def _greet(self, address: str, sign_ins: Iterable[demo.SignIn]) -> None:
        self.stdout.write(f"Palimpsest is at {address} (Ctrl-C stops it).")
        for sign_in in sign_ins:
            self.stdout.write(f"  sign in as {sign_in.name} ({sign_in.role}) with the password {sign_in.password}")
        if sign_ins:
            self.stdout.write("  These passwords are shown only now.")
        self.stdout.flush()
