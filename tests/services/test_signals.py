"""A session's row says how full its context is, what fills it, and what a compaction would leave."""

from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.engine.boundary import Boundary, choose
from sessions_app.engine.clearing import PLACEHOLDER_TOKENS
from sessions_app.engine.entries import Entry, Usage
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.plan import Plan, make
from sessions_app.engine.rounds import group_rounds
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Lineage, Origin, Scope, SkipReason
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Event, PolicyValue, Project, Session, SessionKind
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import compact_preview, cuts, plans
from sessions_app.services import signals
from sessions_app.services.policies import set_value
from tests.engine.histories import Story, checkpoint, histories
from tests.stored import append_entries, store_checkpoint, store_session

pytestmark = pytest.mark.django_db

MEASURED = Usage(input=1_000, cache_read=30_000, cache_write=500, output=200)


def long_story(turns: int = 20, size: int = 3_390) -> Story:
    story = Story()
    for number in range(turns):
        story.user(f"Request {number}").calls(f"c{number}").result(f"c{number}", words="x" * size).says(f"Answer {number}")
    return story


def refreshed(session: Session) -> Session:
    signals.refresh(session.pk)
    session.refresh_from_db()
    return session


def tokens(entries: list[Entry]) -> int:
    return sum(entry.tokens for entry in entries if entry.is_sendable and not entry.off_branch)


def test_without_a_measurement_the_signal_is_the_estimate_of_the_view():
    story = long_story().notice().says("Abandoned", off_branch=True)
    session = refreshed(store_session(story.entries, model="claude-sonnet-4-5"))
    assert session.signal_tokens == tokens(story.entries)
    assert (session.signal_origin, session.signal_scope, session.signal_measured) == (Origin.ESTIMATED, Scope.VIEW, None)
    assert (session.window, session.trigger_tokens) == (200_000, 160_000)
    assert session.pressure == pytest.approx(session.signal_tokens / 200_000)


def test_the_last_measurement_counts_with_its_own_answer_and_all_that_followed():
    story = long_story(3).user("Go").says("Part one", key="m").says("Part two", key="m", usage=MEASURED, timestamp="2026-01-01T00:00:00Z")
    story.user("And?").notice()
    session = refreshed(store_session(story.entries))
    appended = tokens(story.entries[13:])
    assert session.signal_measured == 31_500
    assert session.signal_appended == appended
    assert session.signal_tokens == 31_500 + appended
    assert (session.signal_origin, session.signal_scope) == (Origin.MEASURED, Scope.WHOLE_REQUEST)
    assert session.signal_measured_at == "2026-01-01T00:00:00Z"


def test_a_measurement_of_nothing_or_off_the_branch_does_not_count():
    story = long_story(3).says(usage=MEASURED).says(usage=Usage()).says(usage=Usage(input=9_999), off_branch=True)
    assert refreshed(store_session(story.entries)).signal_measured == 31_500


def test_a_measurement_from_before_the_compaction_is_gone_and_the_next_one_counts():
    story = long_story(5).says(usage=MEASURED).notice("Compacted").user("Summary").says()
    session = store_session(story.entries)
    plan = checkpoint(1, 22)
    agents = type(plan)(generation=1, lineage=Lineage.AGENT, segments=plan.segments[1:], boundary_index=22)
    store_checkpoint(session, agents, divider=21)
    assert refreshed(session).signal_origin == Origin.ESTIMATED
    assert session.signal_tokens == tokens(story.entries[22:])
    append_entries(session, story.says(usage=Usage(input=700)).entries[-1:])
    assert refreshed(session).signal_measured == 700


def test_what_an_agent_measures_is_not_the_view_of_this_console():
    story = long_story(5).notice("Compacted").says(usage=MEASURED)
    session = store_session(story.entries)
    store_checkpoint(session, checkpoint(1, 12), divider=20)
    assert refreshed(session).signal_origin == Origin.ESTIMATED
    inline = store_session(story.entries, kind=SessionKind.INLINE)
    store_checkpoint(inline, checkpoint(1, 12), divider=20)
    assert refreshed(inline).signal_measured == 31_500


def test_the_composition_adds_up_to_the_view():
    story = Story().system()
    for number in range(5):
        story.user().reminder().calls(f"c{number}").result(f"c{number}", words="x" * 900).says().notice()
    session = store_session(story.entries)
    assert sum(refreshed(session).composition.values()) == tokens(story.entries)
    assert set(session.composition) == {"system", "text", "reminders", "calls", "results"}
    plan = checkpoint(1, 25, 1, cleared=frozenset({28}))
    store_checkpoint(session, plan, divider=30)
    assert sum(refreshed(session).composition.values()) == plans.view_tokens(session, plan) == session.signal_tokens
    assert session.composition["block"] > 0
    assert session.composition["results"] == PLACEHOLDER_TOKENS


def manual_plan(session: Session) -> Plan | SkipReason:
    """What the engine plans when a person presses the button."""
    chain = plans.load_chain(session)
    return make(
        plans.load_shapes(session.pk),
        previous=chain[-1] if chain else None,
        policy=plans.effective_policy(session).policy,
        window=session.window,
        summariser_window=100_000,
        signal_tokens=session.signal_tokens or 0,
        manual=True,
        force=False,
    )


def same_preview(session: Session, plan: Plan | SkipReason) -> None:
    """The dialog says what the plan holds, by tails of any length and by sums alone."""
    is_pending = any(round_.is_pending for round_ in group_rounds(plans.load_shapes(session.pk)))
    for step, most in ((400, 5_000), (400, 0), (2, 5_000), (3, 0)):
        if is_pending and step < 400:
            continue  # a call left open so long ago in the turn that is under way is not seen from the tail
        with mock.patch.object(cuts, "TAIL_STEP", step), mock.patch.object(compact_preview, "MAX_PACKED", most):
            said = compact_preview.compact_preview(session)
        if isinstance(plan, SkipReason):
            assert said.refusal == EXPLANATIONS[plan]
            continue
        assert (said.boundary_index, said.carried, said.folded, said.folded_tokens, said.kept, said.kept_tokens, said.view_tokens) == (
            plan.boundary_index, plan.carried, len(plan.span), plan.span_tokens, plan.kept, plan.kept_tokens, plan.tokens_before
        )  # fmt: skip
        if said.is_exact:
            assert said.chunk_count == len(plan.chunks)


class Promise(TestCase):
    @given(histories(), st.integers(0, 250), st.integers(0, 5_000))
    @settings(max_examples=100)
    def test_what_the_button_promises_is_what_the_engine_plans(self, entries, keep_tokens, size):
        story = Story()
        story.entries = entries
        for number in range(3):
            story.calls(f"long{number}").result(f"long{number}", words="x" * size)
        session = store_session(entries)
        boundary = choose([shape_of(entry) for entry in entries], keep_tokens=keep_tokens)
        if isinstance(boundary, Boundary) and keep_tokens % 2:
            store_checkpoint(session, checkpoint(1, boundary.index, *boundary.carried))
        session = refreshed(session)
        plan = manual_plan(session)
        same_preview(session, plan)
        if isinstance(plan, SkipReason):
            assert (session.foldable_to, session.unfoldable_reason) == (None, plan)
        elif session.unfoldable_reason:
            assert session.unfoldable_reason == SkipReason.WOULD_NOT_SHRINK
            assert plan.block_tokens >= plan.span_tokens
        else:
            assert session.foldable_to == plan.kept_tokens + plan.block_tokens


def test_a_session_that_can_be_folded_says_to_about_how_much():
    session = refreshed(store_session(long_story().entries))
    plan = manual_plan(session)
    assert isinstance(plan, Plan)
    assert (session.foldable_to, session.unfoldable_reason) == (plan.kept_tokens + plan.block_tokens, "")
    assert plan.kept_tokens < (session.foldable_to or 0) < (session.signal_tokens or 0)


def test_a_measured_session_keeps_what_no_entry_holds():
    story = long_story().says(usage=Usage(input=50_000))
    session = refreshed(store_session(story.entries))
    beside_history = (session.signal_tokens or 0) - tokens(story.entries)
    assert beside_history > 20_000
    assert (session.foldable_to or 0) > beside_history


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (Story(), SkipReason.EMPTY_SESSION),
        (Story().user().says(), SkipReason.FEWER_THAN_THREE_ROUNDS),
        (Story().user().says().user().says(), SkipReason.WOULD_NOT_SHRINK),
        (Story().calls("a").says("x" * 9_000).says(), SkipReason.NO_LEGAL_BOUNDARY),
    ],
)
def test_a_session_with_nothing_to_fold_says_why(story, reason):
    session = refreshed(store_session(story.entries))
    assert (session.foldable_to, session.unfoldable_reason) == (None, reason)


def test_after_a_compaction_only_what_came_since_can_be_folded():
    session = store_session(long_story().entries)
    store_checkpoint(session, checkpoint(1, 78), divider=80)
    assert refreshed(session).unfoldable_reason == SkipReason.FEWER_THAN_THREE_ROUNDS


@pytest.mark.parametrize("step", [3, 10, 50])
@pytest.mark.parametrize("story", [long_story(60, size=700), Story().user("One long request. " * 50)], ids=["turns", "one turn"])
def test_a_cut_found_in_a_short_tail_is_the_one_of_the_whole_history(monkeypatch, step, story):
    story = Story().extend(story.entries)
    for number in range(200):
        story.calls(f"step{number}").result(f"step{number}", words="x" * 700)
    session = store_session(story.entries)
    monkeypatch.setattr(cuts, "TAIL_STEP", 10_000)
    whole = refreshed(session).foldable_to
    assert whole is not None
    monkeypatch.setattr(cuts, "TAIL_STEP", step)
    assert refreshed(session).foldable_to == whole


def test_the_queries_of_a_refresh_do_not_grow_with_the_history():
    counts = []
    for turns in (20, 200):
        session = store_session(long_story(turns).entries)
        with CaptureQueriesContext(connection) as queries:
            signals.refresh(session.pk)
        counts.append(len(queries))
    assert counts[1] <= counts[0] + 6
    assert counts[0] <= 20


def test_a_policy_value_moves_the_trigger_and_is_written_down():
    session = refreshed(store_session(long_story().entries))
    actor = system_actor("test")
    set_value(actor=actor, scope="session", scope_id=session.pk, field="cap_tokens", value=5_000)
    session.refresh_from_db()
    assert session.trigger_tokens == 5_000
    set_value(actor=actor, scope="session", scope_id=session.pk, field="cap_tokens", value=6_000)
    event = Event.objects.filter(type=EventType.POLICY_CHANGED).last()
    assert event is not None
    assert (event.stream, event.before, event.after) == (f"session:{session.pk}", {"cap_tokens": 5_000}, {"cap_tokens": 6_000})
    assert PolicyValue.objects.get().author == "test"


def test_a_wider_policy_reaches_its_sessions_only():
    project = Project.objects.create(key="p", name="P")
    inside, outside = refreshed(store_session(project=project)), refreshed(store_session())
    set_value(actor=system_actor("test"), scope="project", scope_id=project.pk, field="cap_tokens", value=5_000)
    inside.refresh_from_db()
    outside.refresh_from_db()
    assert (inside.trigger_tokens, outside.trigger_tokens) == (5_000, 102_400)
    assert Event.objects.get(type=EventType.POLICY_CHANGED).stream == "security"


@pytest.mark.parametrize(("field", "value"), [("cap_tokens", 1), ("colour", "red"), ("keep_recent_fraction", 0.7)])
def test_a_policy_value_that_is_not_allowed_changes_nothing(field, value):
    session = store_session()
    with pytest.raises(ValueError, match=field):
        set_value(actor=system_actor("test"), scope="session", scope_id=session.pk, field=field, value=value)
    assert not PolicyValue.objects.exists()
    assert not Event.objects.exists()


def test_a_value_that_would_contradict_a_sessions_own_is_refused():
    session = store_session()
    actor = system_actor("test")
    set_value(actor=actor, scope="session", scope_id=session.pk, field="keep_recent_fraction", value=0.5)
    with pytest.raises(ValueError, match="keep_recent_fraction must be smaller"):
        set_value(actor=actor, scope="installation", field="target_fraction", value=0.4)
    assert plans.effective_policy(session).policy.target_fraction == 0.60


def test_only_admins_set_policies(support_actor):
    with pytest.raises(ActionRefused):
        set_value(actor=support_actor, scope="installation", field="cap_tokens", value=5_000)
