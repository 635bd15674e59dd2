"""Makes an account for a person."""

import getpass
import secrets
from typing import Any

from django.core.management.base import CommandError, CommandParser

from sessions_app.management.base import DatabaseCommand
from sessions_app.permissions import ActionRefused, NoAccess, command_actor
from sessions_app.services.accounts import GROUP_BY_ROLE, AccountError, create_user


class Command(DatabaseCommand):
    help = "Makes an account. Without --ask-password it gets a random password, which is printed once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=sorted(GROUP_BY_ROLE))
        parser.add_argument("--ask-password", action="store_true", help="ask for the password instead of making one")
        parser.add_argument("--as", dest="acting_as", default="", metavar="NAME", help="act under the rights of this user")

    def handle(self, *args: Any, **options: Any) -> None:
        password = getpass.getpass("Password: ") if options["ask_password"] else secrets.token_urlsafe(12)
        try:
            create_user(actor=command_actor(options["acting_as"]), name=options["name"], role=options["role"], password=password)
        except (AccountError, ActionRefused, NoAccess) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Made {options['name']} ({options['role']}).")
        if not options["ask_password"]:
            self.stdout.write(f"Password, shown only now: {password}")
