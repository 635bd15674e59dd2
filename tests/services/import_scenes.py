"""A small transcript with everything that an import must keep apart, and what an import leaves of it in the store."""

from pathlib import Path

from sessions_app.models import Compaction, Entry, Record, Session, ViewSegment
from sessions_app.selectors.raw_page import source_bytes
from sessions_app.services.imports.outcomes import SourceOutcome
from sessions_app.services.imports.source import import_source
from tests.importing import ACTOR
from tests.readers.rows import SESSION, Row, answer, boundary, call, encode, prompt, reminder, result, summary

KEPT = {"anchorUuid": "s", "uuids": ["a4"]}


def rows() -> list[Row | bytes]:
    """Prompts, a call, a side chain, a rewind, a compaction with a kept row, broken bytes, a row that is billed twice."""
    side = {"isSidechain": True}
    return [
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        prompt("u1", None, "Add VAT to the invoice"),
        reminder("x1", "u1", "Today is Monday"),
        answer("a1", "x1", "Looking.", message="m1", output=1),
        answer("a2", "a1", call("task", "Task", description="Find totals", prompt="Where are totals?"), message="m1", output=4),
        prompt("s1", None, "Where are totals?", **side),
        answer("s2", "s1", "In totals.py", **side),
        result("r1", "a2", "task", "In totals.py"),
        answer("a3", "r1", "There."),
        prompt("u2", "a3", "Not this"),
        answer("ab", "u2", "Abandoned"),
        b'{"broken": \n',
        prompt("u3", "a3", "é\u2028 long " + "x" * 20_000),
        answer("a4", "u3", "Done."),
        boundary("b", "a4", preservedMessages=KEPT, postTokens=500),
        summary("s", "b", "VAT was added."),
        prompt("u4", "s", "And a test"),
        answer("a5", "u4", call("c9")),
        result("r9", "a5", "c9", "failed", is_error=True),
        answer("a6", "r9", "Fixed."),
    ]


def write(folder: Path, data: bytes | None = None, name: str = f"{SESSION}.jsonl") -> Path:
    path = folder / name
    path.write_bytes(encode(rows()) if data is None else data)
    return path


def take(path: Path, **options) -> SourceOutcome:
    return import_source(actor=ACTOR, path=path, cancelled=options.pop("cancelled", lambda: False), **options)


def the_session(key: str = f"claude-code:{SESSION}") -> Session:
    return Session.objects.get(source_key=key)


def stored(session: Session) -> dict[str, object]:
    """Everything that an import stores of a session and its side chains, without ids and times of the import itself."""
    columns = [
        field.name
        for field in Entry._meta.concrete_fields
        if field.name not in {"id", "session", "source_file", "prefix_hash", "timestamp"}
    ]
    entries = [tuple(row) for row in Entry.objects.filter(session=session).order_by("index").values_list(*columns, "timestamp")]
    hashes = [bytes(value) for value in Entry.objects.filter(session=session).order_by("index").values_list("prefix_hash", flat=True)]
    source = session.source_files.order_by("-version").first()
    records: list[tuple[object, ...]] = []
    if source is not None:
        fields = ("ordinal", "line", "offset", "length", "kind")
        records = [tuple(row) for row in Record.objects.filter(source_file=source).order_by("ordinal").values_list(*fields)]
    return {
        "entries": entries,
        "hashes": hashes,
        "records": records,
        "bytes": b"".join(source_bytes(source)) if source else b"",
        "content_hash": bytes(source.content_hash) if source else b"",
        "plans": [_plan(compaction) for compaction in Compaction.objects.filter(session=session).order_by("attempt")],
        "in_force": session.active_agent.divider_index if session.active_agent else None,
        "session": (
            session.title, session.model, session.entry_count, session.tokens_total, bytes(session.head_hash), session.compaction_count,
            session.failure_count, session.warning_count, session.is_complete, session.signal_tokens, session.parent_call_id,
        ),
        "children": [stored(child) for child in session.children.order_by("source_key")],
    }  # fmt: skip


def _plan(compaction: Compaction) -> tuple[object, ...]:
    segments = ViewSegment.objects.filter(compaction=compaction).order_by("position").values_list("kind", "first_index", "last_index")
    return (compaction.divider_index, compaction.boundary_index, bytes(compaction.prefix_hash), compaction.summary, list(segments))
