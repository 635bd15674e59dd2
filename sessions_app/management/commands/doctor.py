"""`manage.py doctor [SESSION …]`: what is wrong with sessions as they are stored; sets right what can be."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import ConsoleCommand, session_named
from sessions_app.management.exits import Exit
from sessions_app.management.output import plain_text
from sessions_app.management.shapes import Shape
from sessions_app.permissions import Action, require
from sessions_app.services.doctor.examination import all_ids, examine
from sessions_app.services.doctor.findings import Examined, Finding
from sessions_app.services.doctor.repairs import repair


class Command(ConsoleCommand):
    help = (
        "Looks through sessions as they are stored, and says what is wrong, what that means, and what a repair would do. Changes nothing\n"
        "without --repair; with it, each repair is one transaction and one event. What entries say is never touched.\n"
        "Exit code 1 when something is wrong, or is left; notes do not count."
    )
    examples = (
        ("doctor", "all sessions, also those that no list shows"),
        ("doctor 44c5e046 --json", "one of them, as a document"),
        ("doctor 44c5e046 --repair", "sets right what can be, and says what is left"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("sessions", metavar="SESSION", nargs="*", help="sessions by their ids, or parts of them; without any, all")
        parser.add_argument("--repair", action="store_true", help="set right what can be")

    def run(self, options: Mapping[str, Any]) -> Exit:
        require(self.actor, Action.READ)
        if options["repair"]:
            require(self.actor, Action.REPAIR)
        self.counts = dict.fromkeys(("sessions", "wrong", "repaired", "notes"), 0)
        self.tells_notes = self.out.is_json or bool(options["sessions"])
        told = self._told(options["sessions"], may_repair=options["repair"])
        if self.out.is_json:
            tail = {name: (lambda name=name: self.counts[name]) for name in self.counts}
            self.out.objects(told, head={"dry_run": not options["repair"]}, tail=tail)
        else:
            for _ in told:
                pass
            self._sum_up(may_repair=options["repair"])
        if self.counts["wrong"] > self.counts["repaired"]:
            return Exit.FAILED
        return Exit.NOTHING_TO_DO if options["repair"] and not self.counts["repaired"] else Exit.OK

    def _told(self, named: list[str], *, may_repair: bool) -> Iterator[Shape]:
        """Each finding, as it is found."""
        ids = [session_named(self.actor, one, Action.READ).pk for one in named] if named else all_ids()
        for session_id in ids:
            if (examined := examine(session_id)) is None:
                continue
            self.counts["sessions"] += 1
            if not self.out.is_json and (not examined.is_healthy or (examined.findings and self.tells_notes)):
                self.out.line(f"{examined.session_id}  {examined.title}")
            for finding in examined.findings:
                yield self._one(examined, finding, may_repair=may_repair)

    def _one(self, examined: Examined, finding: Finding, *, may_repair: bool) -> Shape:
        done = may_repair and finding.can_be_repaired and repair(actor=self.actor, session_id=examined.session_id, finding=finding)
        self.counts["notes" if finding.is_note else "wrong"] += 1
        self.counts["repaired"] += done
        if not self.out.is_json and (self.tells_notes or not finding.is_note):
            lines = [f"  {'note' if finding.is_note else 'repaired' if done else 'WRONG'}: {finding.what}", f"    {finding.meaning}"]
            if finding.can_be_repaired and not done:
                lines.append(f"    {'Could not be done' if may_repair else 'A repair'}: {finding.repair}")
            self.out.block(plain_text(line) for line in lines)
        return finding_shape(examined, finding, is_repaired=done)

    def _sum_up(self, *, may_repair: bool) -> None:
        counts = self.counts
        left = counts["wrong"] - counts["repaired"]
        sentence = f"{counts['sessions']:,} sessions looked at: {counts['wrong']:,} wrong, {counts['notes']:,} notes."
        if counts["notes"] and not self.tells_notes:
            sentence += " Name a session to read its notes."
        if may_repair:
            sentence += f" {counts['repaired']:,} repaired, {left:,} left."
        elif left:
            sentence += " Nothing was changed; --repair sets right what can be."
        self.out.line(sentence)


def finding_shape(examined: Examined, finding: Finding, *, is_repaired: bool) -> Shape:
    """One finding."""
    return {
        "object": "finding",
        "session_id": examined.session_id,
        "session": examined.title,
        "check": finding.check.value,
        "note": finding.is_note,
        "what": finding.what,
        "meaning": finding.meaning,
        "repair": finding.repair or None,
        "repaired": is_repaired,
        "facts": finding.facts,
    }
