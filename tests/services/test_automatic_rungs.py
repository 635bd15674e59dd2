"""Automatic attempts of which a cheap rung is enough: what they store fits the entries that they are about."""

import uuid

import msgspec
import pytest

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint, Entry, Segment, SyntheticMessage
from sessions_app.engine.terms import Fate, Lineage, Outcome, Role, Rung, SegmentKind, Status
from sessions_app.models import Session, SessionKind, SessionStatus
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import prefix_hash_before
from sessions_app.services import signals
from sessions_app.services.compactions.automatic import before_turn, recover_overflow
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.attempts import FILLER
from tests.engine.histories import Story
from tests.services.compaction_scenes import fresh
from tests.stored import append_entries, store_checkpoint, store_session

pytestmark = pytest.mark.django_db(transaction=True)


def bulky(turns: int, start: int = 0) -> list[Entry]:
    """Turns whose results are most of them."""
    story = Story()
    for turn in range(start, start + turns):
        story.user(f"Request {turn}.").calls(f"c{turn}").result(f"c{turn}", words=FILLER * 60).says(f"Request {turn} is met. {FILLER * 4}")
    return story.entries


def inline(entries: list[Entry], status: SessionStatus = SessionStatus.WORKING) -> Session:
    session = store_session(entries, window_override=16_000, kind=SessionKind.INLINE, status=status, model="m")
    signals.refresh(session.pk)
    return fresh(session)


def append(session: Session, entries: list[Entry]) -> None:
    first = fresh(session).entry_count
    append_entries(
        session, [msgspec.structs.replace(entry, index=first + entry.index, source_id=f"e{first + entry.index}") for entry in entries]
    )
    signals.refresh(session.pk)


def test_results_are_cleared_over_an_earlier_summary(support_actor):
    """Its plan moves no boundary; the prefix that it stands on is that of the checkpoint before."""
    session = inline(bulky(12), status=SessionStatus.IDLE)
    folded = request(actor=support_actor, session=session, boundary=40).compaction
    run_compaction(folded.pk)
    assert fresh(folded).boundary_index == 40
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.WORKING)
    append(session, bulky(9))
    cleared = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4()).compaction
    assert [rung["rung"] for rung in cleared.rungs] == [Rung.CLEAR]
    assert (cleared.status, cleared.outcome, cleared.boundary_index) == (Status.COMPLETED, Outcome.COMMITTED, 40), cleared.explanation
    assert bytes(cleared.prefix_hash) == prefix_hash_before(session.pk, 40)
    shown = plans.load_view(fresh(session))
    assert view.problems(shown) == []
    assert Fate.CLEARED in {part.fate for message in shown for part in message.parts}
    assert folded.summary == cleared.summary


def test_a_trim_that_has_to_go_further_than_planned_is_committed(support_actor):
    """The summary that it carries leaves no room for the turns that its budget would keep."""
    session = inline(bulky(24))
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        segments=(
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text=FILLER * 260)),
            Segment(kind=SegmentKind.RANGE, first=40),
        ),
        boundary_index=40,
    )
    store_checkpoint(session, plan, summary=FILLER * 260)
    Session.objects.filter(pk=session.pk).update(last_attempt=1)
    signals.refresh(session.pk)
    made = recover_overflow(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4()).compaction
    assert (made.status, made.outcome) == (Status.COMPLETED, Outcome.TRIMMED), made.explanation
    assert made.boundary_index == 95
    assert bytes(made.prefix_hash) == prefix_hash_before(session.pk, made.boundary_index)
