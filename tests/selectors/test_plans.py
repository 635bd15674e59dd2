"""Reading plans, shapes, entries and views from the store: right, and no more than is named."""

import pytest
import zstandard
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.engine import counting, view
from sessions_app.engine.boundary import Boundary, choose
from sessions_app.engine.clearing import PLACEHOLDER_TOKENS
from sessions_app.engine.entries import Checkpoint, Part, Segment, SyntheticMessage
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind
from sessions_app.models import Blob, PolicyScope, PolicyValue, Project
from sessions_app.selectors import plans
from tests.engine.histories import Story, checkpoint, histories
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db


def long_story(turns: int = 30) -> Story:
    story = Story().system()
    for number in range(turns):
        story.user(f"Request {number}").calls(f"c{number}", f"d{number}").result(f"c{number}", f"d{number}").reminder().says()
    return story


def agent_plan(generation: int, boundary: int) -> Checkpoint:
    return Checkpoint(
        generation=generation,
        lineage=Lineage.AGENT,
        boundary_index=boundary,
        segments=(Segment(kind=SegmentKind.RANGE, first=boundary),),
    )


class RoundTrip(TestCase):
    @given(histories())
    @settings(max_examples=60)
    def test_what_is_loaded_is_what_was_stored(self, entries):
        session = store_session(entries)
        assert list(plans.load_entries(session.pk)) == entries
        assert plans.load_shapes(session.pk) == [shape_of(entry) for entry in entries]
        assert plans.load_view(session) == view.build(entries, None)

    @given(histories(), st.integers(0, 250), st.data())
    @settings(max_examples=60)
    def test_the_view_from_the_store_is_the_view_from_memory(self, entries, keep_tokens, data):
        boundary = choose([shape_of(entry) for entry in entries], keep_tokens=keep_tokens)
        if not isinstance(boundary, Boundary):
            return
        session = store_session(entries)
        cleared = data.draw(st.frozensets(st.sampled_from(range(len(entries))), max_size=2))
        plan = checkpoint(1, boundary.index, *boundary.carried, cleared=cleared)
        store_checkpoint(session, plan)
        assert plans.load_chain(session) == (plan,)
        assert plans.load_view(session) == view.build(entries, plan)

    @given(histories(), st.integers(0, 250))
    @settings(max_examples=60)
    def test_the_tokens_of_a_view_come_from_sums(self, entries, keep_tokens):
        session = store_session(entries)
        live = [entry for entry in entries if entry.is_sendable and not entry.off_branch]
        assert plans.view_tokens(session, None) == sum(entry.tokens for entry in live)
        boundary = choose([shape_of(entry) for entry in entries], keep_tokens=keep_tokens)
        if isinstance(boundary, Boundary):
            plan = checkpoint(1, boundary.index, *boundary.carried)
            block = counting.estimate_text("Block 1") + counting.ENTRY_OVERHEAD
            assert plans.view_tokens(session, plan) == block + sum(entry.tokens for entry in live if plan.holds(entry.index))


def test_a_cleared_result_counts_as_its_placeholder():
    session = store_session(Story().user().calls("a").result("a", words="x" * 46_510).says().entries)
    whole = plans.view_tokens(session, None)
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        segments=(Segment(kind=SegmentKind.RANGE, first=0),),
        boundary_index=0,
        cleared=frozenset({2}),
    )
    assert plans.view_tokens(session, plan) == whole - 10_003 + PLACEHOLDER_TOKENS


def test_parts_of_a_history_are_loaded_inclusive_of_both_ends():
    session = store_session(long_story().entries)
    assert [entry.index for entry in plans.load_entries(session.pk, 3, 7)] == [3, 4, 5, 6, 7]
    assert [shape.index for shape in plans.load_shapes(session.pk, 3, 7)] == [3, 4, 5, 6, 7]
    assert [shape.index for shape in plans.load_shapes(session.pk, 148)] == [148, 149, 150]
    assert list(plans.load_entries(session.pk, 9, 3)) == []


def test_a_long_history_is_loaded_page_by_page(monkeypatch):
    monkeypatch.setattr(plans, "PAGE", 10)
    session = store_session(long_story().entries)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert [entry.index for entry in plans.load_entries(session.pk)] == list(range(151))
    assert len(queries) == 16


def test_a_view_after_a_compaction_reads_only_what_stands_in_it():
    session = store_session(long_story().entries)
    store_checkpoint(session, checkpoint(1, 146, 141))
    with CaptureQueriesContext(connection) as queries:
        messages = plans.load_view(session)
    assert len(queries) <= 5
    assert messages[0].parts[0].part.text == "Block 1"
    assert {part.entry_index for message in messages for part in message.parts} == {None, 141, 146, 147, 148, 149, 150}


def test_a_chain_lists_the_generations_oldest_first_across_lineages():
    session = store_session(long_story().entries)
    first = store_checkpoint(session, agent_plan(1, 10))
    second = store_checkpoint(session, checkpoint(2, 20), parent=first)
    third = store_checkpoint(session, checkpoint(3, 30, trimmed=True), parent=second)
    assert [found.generation for found in plans.load_chain(session)] == [1, 2, 3]
    assert [found.trimmed for found in plans.load_chain(session)] == [False, False, True]
    assert plans.load_chain(session, Lineage.AGENT) == (agent_plan(1, 10),)
    assert [found.generation for found in plans.chain_of(second)] == [1, 2]
    assert plans.chain_of(None) == ()
    assert plans.load_checkpoint(third) == checkpoint(3, 30, trimmed=True)


def test_the_cost_of_a_chain_does_not_grow_with_its_length():
    session = store_session(long_story().entries)
    parent = None
    for generation in range(1, 13):
        parent = store_checkpoint(session, checkpoint(generation, generation * 5), parent=parent)
    with CaptureQueriesContext(connection) as queries:
        assert len(plans.load_chain(session)) == 12
    assert len(queries) == 3


def test_the_context_is_the_agents_until_this_console_compacts():
    session = store_session(long_story().entries)
    assert plans.default_context(session) is Lineage.CONSOLE
    assert plans.load_chain(session) == ()
    agents = store_checkpoint(session, agent_plan(1, 10))
    assert plans.default_context(session) is Lineage.AGENT
    store_checkpoint(session, checkpoint(2, 20), parent=agents)
    assert plans.default_context(session) is Lineage.CONSOLE


def test_an_agents_synthetic_messages_keep_their_role_and_text():
    session = store_session(long_story(2).entries)
    message = SyntheticMessage(role=Role.ASSISTANT, text="So far: nothing.", label="summary")
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.AGENT,
        boundary_index=6,
        segments=(Segment(kind=SegmentKind.SYNTHETIC, payload=message), Segment(kind=SegmentKind.RANGE, first=6, last=7)),
    )
    store_checkpoint(session, plan)
    assert plans.load_chain(session) == (plan,)


def test_a_text_in_a_blob_is_whole_only_when_asked_for():
    text = "é" * 20_000
    data = zstandard.ZstdCompressor().compress(text.encode())
    Blob.objects.create(sha256="ab" * 32, media_type="text/plain", size=len(text.encode()), compressed=True, data=data)
    part = Part(kind=PartKind.RESULT, text=text[:4_000], call_id="a", blob="ab" * 32, chars=len(text))
    session = store_session(Story().user().calls("a").add(Role.USER, Kind.RESULT, part).entries)
    assert list(plans.load_entries(session.pk))[2].parts == (part,)
    assert list(plans.load_entries(session.pk, whole=True))[2].parts[0].text == text
    assert view.sent_parts(plans.load_view(session, whole=True)[2])[0].text == text
    with pytest.raises(LookupError, match="no blob cd"):
        plans.load_blob("cd" * 32)


def test_a_policy_value_of_the_session_wins_over_project_and_installation():
    project = Project.objects.create(key="p", name="P")
    session = store_session(project=project)
    for scope, place, value in (
        (PolicyScope.SESSION, session.pk, 30_000),
        (PolicyScope.PROJECT, project.pk, 20_000),
        (PolicyScope.INSTALLATION, "", 10_000),
    ):
        PolicyValue.objects.create(scope=scope, scope_id=str(place), field="cap_tokens", value=value)
    resolved = plans.effective_policy(session)
    assert (resolved.policy.cap_tokens, resolved.sources["cap_tokens"]) == (30_000, "session")
    assert plans.effective_policy(store_session(project=project)).policy.cap_tokens == 20_000
    assert plans.effective_policy(store_session()).policy.cap_tokens == 10_000
