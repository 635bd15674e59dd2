"""`manage.py memory PROJECT`: what a project's memory holds; forgets a fact, and has failed flushes tried again."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.flush import Receipt, stored_status
from sessions_app.engine.terms import MemoryKind
from sessions_app.events.types import EventType
from sessions_app.management.arguments import add_limit
from sessions_app.management.base import ConsoleCommand, project_named
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import Shape, iso
from sessions_app.models import Project
from sessions_app.permissions import Action, require
from sessions_app.selectors import memory
from sessions_app.selectors.memory import FactRow, MemoryFilters
from sessions_app.services import memory as changes
from sessions_app.services import memory_flush
from sessions_app.services.access import record

COLUMNS = (
    Column("FACT"),
    Column("KIND", rank=2),
    Column("TEXT", stretches=True, least=24),
    Column("SESSION", rank=3, stretches=True, least=12),
    Column("ENTRIES", rank=4),
    Column("KEPT (UTC)", rank=5),
)


class Command(ConsoleCommand):
    help = "Lists what is kept of a project's sessions beyond them, the newest first. Forgets one fact, or tries again what was not kept."
    examples = (
        ("memory Payments", "the facts of a project, named by its name, key or id"),
        ("memory Payments --kind decision --json", "its decisions, as a document"),
        ("memory --forget 0f3a91c2", "takes a fact out for good; its entries stay"),
        ("memory --repair", "tries again, here and now, all that was not kept as it should be"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("project", metavar="PROJECT", nargs="?", help="the project's name, key or id")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--forget", metavar="ID", help="forget the fact with this id, or with one that begins or ends so")
        what.add_argument("--repair", action="store_true", help="try failed and degraded flushes again, of the project or of all")
        parser.add_argument("--kind", choices=[kind.value for kind in MemoryKind], default="", help="only facts of this kind")
        parser.add_argument("--search", metavar="WORDS", default="", help="only facts that hold these words")
        add_limit(parser, of="facts")

    def run(self, options: Mapping[str, Any]) -> Exit | None:
        require(self.actor, Action.READ)
        if options["forget"] is not None:
            self._forget(options["forget"])
            return None
        project = project_named(options["project"]) if options["project"] else None
        if options["repair"]:
            return self._repair(project)
        if project is None:
            raise CommandFailure("Name a project. Nothing was done. --help says more.", Exit.USAGE, field="project")
        self._list(project, options)
        return None

    def _list(self, project: Project, options: Mapping[str, Any]) -> None:
        filters = MemoryFilters(kind=options["kind"], q=options["search"])
        rows = memory.all_facts(project, filters, options["limit"])
        record(actor=self.actor, event_type=EventType.MEMORY_VIEWED, target=("project", str(project.pk)), payload={"name": project.name})
        if self.out.is_json:
            self.out.objects((fact_shape(row) for row in rows), head={"project": str(project.pk), "name": project.name})
        elif rows:
            self.out.table(COLUMNS, [_cells(row) for row in rows])
        else:
            self.out.note("Nothing is kept that has all of what is asked for.")

    def _forget(self, named: str) -> None:
        require(self.actor, Action.CHANGE_MEMORY, target=("fact", named[:64]))
        found = memory.facts_like(named)
        if len(found) > 1:
            raise CommandFailure(f"“{named}” stands for several facts. Nothing was done. Give more of the id.", Exit.USAGE, field="forget")
        if not found:
            raise CommandFailure(f"No memory holds a fact {named[:40]!r}. Nothing was changed.", Exit.NOT_FOUND)
        fact = changes.forget(actor=self.actor, fact_id=found[0])
        if self.out.is_json:
            self.out.document({"object": "fact", "id": fact.pk, "forgotten": True})
        else:
            self.out.line("Forgotten. No later compaction brings it back; the entries that state it are as they were.")

    def _repair(self, project: Project | None) -> Exit:
        require(self.actor, Action.CHANGE_MEMORY)
        found = memory.repairable(project)
        done = [(compaction_id, memory_flush.repair_now(actor=self.actor, compaction_id=compaction_id)) for compaction_id in found]
        if self.out.is_json:
            self.out.objects(repair_shape(compaction_id, receipt) for compaction_id, receipt in done)
        else:
            for compaction_id, receipt in done:
                self.out.line(f"{compaction_id.hex[-8:]} {_status_words(receipt)}")
            if not done:
                self.out.note("There was nothing to repair.")
        failed = any(receipt is None or stored_status(receipt).needs_repair for _, receipt in done)
        return Exit.FAILED if failed else Exit.OK if done else Exit.NOTHING_TO_DO


def fact_shape(row: FactRow) -> Shape:
    """A fact of a memory."""
    return {
        "object": "fact",
        "id": row.id,
        "kind": row.kind,
        "text": row.text,
        "session_id": row.session_id,
        "session": row.session_title,
        "entries": row.entries,
        "found_by": "model" if row.by_model else "code",
        "author": row.author,
        "kept_at": iso(row.created_at),
    }


def repair_shape(compaction_id: object, receipt: Receipt | None) -> Shape:
    """What came of a repair. `receipt` is null where somebody else was at it."""
    return {"object": "flush", "compaction_id": compaction_id, "status": stored_status(receipt) if receipt else None, "receipt": receipt}


def _status_words(receipt: Receipt | None) -> str:
    if receipt is None:
        return "is under way elsewhere, or needs no repair any more"
    status = stored_status(receipt)
    if status.needs_repair:
        why = receipt.error or (receipt.archive_reason or "not all of it is in the store").replace("_", " ")
        return f"still {status.replace('_', ' ')}: {why}"
    return f"repaired, {receipt.stored_count:,} facts kept, {receipt.new_count:,} new"


def _cells(row: FactRow) -> tuple[object, ...]:
    entries = ", ".join(map(str, row.entries)) + (" …" if row.more_entries else "")
    return row.short_id, row.kind, row.text, row.session_title or "(gone)", entries, f"{row.created_at:%Y-%m-%d %H:%M}"
