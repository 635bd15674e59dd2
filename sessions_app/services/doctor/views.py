"""What a model gets of a session: whether the checkpoint in force is one, refers to what is there, and its view can be built."""

import uuid
from collections.abc import Iterator

import msgspec

from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.legality import Mended, Mending, problems
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.overrides import Overrides
from sessions_app.engine.terms import Lineage, SegmentKind, Status
from sessions_app.models import Compaction, Entry, Session
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import is_other
from sessions_app.selectors.view_stream import stream_view
from sessions_app.services.doctor.findings import MOST_NAMED, Check, Finding, named

PAGE = 500
_WHOSE = {Lineage.CONSOLE: "this console", Lineage.AGENT: "the agent"}


def findings_of(session: Session) -> Iterator[Finding]:
    """What is wrong with the decisions and the checkpoints in force of a session, and with the view that it shows."""
    yield from _overrides(session)
    broken = False
    for lineage in Lineage:
        newest_id = session.active_agent_id if lineage is Lineage.AGENT else session.active_console_id
        if newest_id is not None and (why := fault_of(session, newest_id)):
            broken = True
            yield _broken(session, lineage, newest_id, why)
    if broken:
        return
    try:
        mended = _built(session, _plan_in_force(session))
    except Exception as error:  # noqa: BLE001  whatever it is that can't be read: that is what is looked for
        yield Finding(
            check=Check.ENTRY_UNREADABLE,
            what=f"The view can't be built from what is stored ({type(error).__name__}).",
            meaning="A message to this session fails. The history can still be read and exported.",
        )
        return
    yield from _notes(mended)


def _plan_in_force(session: Session) -> Checkpoint | None:
    if readable_overrides(session) is None:
        newest = session.active_console_id or session.active_agent_id
        chain = plans.chain_of(Compaction.objects.get(pk=newest)) if newest else ()
    else:
        chain = plans.load_chain(session)
    return chain[-1] if chain else None


def _overrides(session: Session) -> Iterator[Finding]:
    held, told = readable_overrides(session), plans.overrides_then(session.pk)
    if held is not None and (held.pinned, held.excluded, held.version) == (told.pinned, told.excluded, told.version):
        return
    kept = "can't be read" if held is None else f"says {len(held.pinned):,} pinned and {len(held.excluded):,} excluded"
    meaning = (
        "Its pages and messages to it fail."
        if held is None
        else "Entries are sent that somebody excluded, or are missing that somebody pinned."
    )
    yield Finding(
        check=Check.OVERRIDES_DIFFER,
        what=f"What is kept of its decisions {kept}; the decisions themselves say {len(told.pinned):,} and {len(told.excluded):,}.",
        meaning=meaning,
        repair="Puts the decisions together anew.",
        facts={"pinned": len(told.pinned), "excluded": len(told.excluded), "version": told.version},
    )


def readable_overrides(session: Session) -> Overrides | None:
    """What the session's row says is pinned and excluded; None where that can't be read."""
    try:
        return plans.overrides_of(session)
    except msgspec.ValidationError:
        return None


def _broken(session: Session, lineage: Lineage, newest_id: uuid.UUID, why: str) -> Finding:
    instead = sound_before(session, lineage, newest_id)
    goes_to = (
        f"checkpoint #{instead.generation}, the newest before it that is whole" if instead else "the whole history: no earlier one is whole"
    )
    return Finding(
        check=Check.CHECKPOINT_BROKEN,
        what=f"The checkpoint of {_WHOSE[lineage]} that is in force can't be used as it is stored: {why}.",
        meaning="Its view can't be shown or sent, so messages to the session fail and it can't be compacted. The history is whole.",
        repair=f"Goes back to {goes_to}. The broken one stays in the ledger.",
        facts={"lineage": lineage.value, "compaction_id": str(newest_id), "goes_to": instead.generation if instead else None},
    )


def sound_before(session: Session, lineage: Lineage, broken_id: uuid.UUID) -> Compaction | None:
    """The newest checkpoint of a lineage that is older than a broken one and whole; None where none is.

    Never a later one: somebody may have gone back from that.
    """
    earlier = Compaction.objects.filter(session_id=session.pk, lineage=lineage, generation__isnull=False, status=Status.COMPLETED)
    broken = Compaction.objects.filter(pk=broken_id).values_list("generation", flat=True).first()
    if broken is not None:
        earlier = earlier.filter(generation__lt=broken)
    return next((one for one in earlier.order_by("-generation").iterator() if not fault_of(session, one.pk)), None)


def fault_of(session: Session, compaction_id: uuid.UUID) -> str:
    """Why a checkpoint can't be used, in words that go on a sentence; empty for one that is whole."""
    compaction = Compaction.objects.filter(pk=compaction_id).first()
    if compaction is None:
        return "there is none of that id"
    try:
        return _of_row(session, compaction) or _of_chain(compaction) or _of_plan(session, compaction)
    except plans.BrokenPlan:
        return "its plan is gone, or can't be read"


def _of_row(session: Session, compaction: Compaction) -> str:
    if compaction.session_id != session.pk:
        return "it belongs to another session"
    if compaction.status != Status.COMPLETED or compaction.generation is None:
        return f"it never was committed (it is {compaction.status})"
    boundary = compaction.boundary_index or 0
    if is_other(session.pk, boundary, bytes(compaction.prefix_hash)):
        return f"the entries before its boundary at {boundary:,} are not those that it was made of"
    return ""


def _of_chain(compaction: Compaction) -> str:
    seen = {compaction.pk}
    at: uuid.UUID | None = compaction.parent_id
    while at is not None:
        above = Compaction.objects.filter(pk=at).values_list("session_id", "generation", "parent_id").first()
        if at in seen or above is None or above[0] != compaction.session_id or above[1] is None:
            return "what it builds on is no checkpoint of this session"
        seen.add(at)
        at = above[2]
    return ""


def _of_plan(session: Session, compaction: Compaction) -> str:
    lost = _missing(session.pk, plans.load_checkpoint(compaction))
    return f"its plan names {named(lost)}, which {'is' if len(lost) == 1 else 'are'} not there" if lost else ""


def _missing(session_id: uuid.UUID, checkpoint: Checkpoint) -> list[int]:
    """Entries that a plan names, singly or as ends of ranges, and that there are not. An open range may begin where the next entry will."""
    wanted: set[int] = set()
    for segment in checkpoint.segments:
        if segment.first is None:
            continue
        is_open = segment.kind is SegmentKind.RANGE and segment.last is None
        wanted |= {segment.first - 1 if is_open else segment.first} | ({segment.last} if segment.last is not None else set())
    indexes = sorted(index for index in wanted if index >= 0)
    known: set[int] = set()
    for start in range(0, len(indexes), PAGE):
        known.update(Entry.objects.filter(session_id=session_id, index__in=indexes[start : start + PAGE]).values_list("index", flat=True))
    return [index for index in indexes if index not in known]


def _built(session: Session, checkpoint: Checkpoint | None) -> Mended:
    """Builds the whole view, a few messages at a time, and says what had to be mended. Raises whatever a broken row raises."""
    mending = Mending()

    def given() -> Iterator[ViewMessage]:
        for message in stream_view(session.pk, checkpoint, whole=False, take=mending.take):
            mending.give(message)
            yield message

    refused = problems(given())
    assert not refused, refused[0]
    return mending.end()


def _notes(mended: Mended) -> Iterator[Finding]:
    if mended.left_out:
        one = len(mended.left_out) == 1
        yield Finding(
            check=Check.RESULT_LEFT_OUT,
            what=f"The view leaves out {named(mended.left_out)}: result{'' if one else 's'} of a call that is not in it.",
            meaning="A provider would refuse the request with it. The history shows it as it is; nothing has to be done.",
            facts={"entries": list(mended.left_out[:MOST_NAMED]), "count": len(mended.left_out)},
        )
    if mended.answered:
        places = [index for index, _ in mended.answered]
        yield Finding(
            check=Check.CALL_ANSWERED,
            what=f"The view answers {len(places):,} call{'' if len(places) == 1 else 's'} of {named(places)} itself: there is no result.",
            meaning="The model reads that no result was recorded. The history shows the call as it is; nothing has to be done.",
            facts={"entries": places[:MOST_NAMED], "calls": [call for _, call in mended.answered[:MOST_NAMED]], "count": len(places)},
        )
