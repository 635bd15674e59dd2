"""`manage.py create_token NAME --user USER --scope SCOPE`: makes an access token for the API."""

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.arguments import moment
from sessions_app.management.base import ConsoleCommand
from sessions_app.permissions import Scope
from sessions_app.services.tokens import make
from sessions_app.shapes import iso


def end(text: str) -> datetime:
    """A moment, or a number of days from now: `90d`."""
    days = text.removesuffix("d")
    if days != text and days.isascii() and days.isdigit() and 0 < int(days[:6]) <= 36_500:
        return datetime.now(UTC) + timedelta(days=int(days))
    if text.endswith("d"):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of days, such as 90d")
    return moment(text)


class Command(ConsoleCommand):
    help = (
        "Makes an access token for the API, in the name of a user. It may do what its scopes say, and of that what its owner's role "
        "allows. The token is shown once; only a hash of it is kept."
    )
    examples = (
        ("create_token ci --user maria --scope read", "a token that reads"),
        ("create_token harness --user maria --scope read,ingest,steer --expires 90d", "for an agent's harness, for ninety days"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what it is for; no two that hold have the same")
        parser.add_argument("--user", required=True, metavar="USER", help="in whose name it acts")
        parser.add_argument(
            "--scope", required=True, action="append", metavar="SCOPE", help=f"{', '.join(Scope)}; several with commas, or given again"
        )
        parser.add_argument("--expires", type=end, metavar="WHEN", help="a date or time, or a number of days (90d); without it, never")

    def run(self, options: Mapping[str, Any]) -> None:
        scopes = [scope.strip() for given in options["scope"] for scope in given.split(",") if scope.strip()]
        made = make(actor=self.actor, name=options["name"], owner=options["user"], scopes=scopes, expires_at=options["expires"])
        token = made.token
        if self.out.is_json:
            shape = {"object": "token", "id": token.pk, "name": token.name, "user": options["user"], "scopes": token.scopes}
            self.out.document(shape | {"expires_at": iso(token.expires_at), "token": made.secret})
            return
        until = f", until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else ""
        self.out.note(f"Made {token.name} for {options['user']} ({', '.join(token.scopes)}{until}). The token, shown only now:")
        self.out.line(made.secret)
