"""`manage.py compact SESSION`: compacts a session from the command line, through the same gate and with the same events."""

import threading
import time
import uuid
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection

from sessions_app.engine.terms import Outcome, Profile, Status
from sessions_app.events.actors import Actor
from sessions_app.management.base import DatabaseCommand
from sessions_app.models import Compaction, Session
from sessions_app.permissions import Action, ActionRefused, NoAccess, access_session, command_actor
from sessions_app.services import sweeper
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import InvalidRequest, RequestAnswer, SessionBusy, request
from sessions_app.services.compactions.run import run_compaction

LOOK_S = 0.25
SWEEP_S = 5


class Command(DatabaseCommand):
    help = "Compacts a session and waits for the end. Progress goes to standard error, the result to standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", type=uuid.UUID, metavar="SESSION", help="id of the session")
        parser.add_argument("--instructions", default="", help="what the summary should stress, at most 2,000 characters")
        parser.add_argument("--profile", default="", choices=["", *Profile], help="instead of the profile of its policy")
        parser.add_argument("--boundary", type=int, help="index of the first entry to keep word for word")
        parser.add_argument("--force", action="store_true", help="fold as much as is legal")
        parser.add_argument("--no-wait", action="store_true", help="leave it to a running “manage.py up”, which starts it at once")
        parser.add_argument("--as", dest="acting_as", default="", metavar="NAME", help="act under the rights of this user")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = command_actor(options["acting_as"])
            session = access_session(actor, options["session"], Action.COMPACT)
            answer = self._request(actor, session, options)
        except (NoAccess, ActionRefused, InvalidRequest, SessionBusy) as error:
            raise CommandError(str(error)) from error
        compaction = answer.compaction
        if answer.joined:
            self._tell(f"{compaction} is under way already, started by {compaction.requested_by}; waiting for its end.")
        if options["no_wait"]:
            self.stdout.write(f"{compaction} {compaction.status.replace('_', ' ')}")
            return
        try:
            self._follow(compaction)
        except KeyboardInterrupt:
            self._tell("Cancelling.")
            cancel(actor=actor, session=session, compaction_id=compaction.pk)
            self._follow(compaction)
        self._report(compaction)

    def _request(self, actor: Actor, session: Session, options: dict[str, Any]) -> RequestAnswer:
        wanted = {name: options[name] for name in ("instructions", "profile", "boundary", "force")}
        return request(actor=actor, session=session, **wanted)

    def _follow(self, compaction: Compaction) -> None:
        """Runs the attempt in this process unless a worker has it, and tells its progress until it has ended."""
        worker: threading.Thread | None = None
        said, swept = "", time.monotonic()
        while True:
            compaction.refresh_from_db()
            if not compaction.is_open:
                break
            if compaction.status == Status.REQUESTED and worker is None:
                worker = threading.Thread(target=_run, args=(compaction.pk,), daemon=True)
                worker.start()
            if compaction.status == Status.WAITING_FOR_IDLE and time.monotonic() - swept >= SWEEP_S:
                sweeper.sweep()
                swept = time.monotonic()
            if (news := _progress(compaction)) != said:
                said = news
                self._tell(said)
            time.sleep(LOOK_S)
        if worker is not None:
            worker.join()

    def _report(self, compaction: Compaction) -> None:
        if compaction.status == Status.COMPLETED:
            before, after = compaction.tokens_before or 0, compaction.tokens_after or 0
            self.stdout.write(f"{compaction} {compaction.outcome}: {before:,} → {after:,} tokens of the view, estimated")
        elif compaction.outcome == Outcome.SKIPPED:
            self.stdout.write(f"{compaction} skipped: {compaction.explanation}")
        else:
            raise CommandError(f"{compaction} {compaction.status.replace('_', ' ')}: {compaction.explanation}")

    def _tell(self, text: str) -> None:
        self.stderr.write(text, style_func=str)


def _run(compaction_id: uuid.UUID) -> None:
    try:
        run_compaction(compaction_id)
    finally:
        connection.close()


def _progress(compaction: Compaction) -> str:
    if compaction.status != Status.RUNNING:
        return f"{compaction} {compaction.status.replace('_', ' ')}"
    chunks = f", chunk {compaction.chunk_index} of {compaction.chunk_count} done" if compaction.chunk_count else ""
    return f"{compaction} {compaction.phase or 'running'}{chunks}"
