"""`manage.py create_user NAME --role ROLE`: makes an account for a person."""

import getpass
import secrets
import sys
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.events import log
from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.permissions import Action, require
from sessions_app.services.accounts import GROUP_BY_ROLE, create_user

MAX_PASSWORD_CHARS = 4_096


class Command(ConsoleCommand):
    may_make_database = True
    help = "Makes an account. Unless a password is asked for or read, it gets a random one, which is shown once."
    examples = (
        ("create_user maria --role support", "a random password, shown once"),
        ("create_user maria --role support --ask-password", "asks for it twice"),
        ("create_user maria --role admin --password-stdin < FILE", "takes the first line of a file"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what the person signs in with")
        parser.add_argument("--role", required=True, choices=sorted(GROUP_BY_ROLE))
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--ask-password", action="store_true", help="ask for the password instead of making one")
        source.add_argument("--password-stdin", action="store_true", help="read the password from the first line of standard input")

    def run(self, options: Mapping[str, Any]) -> None:
        name, role = options["name"], options["role"]
        require(self.actor, Action.MANAGE_USERS, target=("user", name), stream=log.SECURITY)  # before anybody types a password
        given = _given_password(options)
        password = given or secrets.token_urlsafe(12)
        user = create_user(actor=self.actor, name=name, role=role, password=password)
        if self.out.is_json:
            made = {"object": "user", "id": user.pk, "name": name, "role": role}
            self.out.document(made if given else made | {"password": password})
            return
        self.out.line(f"Made {name} ({role}).")
        if not given:
            self.out.line(f"Password, shown only now: {password}")


def _given_password(options: Mapping[str, Any]) -> str:
    """The password that a person gave; empty when one is to be made. Raises `CommandFailure` for none at all, or two that differ."""
    if options["ask_password"]:
        try:
            password = getpass.getpass("Password: ")
            if password != getpass.getpass("The same again: "):
                raise CommandFailure("The two passwords differ. Nothing was changed.", Exit.USAGE, field="password")
        except EOFError:
            password = ""
    elif options["password_stdin"]:
        password = sys.stdin.readline(MAX_PASSWORD_CHARS).rstrip("\r\n")
    else:
        return ""
    if not password:
        raise CommandFailure("The password is empty. Nothing was changed.", Exit.USAGE, field="password")
    return password
