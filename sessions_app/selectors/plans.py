"""Reads what planning and views need: checkpoints, shapes, entries, views and policies, never more than is asked for."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import zstandard
from django.db.models import Q, QuerySet, Sum

from sessions_app.engine import counting, overrides, view
from sessions_app.engine.calibration import Calibration
from sessions_app.engine.clearing import PLACEHOLDER_TOKENS
from sessions_app.engine.entries import Checkpoint, Entry, Part, Segment, SyntheticMessage, with_whole_text
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.overrides import Overrides
from sessions_app.engine.policy import ResolvedPolicy, resolve
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Lineage, Outcome, Role, SegmentKind
from sessions_app.models import Blob, ClearedResult, Compaction, Override, OverrideKind, PolicyScope, PolicyValue, Session, ViewSegment
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import entry_rows, prefixes
from sessions_app.selectors.entry_rows import UnreadableRow

PAGE = 500
"""Entries that one query reads: no cursor is open longer than that takes."""


class BrokenPlan(Exception):  # noqa: N818  it says what is the matter
    """The plan of a checkpoint is gone, or can't be read as it is stored: there is no view of it. The text says what can be done."""

    reason = "broken_view"

    def __init__(self, generation: int | None) -> None:
        which = f"checkpoint #{generation}" if generation else "the checkpoint that is said to be in force"
        super().__init__(
            f"The view of {which} can't be built: what is stored of it is damaged. The history is whole, and nothing was sent or changed. "
            "Go back to another generation, or have an admin run “manage.py doctor --repair”, which goes back to the newest whole one."
        )


class BrokenEntry(BrokenPlan):
    """An entry that has to be planned or sent holds words that this version does not know. The text says what can be done."""

    def __init__(self, index: int) -> None:
        Exception.__init__(
            self,
            f"Entry {index:,} can't be read: this version has no words for what is stored of it, as where a newer one wrote it. "
            "Nothing was sent or changed; the history can still be read and exported. Run the version that wrote it, or restore the entry "
            "from a backup; “manage.py doctor” names all such entries.",
        )


class PrefixChanged(BrokenPlan):
    """The history before a checkpoint's boundary is not the one that it was made of: its view would tell of something else."""

    reason = "prefix_changed"

    def __init__(self, generation: int, boundary_index: int) -> None:
        Exception.__init__(
            self,
            f"The entries before entry {boundary_index:,} are not those that checkpoint #{generation} was made of, as where somebody "
            "changed the database, or it came from another backup. Its view is not used, and nothing was sent or changed. Go back to "
            "another generation, or have an admin run “manage.py doctor --repair”, which goes back to the newest one that fits.",
        )


def default_context(session: Session) -> Lineage:
    """Whose context a session shows when nobody says: this console's once it compacted, pinned or excluded, else the agent's own."""
    if session.active_agent_id and not session.active_console_id and overrides_of(session).is_empty:
        return Lineage.AGENT
    return Lineage.CONSOLE


def load_checkpoint(compaction: "Compaction | Committed") -> Checkpoint:
    """The plan of a committed compaction. Two queries."""
    return _load_checkpoints([compaction])[0]


def load_chain(session: Session, context: Lineage | None = None) -> tuple[Checkpoint, ...]:
    """The checkpoints in force in a context, oldest first; empty when there is none. At most four queries.

    To the last one of this console's context today's overrides are applied, where there are any: it is then the agent's
    or, without any checkpoint, the whole history, if this console made none.
    """
    context = context or default_context(session)
    if context is Lineage.AGENT:
        return _chain_from(session.pk, session.active_agent_id) if session.active_agent_id else ()
    newest_id, decided = newest_of_console(session), overrides_of(session)
    return with_overrides(_chain_from(session.pk, newest_id) if newest_id else (), decided)


def newest_of_console(session: Session) -> uuid.UUID | None:
    """The checkpoint that this console's context builds on: its own, or the agent's where only overrides make it another."""
    return session.active_console_id or (None if overrides_of(session).is_empty else session.active_agent_id)


def overrides_of(session: Session) -> Overrides:
    """What is pinned and excluded now; it stands on the session's row."""
    return msgspec.convert(session.overrides, Overrides) if session.overrides else Overrides()


def calibration_of(session: Session) -> Calibration:
    """What the session's measurements say of its estimates; it stands on the session's row."""
    return Calibration(factor=session.calibration_factor, overhead=session.calibration_overhead, prompts=session.calibration_prompts)


def overrides_then(session_id: uuid.UUID | str, *, version: int | None = None, at: int | None = None) -> Overrides:
    """What was pinned and excluded as of a version, or when entry `at` was the newest. One query, over every decision until then."""
    rows = Override.objects.filter(session_id=session_id).order_by("version", "id")
    if version is not None:
        rows = rows.filter(version__lte=version)
    if at is not None:
        rows = rows.filter(entry_count__lte=at + 1)
    held: dict[str, set[int]] = {kind: set() for kind in OverrideKind.values}
    newest = 0
    for kind, index, is_on, made in rows.values_list("kind", "entry_index", "is_on", "version"):
        (held[kind].add if is_on else held[kind].discard)(index)
        newest = made
    return Overrides(pinned=frozenset(held[OverrideKind.PINNED]), excluded=frozenset(held[OverrideKind.EXCLUDED]), version=newest)


def with_overrides(chain: tuple[Checkpoint, ...], decided: Overrides) -> tuple[Checkpoint, ...]:
    """The chain with overrides applied to its last checkpoint."""
    last = overrides.applied(chain[-1] if chain else None, decided)
    return (*chain[:-1], last) if last else ()


def chain_of(compaction: Compaction | None) -> tuple[Checkpoint, ...]:
    """The checkpoints that lead up to this one, oldest first, itself the last. Three queries."""
    return _chain_from(compaction.session_id, compaction.pk) if compaction else ()


def load_shapes(session_id: uuid.UUID | str, first: int = 0, last: int | None = None) -> list[EntryShape]:
    """The shapes of the entries from `first` to `last`, inclusive, in order. One query; no text is read. Raises `BrokenEntry`."""
    try:
        return entry_rows.shapes(_rows(session_id, first, last))
    except UnreadableRow as error:
        raise BrokenEntry(error.index) from error


def load_entries(
    session_id: uuid.UUID | str, first: int = 0, last: int | None = None, *, whole: bool = False, for_people: bool = False
) -> Iterator[Entry]:
    """The entries from `first` to `last`, inclusive, in order, page by page. `whole` fetches shortened texts from their blobs.

    Raises `BrokenEntry`, but where they are `for_people`: then a notice stands for what can't be read.
    """
    made = entry_rows.shown_entry if for_people else _entry
    while last is None or first <= last:
        page = [made(*row) for row in entry_rows.fetch(entry_rows.for_entries(_rows(session_id, first, last))[:PAGE])]
        for entry in page:
            yield _whole(entry) if whole else entry
        if len(page) < PAGE:
            return
        first = page[-1].index + 1


def load_view(session: Session, context: Lineage | None = None, *, whole: bool = False) -> tuple[ViewMessage, ...]:
    """The model view of a session as it is now. Reads only the entries that stand in it."""
    chain = load_chain(session, context)
    return view_of(session.pk, chain[-1] if chain else None, whole=whole)


def view_of(session_id: uuid.UUID | str, checkpoint: Checkpoint | None, *, whole: bool = False) -> tuple[ViewMessage, ...]:
    """The view of one plan. Reads only the entries that stand in it."""
    if checkpoint is None:
        return view.build(load_entries(session_id, whole=whole), None)
    singles, ranges = _places(checkpoint)
    return view.build(_planned_entries(session_id, singles, ranges, whole=whole), checkpoint)


def view_tokens(session: Session, checkpoint: Checkpoint | None) -> int:
    """The estimate of a whole view, from stored sums: its cost does not grow with the history. Block included."""
    return entry_tokens(session.pk, checkpoint) + synthetic_tokens(checkpoint)


def entry_tokens(session_id: uuid.UUID | str, checkpoint: Checkpoint | None) -> int:
    """The estimate of the entries that stand in a view."""
    if checkpoint is None:
        return tokens_between(session_id, 0, None)
    singles, ranges = _places(checkpoint)
    total = sum(tokens_between(session_id, first, last) for first, last in ranges)
    alone = [index for index in singles if not any(first <= index and (last is None or index <= last) for first, last in ranges)]
    for start in range(0, len(alone), PAGE):
        total += _sum_tokens(_live(session_id).filter(index__in=alone[start : start + PAGE]))
    left_out = sorted(
        index for index in checkpoint.excluded if any(first <= index and (last is None or index <= last) for first, last in ranges)
    )
    for start in range(0, len(left_out), PAGE):
        total -= _sum_tokens(_live(session_id).filter(index__in=left_out[start : start + PAGE]))
    held = [index for index in checkpoint.cleared if checkpoint.holds(index)]
    for start in range(0, len(held), PAGE):
        page = held[start : start + PAGE]
        total += PLACEHOLDER_TOKENS * len(page) - _sum_tokens(_live(session_id).filter(index__in=page))
    return max(0, total)


def synthetic_tokens(checkpoint: Checkpoint | None) -> int:
    """The estimate of the messages that a plan adds itself: the block."""
    added = [segment.payload for segment in checkpoint.segments if segment.payload] if checkpoint else []
    return sum(counting.estimate_text(message.text) + counting.ENTRY_OVERHEAD for message in added)


def tokens_between(session_id: uuid.UUID | str, first: int, last: int | None) -> int:
    """The estimate of all live entries from `first` to `last`, inclusive, by stored prefix sums."""
    rows = _rows(session_id, first, last)
    start = rows.values_list("prefix_tokens", flat=True).first()
    end = rows.order_by("-index").values_list("prefix_tokens", "tokens", "role").first()
    if start is None or end is None:
        return 0
    sent = end[0] - start + (0 if end[2] == Role.NOTICE else end[1])
    return int(sent) - _sum_tokens(rows.filter(off_branch=True).exclude(role=Role.NOTICE))


def effective_policy(session: Session) -> ResolvedPolicy:
    """The policy of a session, with the source of each value. One query."""
    return policy_for(project_id=session.project_id, session_id=session.pk)


def policy_for(*, project_id: uuid.UUID | str | None = None, session_id: uuid.UUID | str | None = None) -> ResolvedPolicy:
    """The policy in force at a place. Raises `ValueError` when stored values contradict each other."""
    wanted = Q(scope=PolicyScope.INSTALLATION)
    if project_id:
        wanted |= Q(scope=PolicyScope.PROJECT, scope_id=str(project_id))
    if session_id:
        wanted |= Q(scope=PolicyScope.SESSION, scope_id=str(session_id))
    return resolve(PolicyValue.objects.filter(wanted).values_list("scope", "field", "value"))


def load_blob(sha256: str) -> bytes:
    """The bytes of a blob, decompressed. Raises `LookupError` when it is not there."""
    blob = Blob.objects.filter(pk=sha256).first()
    if blob is None:
        raise LookupError(f"There is no blob {sha256}.")
    data = bytes(blob.data)
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=blob.size) if blob.compressed else data


def whole_text(part: Part) -> str:
    """The text of a part; of one whose blob is gone what there is, and a note."""
    if not (part.blob and part.chars):
        return part.text
    try:
        return load_blob(part.blob).decode(errors="replace")
    except LookupError:
        return f"{part.text}\n[The rest of this text is not in the store any more: {part.chars - len(part.text):,} characters.]"


def _whole(entry: Entry) -> Entry:
    try:
        return with_whole_text(entry, load_blob)
    except LookupError:
        shortened = (part.chars and part.blob for part in entry.parts)
        parts = (
            msgspec.structs.replace(part, text=whole_text(part), blob="", chars=0) if is_short else part
            for part, is_short in zip(entry.parts, shortened, strict=True)
        )
        return msgspec.structs.replace(entry, parts=tuple(parts))


def _entry(*row: Any) -> Entry:
    try:
        return entry_rows.entry(*row)
    except UnreadableRow as error:
        raise BrokenEntry(error.index) from error


def _rows(session_id: uuid.UUID | str, first: int, last: int | None) -> QuerySet[EntryRow]:
    rows = EntryRow.objects.filter(session_id=session_id, index__gte=first).order_by("index")
    return rows if last is None else rows.filter(index__lte=last)


def _live(session_id: uuid.UUID | str) -> QuerySet[EntryRow]:
    return EntryRow.objects.filter(session_id=session_id, off_branch=False).exclude(role=Role.NOTICE)


def _sum_tokens(rows: QuerySet[EntryRow]) -> int:
    return rows.order_by().aggregate(total=Sum("tokens"))["total"] or 0


def _places(checkpoint: Checkpoint) -> tuple[list[int], list[tuple[int, int | None]]]:
    """What a plan holds: entries by themselves, in ascending order, and ranges."""
    singles = {segment.first for segment in checkpoint.segments if segment.kind is SegmentKind.ENTRY and segment.first is not None}
    ranges = [
        (segment.first, segment.last) for segment in checkpoint.segments if segment.kind is SegmentKind.RANGE and segment.first is not None
    ]
    return sorted(singles), ranges


def _planned_entries(
    session_id: uuid.UUID | str, singles: Sequence[int], ranges: Iterable[tuple[int, int | None]], *, whole: bool
) -> Iterator[Entry]:
    for start in range(0, len(singles), PAGE):
        rows = EntryRow.objects.filter(session_id=session_id, index__in=singles[start : start + PAGE])
        for row in entry_rows.fetch(entry_rows.for_entries(rows)):
            yield _whole(_entry(*row)) if whole else _entry(*row)
    for first, last in ranges:
        yield from load_entries(session_id, first, last, whole=whole)


def _chain_from(session_id: uuid.UUID | str, newest_id: uuid.UUID) -> tuple[Checkpoint, ...]:
    rows = Compaction.objects.filter(session_id=session_id, generation__isnull=False).values_list(*Committed._fields)
    chain = chain_among((Committed(*row) for row in rows), newest_id)
    check_prefix(session_id, chain[-1].generation, chain[-1].boundary_index, chain[-1].prefix_hash)
    return chain


def check_prefix(session_id: uuid.UUID | str, generation: int, boundary_index: int | None, prefix_hash: bytes) -> None:
    """Raises `PrefixChanged` where the history is not the one that a checkpoint was made of, by its stored rolling hash. One row."""
    if prefixes.is_other(session_id, boundary_index, prefix_hash):
        raise PrefixChanged(generation, boundary_index or 0)


class Committed(NamedTuple):
    """What a plan needs of a committed compaction. There may be hundreds, and rows of the model cost ten times as much."""

    pk: uuid.UUID
    generation: int | None
    lineage: str
    parent_id: uuid.UUID | None
    boundary_index: int | None
    prefix_hash: bytes
    outcome: str


def chain_among(rows: Iterable[Committed], newest_id: uuid.UUID) -> tuple[Checkpoint, ...]:
    """The checkpoints that lead up to one of these committed compactions, oldest first, itself the last. Two queries."""
    committed = {row.pk: row for row in rows}
    chain: list[Committed] = []
    at: uuid.UUID | None = newest_id
    while at is not None and (row := committed.pop(at, None)) is not None:
        chain.append(row)
        at = row.parent_id
    if not chain:
        raise BrokenPlan(None)
    return tuple(_load_checkpoints(chain[::-1]))


def _message(payload: object) -> SyntheticMessage | None:
    """What a plan puts in the place of entries; None where that can't be read."""
    try:
        return msgspec.convert(payload, SyntheticMessage) if payload else None
    except msgspec.ValidationError:
        return None


_SEGMENT_KINDS = frozenset(SegmentKind)


def _load_checkpoints(compactions: Sequence[Compaction | Committed]) -> list[Checkpoint]:
    ids = [compaction.pk for compaction in compactions]
    segments: dict[uuid.UUID, list[Segment]] = {pk: [] for pk in ids}
    columns = ("compaction_id", "kind", "first_index", "last_index", "payload")
    for pk, kind, first, last, payload in (
        ViewSegment.objects.filter(compaction_id__in=ids).order_by("compaction_id", "position").values_list(*columns)
    ):
        if kind not in _SEGMENT_KINDS:
            raise BrokenPlan(next(compaction.generation for compaction in compactions if compaction.pk == pk))
        segments[pk].append(Segment(kind=SegmentKind(kind), first=first, last=last, payload=_message(payload)))
    newest = compactions[-1]
    if not segments[newest.pk] or any(one.kind is SegmentKind.SYNTHETIC and one.payload is None for one in segments[newest.pk]):
        raise BrokenPlan(newest.generation)
    cleared: dict[uuid.UUID, set[int]] = {pk: set() for pk in ids}
    for pk, index in ClearedResult.objects.filter(compaction_id__in=ids).values_list("compaction_id", "entry_index"):
        cleared[pk].add(index)
    return [
        Checkpoint(
            generation=compaction.generation or 0,
            lineage=Lineage(compaction.lineage),
            segments=tuple(segments[compaction.pk]),
            boundary_index=compaction.boundary_index or 0,
            prefix_hash=bytes(compaction.prefix_hash),
            cleared=frozenset(cleared[compaction.pk]),
            trimmed=compaction.outcome == Outcome.TRIMMED,
        )
        for compaction in compactions
    ]
