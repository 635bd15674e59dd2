"""A summary that stands before a chosen boundary is folded or carried, generation after generation, and never skipped (C15, C63)."""

import uuid

import msgspec
import pytest

from sessions_app.engine.entries import Checkpoint, Segment, SyntheticMessage
from sessions_app.engine.prompts import PREVIOUS_MARKER
from sessions_app.engine.terms import Lineage, Outcome, Role, SegmentKind, SummarySource
from sessions_app.models import Compaction, Session, SessionKind, SessionStatus
from sessions_app.selectors import cuts, plans
from sessions_app.services import signals
from sessions_app.services.compactions.automatic import recover_overflow
from sessions_app.services.compactions.drafts import commit_draft, edit
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.fakes.keys import point_at
from tests.fakes.model_server import ModelServer, say
from tests.services.compaction_scenes import WINDOW, fresh, grow, long_session, set_policy, story
from tests.stored import store_checkpoint, store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
HEAD = "## Primary request and intent\nSay why the builds fail.\n\n## Key concepts and decisions\n"
WORDS = "We decided never to open the wombat valve, because the pump behind it was removed."
CIPHER = "[A summary that only its provider can read stands here: 4,000 characters of ciphertext.]"


def up_to_here(actor, session: Session, turns: int = 6) -> Compaction:
    """Compacts up to the newest start of a turn but two, as a person who chose it there."""
    grow(session, turns)
    chain = plans.load_chain(fresh(session))
    last = session.entry_count
    starts = [index for index, starts_turn in cuts.legal_cuts(session.pk, chain[-1] if chain else None, last) if starts_turn]
    made = request(actor=actor, session=session, boundary=starts[-2]).compaction
    run_compaction(made.pk)
    assert fresh(made).boundary_index == starts[-2]
    return made


def blocks(session: Session) -> list[str]:
    return [part.part.text for message in plans.load_view(fresh(session)) for part in message.parts if part.synthetic]


def test_each_generation_is_given_the_whole_summary_before_it(support_actor, monkeypatch):
    numbers = iter(range(1, 100))
    with ModelServer(reply=lambda _: say(f"{HEAD}The wombat valve leaks in generation {next(numbers)}.")) as server:
        point_at(server, "anthropic", monkeypatch)
        session = long_session(12)
        set_policy(session, summarisers=["anthropic:scripted-model@4000"])  # so small that it takes several calls and their fold
        previous = ""
        for generation in (1, 2, 3):
            before = len(server.prompts)
            made = up_to_here(support_actor, session, turns=24)
            assert (made.generation, made.summary_source, made.outcome) == (generation, SummarySource.LLM, Outcome.COMMITTED)
            asked = server.prompts[before:]
            assert len(asked) > 1
            told = [PREVIOUS_MARKER in one.texts[-1] for one in asked]
            assert told == [False] * (len(asked) - 1) + [bool(previous)]
            assert previous in asked[-1].texts[-1]
            previous = made.summary
            assert [previous in block for block in blocks(session)] == [True]


def test_what_only_an_earlier_summary_says_outlives_three_generations_without_a_model(support_actor):
    """A person's own words, which stand in no entry."""
    session = long_session(12)
    draft = request(actor=support_actor, session=session, changes={"review_before_commit": True}).compaction
    run_compaction(draft.pk)
    text = fresh(draft).summary.replace("## Key concepts and decisions\n", f"## Key concepts and decisions\n{WORDS}\n\n")
    edit(actor=support_actor, session=session, compaction_id=draft.pk, text=text)
    commit_draft(actor=support_actor, session=session, compaction_id=draft.pk)
    for _ in range(3):
        made = up_to_here(support_actor, session)
        assert WORDS in made.summary
        assert WORDS in blocks(session)[0]


def test_a_trim_carries_it_whole(support_actor):
    session = long_session(12, kind=SessionKind.INLINE, status=SessionStatus.IDLE, model="m")
    first = up_to_here(support_actor, session)
    grow(session, 24)
    signals.refresh(session.pk)
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.WORKING)
    trimmed = recover_overflow(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4()).compaction
    assert trimmed.outcome == Outcome.TRIMMED, trimmed.explanation
    assert first.summary.strip() in trimmed.summary
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.IDLE)
    assert "No summary was made" not in up_to_here(support_actor, session).summary


def encrypted(**columns) -> Session:
    """What an agent leaves whose provider keeps the summary to itself: of the entries before 24 its view holds one, which says little."""
    entries = story(12)
    told = entries[11]
    assert told.role is Role.ASSISTANT
    entries[11] = msgspec.structs.replace(told, parts=(msgspec.structs.replace(told.parts[0], text=WORDS),))
    session = store_session(entries, window_override=WINDOW, **columns)
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.AGENT,
        segments=(
            Segment(kind=SegmentKind.ENTRY, first=4),
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text=CIPHER, label="encrypted summary")),
            Segment(kind=SegmentKind.RANGE, first=24),
        ),
        boundary_index=24,
    )
    store_checkpoint(session, plan, summary="")
    Session.objects.filter(pk=session.pk).update(last_attempt=1)
    signals.refresh(session.pk)
    return fresh(session)


@pytest.mark.parametrize("provider", ["", "openai"])
def test_a_summary_that_can_not_be_read_is_told_anew_from_its_entries(support_actor, monkeypatch, provider):
    with ModelServer(reply=lambda _: say(f"{HEAD}All is told.")) as server:
        point_at(server, "openai", monkeypatch)
        session = encrypted()
        if provider:
            set_policy(session, summarisers=["openai:scripted-model@60000"])
        made = up_to_here(support_actor, session)
        given = server.prompts[-1].texts[-1] if provider else made.summary
        assert WORDS in given
        assert any(WORDS in block for block in blocks(session)) is not bool(provider)
        assert any("can't be read here" in warning and "24 entries" in warning for warning in made.warnings)
        assert CIPHER not in blocks(session)[0]
        again = up_to_here(support_actor, session)
        assert not any("can't be read here" in warning for warning in again.warnings)


def test_it_is_told_anew_where_no_summary_is_made_at_all(support_actor):
    session = encrypted(kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")
    grow(session, 24)
    signals.refresh(session.pk)
    trimmed = recover_overflow(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4()).compaction
    assert trimmed.outcome == Outcome.TRIMMED, trimmed.explanation
    assert WORDS in trimmed.summary
