"""One sweep by hand; `up` and every worker do the same every ten seconds, and let begin what only they can run."""

from typing import Any

from sessions_app import queue
from sessions_app.management.base import DatabaseCommand
from sessions_app.services import sweeper


class Command(DatabaseCommand):
    help = "Ends attempts whose worker is gone, queues lost ones again, and lets waiting ones run."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(sweeper.sweep(is_served=queue.is_shared()).words())
