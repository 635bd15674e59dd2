"""`manage.py send SESSION TEXT`: sends a message to a session that is held here, and shows the answer as it comes."""

import argparse
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection

from sessions_app import queue
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import plain_text
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.permissions import Action
from sessions_app.providers.registry import is_usable
from sessions_app.selectors.turn_panel import answer_of
from sessions_app.services.compactions import following
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import MAX_MESSAGE_CHARS, TurnRefused, interrupt, send, withdraw

LOOK_S = 0.1
ENDS = {TurnStatus.COMPLETED: Exit.OK, TurnStatus.CANCELLED: Exit.CANCELLED, TurnStatus.WITHDRAWN: Exit.CANCELLED}


class Command(SessionCommand):
    help = "Sends a message to a session that is held here, and shows the answer as it comes. Ctrl-C stops the turn."
    action = Action.MESSAGE
    examples = (
        ("send 44c5e046 'What is left to do?'", "waits for the answer"),
        ("send 44c5e046 - < FILE", "takes the message from a file"),
        ("send 44c5e046 'And then?' --no-wait", "leaves it to the server"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")
        parser.add_argument(
            "--key", type=uuid.UUID, metavar="UUID", help="the message's own id: sent again with the same key and text, it is taken once"
        )
        parser.add_argument(
            "--wait", action=argparse.BooleanOptionalAction, default=True, help="show the answer; else a server does it all"
        )

    def run(self, options: Mapping[str, Any]) -> Exit:
        text = sys.stdin.read(MAX_MESSAGE_CHARS + 1) if options["text"] == "-" else options["text"]
        turn = send(actor=self.actor, session=self.session, text=text, key=options["key"])
        if options["wait"]:
            self._follow_or_stop(turn)
        return self._report(turn, waited=options["wait"])

    def _follow_or_stop(self, turn: Turn) -> None:
        try:
            self._follow(turn)
        except (KeyboardInterrupt, BrokenPipeError):
            try:
                withdraw(actor=self.actor, session=self.session, turn_id=turn.pk)
                turn.refresh_from_db()
            except TurnRefused:
                interrupt(actor=self.actor, session=self.session, turn_id=turn.pk)
                self._follow(turn, is_silent=True)

    def _follow(self, turn: Turn, *, is_silent: bool = False) -> None:
        """Writes what comes until the turn has ended. Runs what is queued here where no worker would get it."""
        provider = f"{self.session.provider}:"
        runs_here = not queue.is_shared() and (is_usable(provider) or not following.is_taken_by_server("turns"))
        worker: threading.Thread | None = None
        told = 0
        while turn.is_open:
            if runs_here and (worker is None or not worker.is_alive()):
                worker = threading.Thread(target=_run, args=(self.session,), daemon=True)
                worker.start()
            told = self._show(turn, turn.answer_text, told, is_silent=is_silent)
            time.sleep(LOOK_S)
            turn.refresh_from_db()
        if worker is not None:
            worker.join()
        if turn.status != TurnStatus.FAILED:
            self._show(turn, answer_of(turn), told, is_silent=is_silent)
        if not self.out.is_json and not is_silent:
            self.stdout.write("")

    def _show(self, turn: Turn, text: str, told: int, *, is_silent: bool) -> int:
        if not self.out.is_json and not is_silent and len(text) > told:
            self.stdout.write(plain_text(text[told:]), ending="")
            self.stdout.flush()
        return max(told, len(text))

    def _report(self, turn: Turn, *, waited: bool) -> Exit:
        if self.out.is_json:
            shape = {"object": "turn", "id": turn.pk, "number": turn.number, "status": turn.status, "usage": turn.usage}
            self.out.document(shape | {"reason": turn.reason or None, "answer": answer_of(turn) if not turn.is_open else None})
        elif not waited:
            self.out.line(f"Sent as message {turn.number}.")
        end = ENDS.get(TurnStatus(turn.status), Exit.FAILED) if waited else Exit.OK
        if end is Exit.FAILED:
            raise CommandFailure(turn.explanation, Exit.FAILED, code=turn.reason or "failed")
        if waited and turn.explanation and not self.out.is_json:
            self.out.note(turn.explanation)
        return end


def _run(session: Session) -> None:
    try:
        run_turn(session.pk)
    finally:
        connection.close()
