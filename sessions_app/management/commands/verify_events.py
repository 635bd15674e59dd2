"""`manage.py verify_events`: checks the hash chains of the event log, and heads that were kept somewhere else."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import CommandParser

from sessions_app.events.verify import Anchor, Verdict
from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.services.audit_verification import Outcome, verify_everything


class Command(ConsoleCommand):
    help = (
        "Checks that no event of the log was changed, removed, moved or put in. Exit code 1 when one was.\n"
        "Keep what --json prints outside of this machine: --heads compares with it later, and finds a cut end as well."
    )
    examples = (
        ("verify_events", "all streams"),
        ("verify_events --stream security", "one of them"),
        ("verify_events --json > heads.json", "with the head of each stream, to be kept elsewhere"),
        ("verify_events --heads heads.json", "and are those heads still in the log?"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--stream", action="append", default=[], dest="streams", metavar="NAME", help="this one alone; may be repeated")
        parser.add_argument("--heads", type=Path, metavar="FILE", help="what --json printed earlier, or an export in JSON lines")

    def run(self, options: Mapping[str, Any]) -> Exit | None:
        anchors = list(_anchors(options["heads"])) if options["heads"] else []
        outcome = verify_everything(actor=self.actor, streams=options["streams"], anchors=anchors)
        if self.out.is_json:
            self.out.document(_document(outcome, len(anchors)))
        else:
            self._say(outcome, len(anchors))
        return Exit.FAILED if outcome.broken or outcome.lost else None

    def _say(self, outcome: Outcome, anchors: int) -> None:
        for verdict in (*outcome.broken, *outcome.lost):
            self.out.line(f"{verdict.stream}: broken at event {verdict.broken_at}: {verdict.reason}")
        if not outcome.broken:
            self.out.line(f"{len(outcome.heads)} streams with {outcome.events} events are as they were written.")
        if anchors:
            self.out.line(f"{anchors - len(outcome.lost)} of {anchors} heads that were kept elsewhere are still in the log.")


def _document(outcome: Outcome, anchors: int) -> dict[str, object]:
    broken = {verdict.stream for verdict in outcome.broken}
    return {
        "object": "verification",
        "intact": not outcome.broken and not outcome.lost,
        "streams": len(outcome.heads),
        "events": outcome.events,
        "took_s": round(outcome.took_s, 2),
        "broken": [_fault(verdict) for verdict in outcome.broken],
        "heads_compared": anchors,
        "heads_lost": [_fault(verdict) for verdict in outcome.lost],
        "heads": [{"stream": head.stream, "seq": head.seq, "hash": head.hash.hex()} for head in outcome.heads if head.stream not in broken],
    }


def _fault(verdict: Verdict) -> dict[str, object]:
    return {"stream": verdict.stream, "seq": verdict.broken_at, "reason": verdict.reason}


def _anchors(path: Path) -> Iterator[Anchor]:
    """The heads in a file: one document of `--json`, or a line for each event. Raises `CommandFailure` on anything else."""
    found = 0
    try:
        for line in path.read_bytes().splitlines():
            item = orjson.loads(line) if line.strip() else {}
            for head in item.get("heads", [item]):
                if "hash" in head:  # the last line of an export has none
                    found += 1
                    yield Anchor(str(head["stream"]), int(head["seq"]), bytes.fromhex(head["hash"]))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CommandFailure(f"{path} cannot be read as heads ({error}). Nothing was verified.", Exit.USAGE, field="heads") from error
    if not found:
        raise CommandFailure(f"{path} holds no heads. Nothing was verified.", Exit.USAGE, field="heads")
