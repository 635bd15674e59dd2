"""`manage.py revoke_token NAME`: ends an access token for good."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.events import log
from sessions_app.management.base import ConsoleCommand
from sessions_app.permissions import Action, require
from sessions_app.selectors.tokens import token_named
from sessions_app.services.tokens import UnknownToken, revoke


class Command(ConsoleCommand):
    help = "Ends an access token for good: from now on it opens nothing."
    examples = (("revoke_token ci", "by its name, or by its id"),)

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the token's name or id")

    def run(self, options: Mapping[str, Any]) -> None:
        require(self.actor, Action.MANAGE_TOKENS, target=("token", options["name"][:64]), stream=log.SECURITY)
        found = token_named(options["name"])
        if found is None:
            raise UnknownToken(f"There is no token {options['name'][:60]!r} that holds. Nothing was changed.")
        token = revoke(actor=self.actor, token_id=found)
        if self.out.is_json:
            self.out.document({"object": "token", "id": token.pk, "name": token.name, "state": "revoked"})
        else:
            self.out.line(f"{token.name} is revoked.")
