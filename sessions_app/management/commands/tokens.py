"""`manage.py tokens`: lists the access tokens."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.events import log
from sessions_app.management.arguments import add_limit
from sessions_app.management.base import ConsoleCommand
from sessions_app.management.output import Column
from sessions_app.permissions import Action, require
from sessions_app.selectors.tokens import TokenRow, token_rows
from sessions_app.shapes import Shape, iso

COLUMNS = (Column("name"), Column("user"), Column("scopes"), Column("state"), Column("begins"), Column("expires"), Column("last used"))


class Command(ConsoleCommand):
    help = "Lists the access tokens, those that hold first. What opens anything is not kept, and so not shown."
    examples = (("tokens", "all that there are"), ("tokens --jsonl", "an object a line"))
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        add_limit(parser, of="tokens")

    def run(self, options: Mapping[str, Any]) -> None:
        require(self.actor, Action.MANAGE_TOKENS, stream=log.SECURITY)
        rows = token_rows(at=datetime.now(UTC), limit=options["limit"] or 1_000_000)
        if self.out.is_json:
            self.out.objects(_shape(row) for row in rows)
        elif rows:
            self.out.table(COLUMNS, [_cells(row) for row in rows])
        else:
            self.out.note("There is no token. Make one: create_token NAME --user USER --scope read")


def _shape(row: TokenRow) -> Shape:
    moments = {name: iso(getattr(row, name)) for name in ("created_at", "expires_at", "last_used_at", "revoked_at")}
    told = {"object": "token", "id": row.id, "name": row.name, "user": row.owner, "role": row.role or None, "scopes": row.scopes}
    return told | {"state": row.state, "begins_with": row.hint, "created_by": row.created_by} | moments


def _cells(row: TokenRow) -> tuple[object, ...]:
    expires = f"{row.expires_at:%Y-%m-%d}" if row.expires_at else "never"
    used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
    return row.name, row.owner, ",".join(row.scopes), row.state, f"{row.hint}…", expires, used
