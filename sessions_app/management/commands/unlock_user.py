"""Lifts the lock on somebody's sign-in."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from sessions_app.management.base import DatabaseCommand
from sessions_app.permissions import ActionRefused, NoAccess, command_actor
from sessions_app.selectors.users import id_of_user_named
from sessions_app.services.sign_ins import lift_locks


class Command(DatabaseCommand):
    help = "Lets a user sign in again at once who was locked out after too many wrong passwords."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--as", dest="as_user", default="", metavar="NAME", help="act under the rights of this user")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        try:
            lifted = lift_locks(actor=command_actor(options["as_user"]), key=name)
        except (ActionRefused, NoAccess) as error:
            raise CommandError(str(error)) from error
        if not id_of_user_named(name):
            raise CommandError(f"There is no user {name!r}. Nothing was changed.")
        told = ", ".join(lock.address or "this machine" for lock in lifted)
        self.stdout.write(f"{name} can sign in again from {told}." if lifted else f"{name} was not locked.")
