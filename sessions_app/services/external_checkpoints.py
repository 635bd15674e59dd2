"""A compaction that an agent made itself and reports: a checkpoint of its own lineage, with what it says that its context holds now."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db import transaction

from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Part, Segment, SyntheticMessage
from sessions_app.engine.terms import Kind, Lineage, Origin, Outcome, PartKind, Role, Scope, SegmentKind, Status, SummarySource, Trigger
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Entry, Session, SourceFile, ViewSegment
from sessions_app.permissions import Action, require
from sessions_app.runners.snapshots import TooDeep, without_payloads
from sessions_app.selectors import cuts
from sessions_app.selectors.item_ids import UnknownItem, item_id, place_of_item
from sessions_app.services import signals
from sessions_app.services.compactions import unknown
from sessions_app.services.external import InvalidReport
from sessions_app.services.turns.appending import Draft, append

MAX_SUMMARY_CHARS = 1_000_000
MOST_MESSAGES = 5_000
_SPOKEN = {"assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}


class CheckpointReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is reported. `last_item_id`: the last item that `summary` stands for; tokens of the context that is left."""

    summary: str
    last_item_id: str
    token_count: int
    model: str = ""
    compacted_messages: tuple[Mapping[str, Any], ...] | None = None
    window_id: int | None = None


def store_checkpoint(*, actor: Actor, session: Session, report: CheckpointReport) -> str:
    """Stores it and makes it the agent's checkpoint in force; returns the id of the item that it is in the history.

    Nothing of the history changes but for the divider behind it. What the runner was asked for before, and nobody knows the
    outcome of, is settled by it. Raises `InvalidReport`.
    """
    require(actor, Action.INGEST, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    messages = _messages(report)
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True, of=("self",)).select_related("active_agent").get(pk=session.pk)
        if SourceFile.objects.filter(session_id=current.pk).exists():
            raise InvalidReport("", "The compactions of this session are read from the agent's own file.")
        boundary = _boundary(current, report.last_item_id)
        segments = _segments(current, boundary, report, messages)
        compaction = _row(current, actor, report, boundary, messages)
        divider = _append_divider(current, compaction, actor)
        compaction.divider_index = divider
        compaction.save()
        _store_segments(compaction, segments)
        columns = {"active_agent": compaction, "last_generation": compaction.generation, "compaction_count": current.compaction_count + 1}
        Session.objects.filter(pk=current.pk).update(last_attempt=max(current.last_attempt, compaction.attempt), **columns)
        unknown.decide(current.pk, actor=actor, decision="reported")
        signals.refresh(current.pk)
        _tell(actor, compaction)
    return item_id(current.pk, divider)


def _messages(report: CheckpointReport) -> list[Any] | None:
    if not report.summary.strip():
        raise InvalidReport("data.summary", "compaction: a summary is needed.")
    if len(report.summary) > MAX_SUMMARY_CHARS:
        raise InvalidReport("data.summary", f"compaction: a summary may have {MAX_SUMMARY_CHARS:,} characters.")
    if report.compacted_messages is None:
        return None
    if len(report.compacted_messages) > MOST_MESSAGES:
        raise InvalidReport("data.compacted_messages", f"compaction: a context may have {MOST_MESSAGES:,} messages.")
    try:
        return [without_payloads(dict(message)) for message in report.compacted_messages]
    except TooDeep as error:
        raise InvalidReport("data.compacted_messages", f"compaction: {error}") from error


def _boundary(session: Session, last_item_id: str) -> int:
    try:
        boundary = place_of_item(session, last_item_id)[0] + 1
    except UnknownItem as error:
        raise InvalidReport("data.last_item_id", f"compaction: {error}") from error
    in_force = session.active_agent
    if in_force is not None and boundary < (in_force.boundary_index or 0):
        raise InvalidReport(
            "data.last_item_id",
            f"compaction: checkpoint #{in_force.generation} stands for more than that already, and none takes that back.",
        )
    return boundary


def _row(session: Session, actor: Actor, report: CheckpointReport, boundary: int, messages: list[Any] | None) -> Compaction:
    """The attempt that this is the end of, if this console had the runner make it; else one of the agent's own."""
    now = datetime.now(UTC)
    last = Compaction.objects.filter(session_id=session.pk, attempt=session.last_attempt).first()
    if last is None or last.lineage != Lineage.AGENT or last.status != Status.COMPLETED or last.generation is not None:
        last = Compaction(
            session=session, attempt=session.last_attempt + 1, trigger=Trigger.EXTERNAL, requested_by=actor.name, requested_at=now
        )
        last.started_at = last.finished_at = now
    before = Entry.objects.filter(session_id=session.pk, index=boundary - 1).values_list("prefix_hash", "source_id").get()
    last.lineage, last.status, last.outcome = Lineage.AGENT, Status.COMPLETED, Outcome.COMMITTED
    last.generation, last.parent = session.last_generation + 1, session.active_agent
    last.boundary_index, last.prefix_hash, last.boundary_source_id = boundary, *before
    last.summary, last.summary_source, last.summariser = storable(report.summary), SummarySource.EXTERNAL, session.agent
    last.tokens_after, last.tokens_after_origin, last.tokens_after_scope = report.token_count, Origin.REPORTED, Scope.CONVERSATION
    last.entries_folded = cuts.count_sent(session.pk, 0, boundary - 1)
    last.entries_kept = cuts.count_sent(session.pk, boundary, session.entry_count)
    last.detail = last.detail | {"item": _item(report, messages)}
    return last


def _item(report: CheckpointReport, messages: list[Any] | None) -> dict[str, Any]:
    """What was reported, as it is listed: without what was not told, and without payloads."""
    told = {"summary": storable(report.summary), "last_item_id": report.last_item_id, "token_count": report.token_count}
    more = {"model": storable(report.model), "compacted_messages": _plain(messages), "window_id": report.window_id}
    return told | {name: value for name, value in more.items() if value not in (None, "")}


def _plain(value: Any) -> Any:
    """The same with texts that every database takes."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {storable(name): _plain(held) for name, held in value.items()} if isinstance(value, dict) else value


def _segments(session: Session, boundary: int, report: CheckpointReport, messages: list[Any] | None) -> list[Segment]:
    """The agent's context now: system entries, what it put in the place of the rest, and all that came after."""
    system = min(cuts.after_system(session.pk), boundary)
    found = [Segment(kind=SegmentKind.RANGE, first=0, last=system - 1)] if system else []
    if messages is None:
        found.append(_synthetic(Role.USER, report.summary, "summary"))
    else:
        spoken = [(message, text) for message in messages if (text := _text(message.get("content", message)))]
        found += [_synthetic(_SPOKEN.get(str(message.get("role")), Role.USER), text, "replacement") for message, text in spoken]
    return [*found, Segment(kind=SegmentKind.RANGE, first=boundary, last=None)]


def _synthetic(role: Role, text: str, label: str) -> Segment:
    return Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=role, text=storable(text), label=label))


def _text(content: Any) -> str:
    """What a message says, its blocks one below the other; what is no text as its JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else msgspec.json.encode(content).decode()
    return "" if content is None else str(content)


def _append_divider(session: Session, compaction: Compaction, actor: Actor) -> int:
    said = Part(kind=PartKind.TEXT, text=f"Compacted by the agent: #{compaction.generation}")
    draft = Draft(role=Role.NOTICE, kind=Kind.COMPACTED, parts=(said,), source_id=f"reported:{compaction.pk}")
    return append(session, [draft], actor=actor)[0]


def _store_segments(compaction: Compaction, segments: Sequence[Segment]) -> None:
    ViewSegment.objects.bulk_create(
        ViewSegment(
            compaction=compaction,
            position=position,
            kind=segment.kind,
            first_index=segment.first,
            last_index=segment.last,
            payload=msgspec.to_builtins(segment.payload) if segment.payload else None,
            tokens=estimate_text(segment.payload.text) if segment.payload else 0,
        )
        for position, segment in enumerate(segments)
    )


def _tell(actor: Actor, compaction: Compaction) -> None:
    log.append(
        log.session_stream(compaction.session_id),
        EventType.COMPACTION_REPORTED,
        actor=actor,
        target=("compaction", str(compaction.pk)),
        compaction_id=compaction.pk,
        payload={
            "status": "checkpoint",
            "generation": compaction.generation,
            "tokens_after": compaction.tokens_after,
            "boundary_index": compaction.boundary_index,
            "response_event": None,
        },
    )
