"""What sets a finding right: one transaction and one event each, after another look under the session's lock.

What an entry says, and which entries there are, is never touched.
"""

import tempfile
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

import zstandard
from django.db import transaction

from sessions_app.engine.overrides import Overrides
from sessions_app.engine.terms import OPEN_STATUSES, Lineage, Role, Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Blob, Compaction, Entry, Session
from sessions_app.permissions import Action, require
from sessions_app.readers.detect import HEAD_BYTES, reader_for
from sessions_app.selectors import plans
from sessions_app.selectors.raw_page import source_bytes, source_of
from sessions_app.services import forks, memory_flush, search_index, signals
from sessions_app.services.compactions.endings import end_lost
from sessions_app.services.compactions.step_events import append_step
from sessions_app.services.doctor import rows, views, work
from sessions_app.services.doctor.findings import Check, Finding
from sessions_app.services.imports import doubtful_times
from sessions_app.services.turns import sweeping

UPDATED_AT_ONCE = 200


def repair(*, actor: Actor, session_id: uuid.UUID, finding: Finding) -> bool:
    """Sets one finding right; False where it was so already, or nothing could be done. Raises what `permissions.require` raises."""
    require(actor, Action.REPAIR, target=("session", str(session_id)), stream=log.session_stream(session_id))
    mend = _REPAIRS.get(finding.check)
    return mend is not None and mend(actor, session_id, finding)


def _locked(session_id: uuid.UUID) -> Session:
    return Session.objects.select_for_update(of=("self",), no_key=True).get(pk=session_id)


def _tell(
    actor: Actor, session_id: uuid.UUID, check: Check, before: Mapping[str, object], after: Mapping[str, object], **facts: object
) -> None:
    log.append(
        log.session_stream(session_id),
        EventType.SESSION_REPAIRED,
        actor=actor,
        target=("session", str(session_id)),
        before=dict(before),
        after=dict(after),
        reason=check.value,
        payload=facts,
    )


def _end_lost(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    """Each has an event of its own kind, as where the sweep ends it."""
    ended = sum(end_lost(attempt, actor=actor) for attempt in work.lost_attempts(session_id))
    ended += sum(sweeping.end_one_lost(turn, actor) for turn in work.lost_turns(session_id))
    return bool(ended + memory_flush.end_lost(session_id=session_id))


def _set_status(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    with transaction.atomic():
        session = _locked(session_id)
        status = work.stuck_status(session)
        if status is None:
            return False
        running = Compaction.objects.filter(session_id=session_id, status__in=OPEN_STATUSES).first()
        Session.objects.filter(pk=session_id).update(status=status, running=running)
        _tell(actor, session_id, Check.STATUS_STUCK, {"status": session.status}, {"status": status.value})
    return True


def _tell_ends(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    """The event that is missing is the repair's own: one for each attempt, in one transaction."""
    with transaction.atomic():
        untold = work.untold_ends(_locked(session_id))
        for compaction_id, _number in untold:
            status = Compaction.objects.values_list("status", flat=True).get(pk=compaction_id)
            kind = EventType.COMPACTION_PERSISTED if status == Status.COMPLETED else EventType.COMPACTION_TRIGGERED
            append_step(compaction_id, kind, status=status, actor=actor)
    return bool(untold)


def _set_numbers(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    with transaction.atomic():
        session = _locked(session_id)
        wanted = work.numbers_behind(session)
        if wanted:
            Session.objects.filter(pk=session_id).update(**wanted)
            _tell(actor, session_id, Check.NUMBERS_BEHIND, {name: getattr(session, name) for name in wanted}, wanted)
    return bool(wanted)


def _count_anew(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    """In one transaction, so that nothing is added meanwhile: some seconds where a hundred thousand sums are wrong."""
    with transaction.atomic():
        _locked(session_id)
        kept, true = rows.sums_of(session_id)
        changed = _sum_anew(session_id, true.entry_count)
        if kept == true and not changed:
            return False
        Session.objects.filter(pk=session_id).update(**true._asdict())
        _refresh(session_id)
        before, after = ({"entries": one.entry_count, "tokens": one.tokens_total, "failures": one.failure_count} for one in (kept, true))
        _tell(actor, session_id, Check.SUMS_WRONG, before, after, sums_changed=changed)
    return True


def _sum_anew(session_id: uuid.UUID, end: int) -> int:
    """Writes the sums of tokens that are wrong. Returns how many were."""
    tokens, changed, wrong = 0, 0, list[Entry]()
    for index, pk, role, own, prefix_tokens in rows.pages(session_id, ("index", "pk", "role", "tokens", "prefix_tokens"), end):
        if prefix_tokens != tokens:
            wrong.append(Entry(pk=pk, index=index, prefix_tokens=tokens))
        if len(wrong) == UPDATED_AT_ONCE:
            changed += Entry.objects.bulk_update(wrong, ["prefix_tokens"])
            wrong = []
        tokens += 0 if role == Role.NOTICE else own
    return changed + (Entry.objects.bulk_update(wrong, ["prefix_tokens"]) if wrong else 0)


def _refresh(session_id: uuid.UUID) -> None:
    """The meter from what is right now; where something else is broken still, the repair of that does it."""
    session = Session.objects.get(pk=session_id)
    if not any(finding.check in (Check.CHECKPOINT_BROKEN, Check.OVERRIDES_DIFFER) for finding in views.findings_of(session)):
        signals.refresh(session_id)


def _decide_anew(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    with transaction.atomic():
        session = _locked(session_id)
        held, told = views.readable_overrides(session), plans.overrides_then(session_id)
        if held is not None and (held.pinned, held.excluded, held.version) == (told.pinned, told.excluded, told.version):
            return False
        stored = {
            "version": told.version,
            "pinned": sorted(told.pinned),
            "excluded": sorted(told.excluded),
            "since": session.entry_count,  # whatever was measured until now may have been of another view
        }
        Session.objects.filter(pk=session_id).update(overrides=stored if told.version else {})
        _refresh(session_id)
        _tell(actor, session_id, Check.OVERRIDES_DIFFER, _counts(held), _counts(told))
    return True


def _counts(overrides: Overrides | None) -> dict[str, object]:
    if overrides is None:
        return {}
    return {"pinned": len(overrides.pinned), "excluded": len(overrides.excluded), "version": overrides.version}


def _go_back(actor: Actor, session_id: uuid.UUID, finding: Finding) -> bool:
    """A revert like any other, so that every look back at the session knows of it."""
    lineage = Lineage(str(finding.facts["lineage"]))
    column = "active_agent" if lineage is Lineage.AGENT else "active_console"
    with transaction.atomic():
        session = _locked(session_id)
        broken: Compaction | None = getattr(session, column)
        if broken is None or not views.fault_of(session, broken.pk):
            return False
        instead = views.sound_before(session, lineage, broken.pk)
        Session.objects.filter(pk=session_id).update(**{column: instead})
        _refresh(session_id)
        log.append(
            log.session_stream(session_id),
            EventType.COMPACTION_REVERTED if lineage is Lineage.CONSOLE else EventType.SESSION_REPAIRED,
            actor=actor,
            target=("session", str(session_id)),
            compaction_id=instead.pk if instead and lineage is Lineage.CONSOLE else None,
            before={"generation": broken.generation},
            after={"generation": instead.generation if instead else None},
            reason=Check.CHECKPOINT_BROKEN.value,
            payload={"entry_count": session.entry_count},
        )
    return True


def _index_anew(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    with transaction.atomic():
        _locked(session_id)
        gap = work.index_gap(session_id)
        if gap is None:
            return False
        search_index.forget_session(session_id)
        _tell(actor, session_id, Check.INDEX_GAP, {"gap": list(gap)}, {})
    search_index.index_sessions([session_id])  # what this does not get to, the sweep does
    return True


def _set_time(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    with transaction.atomic():
        session = _locked(session_id)
        if not doubtful_times.in_doubt().filter(pk=session_id).exists():
            return False
        before = session.last_activity_at
        after = doubtful_times.set_right(session)
        _tell(actor, session_id, Check.TIME_DOUBTFUL, {"last_activity_at": before.isoformat()}, {"last_activity_at": after.isoformat()})
    return True


def _restore_blobs(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    """Reads the original records once more, as an import would, and takes from them what is missing."""
    session = Session.objects.get(pk=session_id)
    missing = set(rows.look_through(session_id, rows.sums_of(session_id)[1].entry_count).blobs)
    found = _blobs_in_source(session, missing) if missing else []
    if not found:
        return False
    with transaction.atomic():
        Blob.objects.bulk_create(found, ignore_conflicts=True)
        _tell(actor, session_id, Check.BLOB_MISSING, {"missing": len(missing)}, {"missing": len(missing) - len(found)})
    return len(found) == len(missing)


def _blobs_in_source(session: Session, missing: Collection[str]) -> list[Blob]:
    source = source_of(session)
    if source is None:
        return []
    found: dict[str, Blob] = {}
    with tempfile.TemporaryFile() as file:
        for block in source_bytes(source):
            file.write(block)
        file.seek(0)
        reader = reader_for(file.read(HEAD_BYTES))
        if reader is None:
            return []
        file.seek(0)
        for record in reader.read(file, path=source.path, cancelled=lambda: False):
            for digest, (media_type, data) in record.entry.blobs.items() if record.entry else ():
                if digest in missing and digest not in found:
                    found[digest] = _blob(digest, media_type, data, record.entry.parts if record.entry else ())
    return list(found.values())


def _blob(digest: str, media_type: str, data: bytes, parts: Any) -> Blob:
    shown = next((part for part in parts if part.blob == digest), None)
    is_text = media_type.startswith("text/")
    return Blob(
        sha256=digest,
        media_type=media_type,
        size=len(data),
        width=shown.width if shown else 0,
        height=shown.height if shown else 0,
        compressed=is_text,
        data=zstandard.ZstdCompressor(level=3).compress(data) if is_text else data,
    )


def _remove_fork(actor: Actor, session_id: uuid.UUID, _: Finding) -> bool:
    """Tells the origin; the fork's own stream goes with it."""
    return bool(forks.remove_left(actor=actor, only=session_id))


_REPAIRS: dict[Check, Callable[[Actor, uuid.UUID, Finding], bool]] = {
    Check.WORKER_LOST: _end_lost,
    Check.STATUS_STUCK: _set_status,
    Check.END_UNTOLD: _tell_ends,
    Check.NUMBERS_BEHIND: _set_numbers,
    Check.SUMS_WRONG: _count_anew,
    Check.OVERRIDES_DIFFER: _decide_anew,
    Check.CHECKPOINT_BROKEN: _go_back,
    Check.INDEX_GAP: _index_anew,
    Check.TIME_DOUBTFUL: _set_time,
    Check.BLOB_MISSING: _restore_blobs,
    Check.FORK_UNFINISHED: _remove_fork,
}
