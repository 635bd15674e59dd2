"""One attempt: what it yields, what it returns, and that it changes nothing when it ends early."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.fates import fate_of
from sessions_app.engine.legality import problems
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import ChunkSummarised, Commit, Ended, PhaseStarted, Planned, Stop, Stopped, Verified
from sessions_app.engine.terms import Fate, Outcome, Phase, SegmentKind, SkipReason, Status, SummarySource
from sessions_app.engine.view import build
from tests.engine.attempts import FILLER, Canned, StopAfter, answer, attempt, checkpoint_of, long_story, wordy
from tests.engine.histories import Story, histories

GOOD = answer("## Primary request and intent\nFix the parser.\n\n## Next step\nRun the tests.")


def test_steps_come_in_the_order_of_the_phases():
    made = attempt(long_story().entries)
    assert [type(step) for step in made.steps] == [PhaseStarted, Planned, PhaseStarted, ChunkSummarised, PhaseStarted, Verified]
    assert [step.phase for step in made.steps if isinstance(step, PhaseStarted)] == [Phase.PLAN, Phase.SUMMARISE, Phase.VERIFY]


def test_a_checkpoint_is_system_entries_then_the_block_then_the_tail():
    commit = attempt(long_story().entries).commit
    assert [segment.kind for segment in commit.segments] == [SegmentKind.RANGE, SegmentKind.SYNTHETIC, SegmentKind.RANGE]
    assert commit.segments[0] == Segment(kind=SegmentKind.RANGE, first=0, last=0)
    assert commit.segments[2] == Segment(kind=SegmentKind.RANGE, first=commit.boundary_index)
    assert commit.segments[1].payload is not None
    assert commit.segments[1].payload.text == commit.block


@pytest.mark.parametrize("instructions", [0, 1, 2])
def test_the_block_says_how_many_entries_it_stands_for(instructions):
    """System entries stay in the view, however many there are."""
    story = Story()
    for _ in range(instructions):
        story.system("You are an agent.")
    commit = attempt(story.extend(long_story().entries[1:]).entries).commit
    assert f"The {commit.boundary_index - instructions} entries of this conversation" in commit.block


def test_both_numbers_measure_the_view_in_the_same_way():
    entries = long_story().entries
    commit = attempt(entries).commit
    checkpoint = checkpoint_of(commit, 1)
    assert commit.tokens_before == sum(entry.tokens for entry in entries)
    kept = sum(entry.tokens for entry in entries if checkpoint.holds(entry.index))
    assert commit.tokens_after == kept + commit.block_tokens + 3
    assert commit.tokens_after < commit.tokens_before


def test_a_long_span_is_summarised_in_chunks_that_are_told_one_by_one():
    made = attempt(long_story(turns=60, words=FILLER * 20).entries, policy=Policy(keep_recent_fraction=0.05))
    chunks = [step for step in made.steps if isinstance(step, ChunkSummarised)]
    assert len(chunks) > 1
    assert [step.chunk_index for step in chunks] == list(range(1, len(chunks) + 1))
    assert {step.chunk_count for step in chunks} == {len(chunks)}


def test_chunks_without_a_word_from_anybody_are_no_failure():
    story = Story().user("Read everything.")
    for step in range(60):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 60)
    story.says("Read.").user("Thanks.").says("Welcome.")
    made = attempt(story.entries)
    assert len([step for step in made.steps if isinstance(step, ChunkSummarised)]) > 1
    assert "Read everything." in made.commit.block


def test_the_message_of_a_turn_that_is_cut_is_carried_word_for_word_after_the_block():
    story = Story()
    story.user("Rename every module. " + FILLER)
    for step in range(12):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 20)
    commit = attempt(story.entries).commit
    assert [segment.kind for segment in commit.segments] == [SegmentKind.SYNTHETIC, SegmentKind.ENTRY, SegmentKind.RANGE]
    assert commit.segments[1].first == 0
    assert "stands word for word below" in commit.block


def test_a_carried_message_is_carried_again_when_its_turn_is_cut_again():
    story = Story().user("Rename every module. " + FILLER)
    for step in range(12):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 20)
    first = attempt(story.entries).commit
    for step in range(12, 24):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 20)
    second = attempt(story.entries, chain=[checkpoint_of(first, 1)], previous_summary=first.summary).commit
    assert 0 in [segment.first for segment in second.segments if segment.kind is SegmentKind.ENTRY]


def test_a_carried_message_is_folded_once_its_turn_is_over():
    story = Story().user("Rename every module. " + FILLER)
    for step in range(12):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 20)
    first = attempt(story.entries).commit
    story.says("All renamed.")
    for turn in range(6):
        story.user(f"Part {turn}. {FILLER * 20}").says(FILLER * 20)
    second = attempt(story.entries, chain=[checkpoint_of(first, 1)], previous_summary=first.summary).commit
    assert not [segment for segment in second.segments if segment.kind is SegmentKind.ENTRY]
    assert "Rename every module." in second.block


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([], SkipReason.EMPTY_SESSION),
        (Story().user().says().entries, SkipReason.FEWER_THAN_THREE_ROUNDS),
        (Story().user().calls("a").user().says().user().says().entries, SkipReason.WOULD_NOT_SHRINK),
    ],
)
def test_a_history_with_nothing_to_fold_is_a_skip_that_says_so(entries, reason):
    result = attempt(entries).result
    assert isinstance(result, Ended)
    assert (result.status, result.outcome, result.reason) == (Status.SKIPPED, Outcome.SKIPPED, reason)
    assert result.explanation.endswith("Nothing was changed.")


def test_an_illegal_boundary_is_refused_with_the_call_that_it_would_split():
    story = long_story()
    result = attempt(story.entries, boundary=3).result
    assert isinstance(result, Ended)
    assert "c0" in result.explanation


def test_force_folds_what_would_not_be_worth_it():
    story = Story().user("One?").says("One.").user("Two?").says("Two.").user("Three?").says("Three.")
    assert isinstance(attempt(story.entries).result, Ended)
    assert isinstance(attempt(story.entries, force=True).result, Commit)


def test_an_automatic_attempt_that_cannot_reach_its_target_is_skipped():
    story = long_story(turns=4)
    story.user("And now the big one.").calls("big").result("big", words=FILLER * 400).says("Read it all.")
    result = attempt(story.entries, manual=False, window=16_000, policy=Policy(protected_recent_messages=4)).result
    assert isinstance(result, Ended)
    assert result.reason is SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET


def test_a_view_that_cannot_reach_its_target_says_how_large_each_part_of_it_is():
    story = Story().system("You are an agent. " * 200)
    for turn in range(4):
        story.user(f"Part {turn}. {FILLER}").calls(f"c{turn}").result(f"c{turn}", words=FILLER * 40).says(FILLER)
    entries = story.entries
    result = attempt(entries, manual=False, window=4_000, policy=Policy(protected_recent_messages=8), signal_tokens=20_000).result
    assert isinstance(result, Ended)
    assert result.reason is SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET
    assert f"the system prompt {entries[0].tokens:,}" in result.explanation
    held = sum(entry.tokens for entry in entries)
    assert f"what no entry holds (tools and the like) {20_000 - held:,}" in result.explanation
    assert f"calls and their results {sum(entry.tokens for entry in entries if entry.kind in ('call', 'result')):,}" in result.explanation
    assert result.explanation.endswith("Nothing was changed.")


def test_an_automatic_attempt_stays_within_its_target():
    policy = Policy()
    commit = attempt(long_story(turns=80).entries, manual=False, window=32_000, policy=policy).commit
    assert commit.tokens_after <= policy.target_tokens(32_000)


def test_a_rejected_answer_gets_a_second_attempt_that_asks_for_less():
    summariser = Canned(answer("", truncated=False), GOOD)
    commit = attempt(long_story().entries, summariser=summariser).commit
    assert commit.summary_source is SummarySource.LLM
    assert [request.max_tokens for request in summariser.requests][1] < summariser.requests[0].max_tokens


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer("   "), Outcome.REJECTED_EMPTY),
        (answer("## Next step\nCarry", truncated=True), Outcome.REJECTED_TRUNCATED),
        (answer("## Next step\n" + FILLER * 2_000), Outcome.REJECTED_INFLATED),
        (answer(FILLER * 8), Outcome.FAILED),
    ],
)
def test_two_rejected_answers_end_the_attempt(given, outcome):
    result = attempt(long_story(words=FILLER * 8).entries, summariser=Canned(given)).result
    assert isinstance(result, Ended)
    assert (result.status, result.outcome) == (Status.FAILED, outcome)
    assert "Nothing was changed." in result.explanation


def test_a_summariser_that_raises_ends_the_attempt_without_quoting_what_it_was_sent():
    result = attempt(long_story().entries, summariser=Canned(TimeoutError("while sending: secret words"))).result
    assert isinstance(result, Ended)
    assert result.outcome is Outcome.FAILED
    assert "TimeoutError" in result.explanation
    assert "secret words" not in result.explanation


def test_missing_sections_are_a_warning_and_not_a_failure():
    commit = attempt(long_story().entries, summariser=Canned(GOOD)).commit
    assert any("Pending tasks" in warning for warning in commit.warnings)


def test_credentials_reach_neither_the_summariser_nor_the_block():
    key = "sk-" + "a1B2" * 8
    summariser = Canned(answer(f"## Next step\nUse {key} again."))
    commit = attempt(long_story(words=f"The key is {key}. {FILLER * 8}").entries, summariser=summariser).commit
    seen = [entry.text for request in summariser.requests for entry in request.entries]
    assert not any(key in text for text in [*seen, commit.block, commit.summary, str(commit.mechanical_state)])
    assert any("credentials were removed" in warning for warning in commit.warnings)


def test_the_last_call_knows_the_previous_summary_and_the_state_of_the_whole():
    story = long_story()
    first = attempt(story.entries).commit
    for turn in range(12, 24):
        story.user(f"Part {turn}. {FILLER * 8}").says(FILLER * 8)
    summariser = Canned(GOOD)
    attempt(story.entries, chain=[checkpoint_of(first, 1)], previous_summary="Parts 0 to 9 were done.", summariser=summariser)
    assert summariser.requests[-1].previous_summary == "Parts 0 to 9 were done."
    assert summariser.requests[-1].state is not None
    assert summariser.requests[-1].state.user_messages[0].index == 1
    assert min(entry.index for request in summariser.requests for entry in request.entries) >= first.boundary_index


@settings(max_examples=60, deadline=None)
@given(histories(), st.booleans(), st.booleans(), st.integers(-1, 30))
def test_every_attempt_on_any_history_commits_a_legal_view_or_ends_with_a_reason(entries, force, manual, boundary):
    """Invariants 3 and 4: each entry has one fate, each view is legal; and nothing raises."""
    entries = wordy(entries)
    result = attempt(entries, force=force, manual=manual, window=8_000, boundary=boundary if boundary >= 0 else None).result
    if isinstance(result, Ended):
        assert result.explanation.strip()
        return
    checkpoint = checkpoint_of(result, 1)
    assert problems(build(entries, checkpoint)) == []
    for entry in entries:
        fate = fate_of(shape_of(entry), [checkpoint]).fate
        assert fate in {Fate.VERBATIM, Fate.SUMMARISED, Fate.OFF_BRANCH, Fate.DISPLAY_ONLY}
    assert result.entries_folded + result.entries_kept == sum(shape_of(entry).is_sent for entry in entries)


@settings(max_examples=25, deadline=None)
@given(histories())
def test_the_same_history_gives_the_same_checkpoint(entries):
    """Invariant 2: byte for byte."""
    entries = wordy(entries)
    assert attempt(entries, force=True).result == attempt(entries, force=True).result


@settings(max_examples=40, deadline=None)
@given(histories(), st.integers(0, 40), st.sampled_from([Stop.CANCELLED, Stop.TIMED_OUT]))
def test_a_stop_at_any_question_ends_the_attempt_at_once(entries, questions, stop):
    """Invariant 13: cancel and deadline change nothing."""
    asked = StopAfter(questions, stop)
    result = attempt(wordy(entries), force=True, should_stop=asked).result
    if asked.left < 0:
        assert isinstance(result, Ended)
        assert result.status is (Status.CANCELLED if stop is Stop.CANCELLED else Status.TIMED_OUT)
        assert asked.left == -1


def test_a_lost_lease_is_the_caller_s_to_handle():
    with pytest.raises(Stopped):
        attempt(long_story().entries, should_stop=StopAfter(2, Stop.LEASE_LOST))


def test_nothing_is_lost_between_generations_and_the_first_ones_facts_stay_findable():
    """Invariants 3, 14, 15 over ten generations: what was said and done first can still be read."""
    story = Story().system("You are an agent.")
    story.user("Never touch `legacy/billing.py`. Build the importer for ticket PAY-4711.").calls("w0").result("w0")
    story.says("I chose zstandard instead of gzip because the archive must stay seekable at /srv/archive/main.zst.")
    chain: list[Checkpoint] = []
    summary, commit = "", None
    for generation in range(1, 11):
        for turn in range(8):
            name = f"g{generation}t{turn}"
            story.user(f"Please do step {name}. {FILLER * 4}").calls(name).result(name, words=FILLER * 6).says(
                f"Step {name} works. {FILLER * 4}"
            )
        commit = attempt(story.entries, chain=chain, previous_summary=summary).commit
        chain.append(checkpoint_of(commit, generation))
        summary = commit.summary
        for entry in story.entries:
            assert fate_of(shape_of(entry), chain).generation is not None or chain[-1].holds(entry.index)
    assert commit is not None
    for fact in ("legacy/billing.py", "PAY-4711", "zstandard instead of gzip", "/srv/archive/main.zst"):
        assert fact in commit.block, fact
    assert commit.block_tokens < 12_000
    state = msgspec.convert(commit.mechanical_state, MechanicalState)
    assert len(state.user_messages) == sum(
        shape_of(entry).is_user_message for entry in story.entries if entry.index < commit.boundary_index
    )
