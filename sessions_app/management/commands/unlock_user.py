"""`manage.py unlock_user NAME`: lifts the locks on somebody's sign-in."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.selectors.users import id_of_user_named
from sessions_app.services.sign_ins import lift_locks


class Command(ConsoleCommand):
    help = "Lets a user sign in again at once who was locked out after too many wrong passwords."
    examples = (("unlock_user maria", "from every address that was locked"),)

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what the person signs in with")

    def run(self, options: Mapping[str, Any]) -> Exit:
        name = options["name"]
        addresses = [lock.address for lock in lift_locks(actor=self.actor, key=name)]
        if not addresses and not id_of_user_named(name):
            raise CommandFailure(f"There is no user {name[:150]!r}. Nothing was changed.", Exit.NOT_FOUND, field="name")
        if self.out.is_json:
            self.out.document({"object": "unlock", "name": name, "addresses": addresses})
        elif addresses:
            self.out.line(f"{name} can sign in again from {', '.join(address or 'this machine' for address in addresses)}.")
        else:
            self.out.line(f"{name} was not locked.")
        return Exit.OK if addresses else Exit.NOTHING_TO_DO
