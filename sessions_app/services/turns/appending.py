"""Entries that are written here and not imported: the same row, sums, hashes and event as an import leaves."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec
import zstandard

from sessions_app import prepared
from sessions_app.engine.counting import ESTIMATOR_VERSION, estimate_parts
from sessions_app.engine.entries import INLINE_CHARS, PREVIEW_CHARS, Part, Usage, chain_prefix_hash, encode_parts
from sessions_app.engine.entries import Entry as EngineEntry
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Blob, Entry, Session
from sessions_app.services import signals
from sessions_app.services.signal_columns import fills


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry is to say. Texts of any length."""

    role: Role
    kind: Kind
    parts: tuple[Part, ...]
    source_id: str
    message_key: str = ""
    usage: Usage | None = None
    model: str = ""
    annex: Mapping[str, Any] = MappingProxyType({})
    meta: bool = False


def text_part(text: str) -> Part:
    """A text as a part, without what no database holds."""
    return Part(kind=PartKind.TEXT, text=storable(text))


def append(session: Session, drafts: Sequence[Draft], *, actor: Actor) -> range:
    """Appends entries to a session whose row the caller's transaction has locked; returns their indexes.

    Keeps its sums and its signal, and writes `entries.appended`. `session` is brought up to date.
    """
    first = session.entry_count
    added = [_row(session, draft) for draft in drafts]
    now = datetime.now(UTC)
    prepared.update(
        Session,
        session.pk,
        entry_count=session.entry_count,
        tokens_total=session.tokens_total,
        head_hash=session.head_hash,
        failure_count=session.failure_count,
        started_at=session.started_at or now,
        last_activity_at=now,
    )
    signals.refresh(session.pk, added=fills((row.role, row.kind, row.tokens) for row in added if row.role != Role.NOTICE))
    log.append(
        log.session_stream(session.pk),
        EventType.ENTRIES_APPENDED,
        actor=actor,
        target=("session", str(session.pk)),
        payload={"first": first, "last": session.entry_count - 1, "count": len(added)},
    )
    return range(first, session.entry_count)


def _row(session: Session, draft: Draft) -> Entry:
    parts, blobs = _shortened(draft.parts)
    said = EngineEntry(index=session.entry_count, role=draft.role, kind=draft.kind, parts=parts, source_id=draft.source_id)
    rolling = chain_prefix_hash(bytes(session.head_hash), said.digest())
    tokens = estimate_parts(parts, blobs)
    call_id, *more = list(dict.fromkeys(part.call_id[:200] for part in parts if part.call_id)) or [""]
    is_error = any(part.is_error for part in parts)
    row = Entry.objects.create(
        session=session,
        index=said.index,
        source_id=draft.source_id,
        message_key=draft.message_key,
        role=draft.role,
        kind=draft.kind,
        parts=encode_parts(parts),
        annex=dict(draft.annex),
        call_id=call_id,
        more_call_ids=more,
        tokens=tokens,
        estimator_version=ESTIMATOR_VERSION,
        prefix_tokens=session.tokens_total,
        prefix_hash=rolling,
        usage=msgspec.to_builtins(draft.usage) if draft.usage else None,
        model=draft.model[:100],
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        meta=draft.meta,
        is_error=is_error,
    )
    session.entry_count += 1
    session.head_hash = rolling
    session.failure_count += is_error
    if draft.role is not Role.NOTICE:
        session.tokens_total += tokens
    return row


def _shortened(parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], dict[str, tuple[str, bytes]]]:
    """The parts with long texts moved into blobs, and those blobs."""
    blobs: dict[str, tuple[str, bytes]] = {}
    kept = []
    for part in parts:
        if len(part.text) <= INLINE_CHARS:
            kept.append(part)
            continue
        data = part.text.encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = ("text/plain", data)
        kept.append(msgspec.structs.replace(part, text=part.text[:PREVIEW_CHARS], blob=digest, chars=len(part.text)))
    Blob.objects.bulk_create(
        (
            Blob(
                sha256=digest, media_type=media_type, size=len(data), compressed=True, data=zstandard.ZstdCompressor(level=3).compress(data)
            )
            for digest, (media_type, data) in blobs.items()
        ),
        ignore_conflicts=True,
    )
    return tuple(kept), blobs
