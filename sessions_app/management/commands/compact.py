"""`manage.py compact SESSION`: compacts a session from the command line, through the same gate and with the same events."""

import argparse
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection

from sessions_app import queue
from sessions_app.engine.terms import Outcome, Profile, Status
from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.shapes import Shape, attempt_shape
from sessions_app.models import Compaction
from sessions_app.permissions import Action
from sessions_app.selectors.compaction_panel import panel_of
from sessions_app.selectors.session_page import current_chunk
from sessions_app.services.compactions import following
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import CONSOLE, RUNNER, RequestAnswer, request
from sessions_app.services.compactions.run import run_compaction

LOOK_S = 0.25
SWEEP_S = 5
UNCLAIMED_S = 10
"""After so long, somebody is told that no worker has taken the attempt."""

IDLE, NOW = "idle", "now"
ENDS = {Status.COMPLETED: Exit.OK, Status.DRAFTED: Exit.OK, Status.SKIPPED: Exit.NOTHING_TO_DO, Status.CANCELLED: Exit.CANCELLED}


class Command(SessionCommand):
    help = "Compacts a session and waits for the end. Progress goes to standard error, the result to standard output. Ctrl-C cancels."
    action = Action.COMPACT
    examples = (
        ("compact 44c5e046", "what the button does"),
        ("compact 44c5e046 --instructions 'Keep every file name.'", "says what the summary should stress"),
        ("compact 44c5e046 --boundary 120 --profile coding", "folds what lies before entry 120"),
        ("compact 44c5e046 --review", "stops before the commit; see the commands drafts and draft"),
        ("compact 44c5e046 --no-wait --json", "leaves it to the server, and says which attempt it is"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--instructions", default="", help="what the summary should stress, at most 2,000 characters")
        parser.add_argument("--profile", default="", choices=[profile.value for profile in Profile], help="instead of the policy's")
        parser.add_argument("--boundary", type=count, metavar="ENTRY", help="index of the first entry to keep word for word")
        parser.add_argument("--force", action="store_true", help="fold as much as is legal")
        parser.add_argument("--review", action="store_true", help="stop before the commit: the result waits as a draft")
        parser.add_argument(
            "--when",
            choices=[IDLE, NOW],
            default=IDLE,
            help=f"where a turn is open, {IDLE}: wait for its end; {NOW}: end with code {Exit.BUSY:d}",
        )
        parser.add_argument(
            "--through",
            choices=[RUNNER, CONSOLE],
            default="",
            help=f"of a session with a runner, {CONSOLE}: this console's view alone; {RUNNER}: ask it again after an unknown outcome",
        )
        parser.add_argument(
            "--wait", action=argparse.BooleanOptionalAction, default=True, help="follow it to its end; without, a server or worker does it"
        )

    def run(self, options: Mapping[str, Any]) -> Exit:
        answer = self._request(options)
        compaction = answer.compaction
        if answer.joined:
            self.out.note(f"{compaction} is under way already, started by {compaction.requested_by}.", joined=True)
        if options["wait"]:
            self._follow_or_cancel(compaction)
        return self._report(answer, waited=options["wait"])

    def _request(self, options: Mapping[str, Any]) -> RequestAnswer:
        wanted = {name: options[name] for name in ("instructions", "profile", "boundary", "force", "through")}
        if options["review"]:
            wanted["changes"] = {"review_before_commit": True}
        return request(actor=self.actor, session=self.session, when_idle=options["when"] == IDLE, **wanted)

    def _follow_or_cancel(self, compaction: Compaction) -> None:
        try:
            self._follow(compaction)
        except (KeyboardInterrupt, BrokenPipeError):
            with suppress(BrokenPipeError):
                self.out.note(f"Cancelling {compaction}.")
            cancel(actor=self.actor, session=self.session, compaction_id=compaction.pk)
            self._follow(compaction, is_silent=True)

    def _follow(self, compaction: Compaction, *, is_silent: bool = False) -> None:
        """Tells the progress of the attempt until it has ended. Runs it here where no worker would get it from the queue."""
        worker: threading.Thread | None = None
        patience, said = _Patience(self.out.note), ""
        while True:
            compaction.refresh_from_db()
            if not compaction.is_open:
                break
            if worker is None and compaction.status == Status.REQUESTED and following.runs_here(compaction):
                worker = threading.Thread(target=_run, args=(compaction.pk,), daemon=True)
                worker.start()
            elif worker is None and compaction.status != Status.RUNNING:
                patience.look(compaction)
            if (news := _progress(compaction)) != said and not is_silent:
                said = news
                self.out.note(said, **_progress_facts(compaction))
            pause(LOOK_S)
        if worker is not None:
            worker.join()

    def _report(self, answer: RequestAnswer, *, waited: bool) -> Exit:
        compaction = answer.compaction
        if self.out.is_json:
            self.out.document(result_shape(answer))
        else:
            self.out.line(_sentence(compaction))
        end = ENDS.get(Status(compaction.status), Exit.FAILED) if waited else Exit.OK
        if end is Exit.FAILED:
            sentence = compaction.explanation or f"It ended as {_words(compaction)}. Nothing was changed."
            raise CommandFailure(sentence, Exit.FAILED, code=compaction.outcome or compaction.status)
        return end


class _Patience:
    """What is done, and said, while nobody runs the attempt."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._swept = self._requested = time.monotonic()
        self._is_told = False

    def look(self, compaction: Compaction) -> None:
        now = time.monotonic()
        if compaction.status == Status.WAITING_FOR_IDLE:
            self._requested = now
            if now - self._swept >= SWEEP_S:
                following.let_begin(compaction)
                self._swept = now
        elif not self._is_told and (sentence := self._sentence(compaction, now)):
            self._is_told = True
            self._note(sentence)

    def _sentence(self, compaction: Compaction, now: float) -> str:
        if not queue.is_shared():
            return f"No key for {', '.join(following.lacking(compaction))} is set here, so the server runs it."
        if now - self._requested >= UNCLAIMED_S:
            return f"No worker has taken {compaction} yet. Is one running? Ctrl-C cancels it."
        return ""


def result_shape(answer: RequestAnswer) -> Shape:
    """The attempt as the ledger's `--json` shows it, and whether it was under way before."""
    compaction = answer.compaction
    return attempt_shape(panel_of(compaction), lineage=compaction.lineage) | {"joined": answer.joined}


def pause(seconds: float) -> None:
    """Until the next look."""
    time.sleep(seconds)


def _run(compaction_id: uuid.UUID) -> None:
    try:
        run_compaction(compaction_id)
    finally:
        connection.close()


def _words(compaction: Compaction) -> str:
    return (compaction.outcome or compaction.status).replace("_", " ")


def _sentence(compaction: Compaction) -> str:
    if compaction.status == Status.COMPLETED:
        before, after = compaction.tokens_before or 0, compaction.tokens_after or 0
        return (
            f"{compaction} {compaction.outcome}: {before:,} → {after:,} tokens of the view, {compaction.tokens_after_origin or 'estimated'}"
        )
    if compaction.status == Status.DRAFTED:
        before, after = compaction.tokens_before or 0, compaction.tokens_after or 0
        how = f"draft {compaction.pk.hex[-8:]} --commit"
        return f"{compaction} drafted: {before:,} → {after:,} tokens of the view once it is committed ({how})"
    why = f": {compaction.explanation}" if compaction.explanation and compaction.outcome == Outcome.SKIPPED else ""
    return f"{compaction} {_words(compaction)}{why}"


def _progress(compaction: Compaction) -> str:
    if compaction.status != Status.RUNNING:
        return f"{compaction} {compaction.status.replace('_', ' ')}"
    chunks = f", chunk {current_chunk(compaction)} of {compaction.chunk_count}" if compaction.chunk_count else ""
    return f"{compaction} {compaction.phase or 'running'}{chunks}"


def _progress_facts(compaction: Compaction) -> Shape:
    chunks = {"done": compaction.chunk_index, "of": compaction.chunk_count}
    return {"compaction_id": compaction.pk, "status": compaction.status, "phase": compaction.phase or None, "chunks": chunks}
