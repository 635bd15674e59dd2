"""Fills an empty installation with the demo."""

from typing import Any

from django.core.management.base import CommandError

from sessions_app.events.actors import system_actor
from sessions_app.management.base import DatabaseCommand
from sessions_app.services import demo


class Command(DatabaseCommand):
    may_make_database = True
    help = "Fills an empty installation with sessions to look at, and makes one account per role."

    def handle(self, *args: Any, **options: Any) -> None:
        report = demo.fill(actor=system_actor("demo"))
        if not report.sign_ins:
            raise CommandError("This installation is in use already, so the demo was not loaded and nothing was changed.")
        self.stdout.write(f"Loaded {report.sessions} sessions with {report.entries:,} entries.")
        for sign_in in report.sign_ins:
            self.stdout.write(f"  {sign_in.name:6} {sign_in.role:9} password {sign_in.password}")
        self.stdout.write("These passwords are shown only now.")
