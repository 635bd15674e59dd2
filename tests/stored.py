"""Puts histories into the store as an import would, for tests of what reads them."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from sessions_app.engine.entries import Checkpoint, Entry, chain_prefix_hash, encode_parts
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Outcome, Status, Trigger
from sessions_app.models import ClearedResult, Compaction, Session, ViewSegment
from sessions_app.models import Entry as EntryRow


def store_session(entries: Iterable[Entry] = (), **columns) -> Session:
    """A session with these entries, sums and hashes as an import leaves them."""
    serial = Session.objects.count()
    defaults = {"title": "A session", "agent": "claude-code", "source_key": f"test:{serial}", "last_activity_at": datetime.now(UTC)}
    session = Session.objects.create(**(defaults | columns))
    append_entries(session, entries)
    return session


def append_entries(session: Session, entries: Iterable[Entry]) -> None:
    """Adds entries behind those that the session has."""
    last = EntryRow.objects.filter(session=session).order_by("-index").first()
    tokens = last.prefix_tokens + (last.tokens if last.role != "notice" else 0) if last else 0
    rolling = bytes(last.prefix_hash) if last else b""
    rows = []
    for entry in entries:
        rolling = chain_prefix_hash(rolling, entry.digest())
        first, *more = shape_of(entry).call_ids or ("",)
        rows.append(
            EntryRow(
                session=session,
                index=entry.index,
                source_id=entry.source_id,
                message_key=entry.message_key,
                role=entry.role,
                kind=entry.kind,
                parts=encode_parts(entry.parts),
                call_id=first,
                more_call_ids=more,
                tokens=entry.tokens,
                prefix_tokens=tokens,
                prefix_hash=rolling,
                usage=msgspec.to_builtins(entry.usage) if entry.usage else None,
                model=entry.model,
                timestamp=entry.timestamp,
                off_branch=entry.off_branch,
                meta=entry.meta,
            )
        )
        tokens += entry.tokens if entry.is_sendable else 0
    EntryRow.objects.bulk_create(rows, batch_size=500)
    Session.objects.filter(pk=session.pk).update(
        entry_count=EntryRow.objects.filter(session=session).count(), tokens_total=tokens, head_hash=rolling
    )
    session.refresh_from_db()


def store_checkpoint(
    session: Session, plan: Checkpoint, *, parent: Compaction | None = None, divider: int | None = None, **columns
) -> Compaction:
    """Stores a plan as a committed compaction and makes it the active one of its lineage."""
    now = datetime.now(UTC)
    compaction = Compaction.objects.create(
        session=session,
        attempt=plan.generation,
        generation=plan.generation,
        lineage=plan.lineage,
        parent=parent,
        trigger=Trigger.MANUAL,
        status=Status.COMPLETED,
        outcome=Outcome.TRIMMED if plan.trimmed else Outcome.COMMITTED,
        boundary_index=plan.boundary_index,
        prefix_hash=plan.prefix_hash,
        divider_index=divider,
        requested_at=now,
        **columns,
    )
    for position, segment in enumerate(plan.segments):
        ViewSegment.objects.create(
            compaction=compaction,
            position=position,
            kind=segment.kind,
            first_index=segment.first,
            last_index=segment.last,
            payload=msgspec.to_builtins(segment.payload) if segment.payload else None,
        )
    for index in plan.cleared:
        ClearedResult.objects.create(compaction=compaction, entry_index=index)
    setattr(session, f"active_{plan.lineage}", compaction)
    session.last_generation = plan.generation
    session.save()
    return compaction
