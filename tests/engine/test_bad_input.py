"""Histories and answers that nobody should make but somebody does: each ends in an outcome with its reason, and changes nothing else."""

import copy
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import legality, summary
from sessions_app.engine.entries import Entry
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import RANGES, Policy, PolicyError, changed
from sessions_app.engine.steps import Commit, Ended
from sessions_app.engine.terms import Outcome, Profile, Trigger
from sessions_app.engine.view import build
from tests.engine.attempts import FILLER, Canned, answer, attempt, checkpoint_of, long_story, wordy
from tests.engine.histories import Story, histories

SURROGATES = "\ud83d and \udc00, half of something. "


def orphan_results() -> Story:
    story = Story()
    for number in range(12):
        story.user(f"Ask {number}. {FILLER}").result(f"nobody{number}", words=FILLER * 4).says(f"Answer {number}. {FILLER}")
    return story


def unanswered_calls() -> Story:
    story = Story()
    for number in range(12):
        story.user(f"Ask {number}. {FILLER}").calls(f"c{number}")
    return story


def only_tool_entries() -> Story:
    story = Story()
    for number in range(20):
        story.calls(f"c{number}").result(f"c{number}", words=FILLER * 4)
    return story


def only_results() -> Story:
    story = Story()
    for number in range(20):
        story.result(f"c{number}", words=FILLER)
    return story


def larger_than_the_window() -> Story:
    story = long_story(turns=6)
    return story.user("Read it.").calls("big").result("big", words=FILLER * 4_000).says("Read.").user("And now?").says("Now this.")


def parallel_calls(calls: int = 10_000) -> Story:
    names = [f"p{number}" for number in range(calls)]
    story = long_story(turns=6).user("All at once.").calls(*names).result(*names).says("Done.")
    for turn in range(6):
        story.user(f"Then part {turn}. {FILLER}").says(FILLER)
    return story


def empty_strings() -> Story:
    story = Story().system("")
    for number in range(12):
        story.user("").calls("").result("", words="").says("").calls(f"c{number}").result(f"c{number}", words="")
    return story


def lone_surrogates() -> Story:
    story = Story()
    for number in range(12):
        story.user(SURROGATES * 8).calls(f"c{number}").result(f"c{number}", words=SURROGATES * 20).says(SURROGATES * 8)
    return story


def spaces() -> Story:
    story = long_story(turns=6).user(" " * 1_000_000).says(" " * 1_000_000).calls("s").result("s", words=" " * 1_000_000).says("Blank.")
    return story.user("And now?").says("Now this.")


HISTORIES: dict[str, Callable[[], Story]] = {
    "nothing at all": Story,
    "only a system entry": lambda: Story().system("You are an agent."),
    "only notices": lambda: Story().notice().notice().notice(),
    "results without calls": orphan_results,
    "calls without results": unanswered_calls,
    "only calls and results": only_tool_entries,
    "only results": only_results,
    "an entry larger than the window": larger_than_the_window,
    "ten thousand parallel calls": parallel_calls,
    "empty texts": empty_strings,
    "lone surrogates": lone_surrogates,
    "a megabyte of spaces": spaces,
}
WAYS = {
    "asked for": {"manual": True},
    "forced": {"manual": True, "force": True},
    "due": {"manual": False},
    "after an overflow": {"manual": False, "trigger": Trigger.OVERFLOW},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("history", HISTORIES)
def test_any_history_ends_in_an_outcome_with_its_reason_and_a_legal_view(history, way):
    entries = HISTORIES[history]().entries
    before = copy.deepcopy(entries)
    result = attempt(entries, window=8_000, **WAYS[way]).result
    assert entries == before
    ends_well(result, entries)


def ends_well(result: Commit | Ended, entries: list[Entry]) -> None:
    assert result.outcome in set(Outcome)
    if isinstance(result, Ended):
        assert result.explanation.endswith(("Nothing was changed.", "It may be asked for again."))
        assert len(result.explanation) > len("Nothing was changed.")
        return
    view = build(entries, checkpoint_of(result, 1))
    assert legality.problems(view) == []
    assert result.entries_folded > 0 or result.cleared


@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        ("", Outcome.REJECTED_EMPTY, "empty"),
        (" \n\t " * 1_000, Outcome.REJECTED_EMPTY, "empty"),
        ("<!DOCTYPE html>\n<html><head><title>502</title></head><body>Bad Gateway</body></html>", Outcome.FAILED, "web page"),
        ("```html\n<html><body>Sign in to continue</body></html>\n```", Outcome.FAILED, "web page"),
        ('{"error": {"type": "overloaded_error", "message": "Overloaded"}}', Outcome.FAILED, "error message"),
        ("Error: 429 Too Many Requests. Please wait before trying again.", Outcome.FAILED, "error message"),
        ("API Error: connection reset by peer", Outcome.FAILED, "error message"),
        ("503 Service Unavailable", Outcome.FAILED, "error message"),
        ("I'm sorry, but I can't help with summarising this conversation.", Outcome.FAILED, "error message"),
        ("<material>\n" + "[#1 the user] Please do part 0. " * 20 + "\n</material>", Outcome.FAILED, "copy"),
        ("## Next step\n" + FILLER * 4_000, Outcome.REJECTED_INFLATED, "larger"),
    ],
)
def test_what_is_no_summary_never_stands_for_a_history(text, outcome, words):
    result = attempt(long_story().entries, summariser=Canned(answer(text))).result
    assert isinstance(result, Ended)
    assert result.outcome is outcome
    assert words in result.explanation
    assert result.explanation.endswith("Nothing was changed.")


def test_a_summary_that_is_the_input_in_one_piece_or_in_many_is_refused():
    story = Story()
    for number in range(30):
        story.user(f"Part {number} is about step {number * 37} of the build. {FILLER}").says(f"Done with part {number}. {FILLER}")
    told = [entry.text for entry in story.entries[:20]]
    listed = "\n".join(f"[#{number} the user] {text}" for number, text in enumerate(told))
    for text in ("\n\n".join(told), "  ".join(told[3:9]).replace(". ", ".\n"), listed):
        result = attempt(story.entries, summariser=Canned(answer(text))).result
        assert isinstance(result, Ended)
        assert "copy" in result.explanation


@pytest.mark.parametrize(
    "text",
    [
        "Der Parser wurde repariert; als Nächstes laufen die Tests. `legacy/billing.py` bleibt, wie es ist.",
        "解析器已经修好；下一步是运行测试。不要修改 `legacy/billing.py`。",
        "Парсер исправлен; дальше — тесты. Файл `legacy/billing.py` не трогать.",
        "The build failed with “Error: 429 Too Many Requests”, because two workers shared one key; each has its own now.",
        "Errors were found in three of the parts, and all of them are mended. Next come the tests.",
    ],
)
def test_a_summary_in_another_language_or_about_errors_is_taken_and_lacks_its_headings(text):
    commit = attempt(long_story().entries, summariser=Canned(answer(text))).commit
    assert commit.outcome is Outcome.COMMITTED
    assert text in commit.block
    assert any("Next step" in warning for warning in commit.warnings)


def test_headings_are_known_from_a_page_that_an_error_made():
    assert summary.validate("## Errors and fixes\nError: boom", truncated=False, tokens=5, replaced_tokens=100) is None


def test_what_is_refused_once_is_asked_for_again_and_then_left_to_the_next():
    page = answer("<html><body>502</body></html>")
    asked = Canned(page)
    commit = attempt(long_story().entries, summariser=asked, fallbacks=[ExtractiveSummariser()]).commit
    assert len(asked.requests) == 2
    assert commit.summariser == "extractive"
    assert ["web page" in tried.refused for tried in commit.tried] == [True, True, False]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that may be set, with the ends of every range among its values."""
    policy = Policy()
    for field, (low, high) in RANGES.items():
        if field in ("scripted_delay_s", "call_timeout_s", "total_timeout_s", "heartbeat_s") or draw(st.booleans()):
            continue
        whole = isinstance(getattr(policy, field), int | None) and not isinstance(getattr(policy, field), float)
        value = draw(st.sampled_from([low, high]) | (st.integers(int(low), int(high)) if whole else st.floats(low, high)))
        try:
            policy = changed(policy, {field: int(value) if whole else float(value)})
        except PolicyError:
            continue  # it contradicts another value
    flags = {name: draw(st.booleans()) for name in ("clear_results", "allow_fallback", "enabled")}
    return changed(policy, {**flags, "profile": draw(st.sampled_from([profile.value for profile in Profile]))})


@settings(max_examples=60, deadline=None)
@given(histories(), policies(), st.sampled_from(sorted(WAYS)), st.sampled_from([1_000, 8_000, 200_000, 10_000_000]))
def test_no_policy_that_may_be_set_breaks_an_attempt(entries, policy, way, window):
    entries = wordy(entries)
    ends_well(attempt(entries, policy=policy, window=window, **WAYS[way]).result, entries)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold_pct", 0.05), ("threshold_pct", float("nan")), ("threshold_pct", "lots"), ("cap_tokens", 0), ("cap_tokens", -5),
        ("cap_tokens", 10**12), ("cap_tokens", 5.5), ("keep_recent_fraction", float("inf")), ("target_fraction", -0.1),
        ("summarisers", []), ("summarisers", ["nobody"]), ("profile", "poetry"), ("enabled", "maybe"), ("protected_recent_messages", -1),
        ("max_summary_calls", 1), ("call_timeout_s", 0), ("no_such_field", 1),
    ],
)  # fmt: skip
def test_a_value_that_no_policy_may_have_is_refused_by_its_name(field, value):
    with pytest.raises(PolicyError) as refused:
        changed(Policy(), {field: value})
    assert field in str(refused.value) or "summariser" in str(refused.value)
    assert len(str(refused.value)) < 300
