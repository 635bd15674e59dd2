"""Gives a session's source back, byte for byte."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from sessions_app.management.base import DatabaseCommand
from sessions_app.permissions import Action, ActionRefused, NoAccess, access_session, command_actor
from sessions_app.services.exports import export_session

USAGE = 2


class Command(DatabaseCommand):
    help = "Writes the file that a session was imported from, exactly as it was, to standard output or to --output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", type=UUID, metavar="SESSION", help="the session's id")
        parser.add_argument("--output", type=Path, default=None, metavar="FILE", help="where to write; must not exist yet")
        parser.add_argument("--as", dest="as_user", default="", metavar="NAME", help="the user in whose name this is done")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = command_actor(options["as_user"])
            exported = export_session(actor=actor, session=access_session(actor, options["session"], Action.EXPORT))
        except (NoAccess, ActionRefused) as error:
            raise CommandError(str(error), returncode=USAGE) from error
        if exported is None:
            raise CommandError("This session was not read from a file, so there is none to give back. Nothing was written.")
        source, blocks = exported
        if options["output"] is None:
            sys.stdout.buffer.writelines(blocks)
            return
        try:
            with options["output"].open("xb") as target:
                target.writelines(blocks)
        except OSError as error:
            raise CommandError(
                f"{options['output']} can't be written ({error.strerror}). Nothing of an existing file was changed."
            ) from error
        self.stderr.write(f"{source.size} bytes of {source.path}")
