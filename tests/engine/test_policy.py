"""A policy knows its ranges, its sources, and the windows of models."""

import pytest

from sessions_app.engine.policy import DEFAULT_WINDOW, Policy, resolve, window_for
from sessions_app.engine.terms import Profile


def test_the_trigger_is_the_smaller_of_share_and_cap():
    assert Policy().trigger_tokens(200_000) == 160_000
    assert Policy().trigger_tokens(1_000_000) == 250_000
    assert Policy(cap_tokens=5_000).trigger_tokens(200_000) == 5_000


def test_the_narrowest_scope_wins_whatever_the_order_and_says_so():
    values = [("session", "cap_tokens", 30_000), ("installation", "cap_tokens", 10_000), ("project", "cap_tokens", 20_000)]
    resolved = resolve([*values, ("project", "threshold_pct", 0.5)])
    assert resolved.policy.cap_tokens == 30_000
    assert resolved.sources["cap_tokens"] == "session"
    assert resolved.sources["threshold_pct"] == "project"
    assert resolved.sources["heartbeat_s"] == "default"
    assert set(resolved.sources) == set(Policy.__struct_fields__)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("threshold_pct", 0.99, "between 0.1 and 0.95"),
        ("cap_tokens", 999, "between 1,000 and 2,000,000"),
        ("cap_tokens", "many", "cap_tokens cannot be 'many': it is a whole number\\."),
        ("threshold_pct", "nan", "threshold_pct cannot be 'nan': it is a number\\."),
        ("enabled", 1, "enabled cannot be 1: it is true or false\\."),
        ("summarisers", "extractive", "summarisers cannot be 'extractive': it is a list of names\\."),
        ("standing_instructions", 5, "standing_instructions cannot be 5: it is a text\\."),
        ("standing_instructions", "x" * 2_001, "may have 2,000 characters; these have 2,001"),
        ("profile", "poetry", "profile cannot be 'poetry': it is one of conversation, coding, research, support\\."),
        ("colour", 1, "no field 'colour'"),
        ("summarisers", ["oracle"], "no summariser 'oracle'"),
        ("summarisers", [], "at least one summariser"),
        ("protected_recent_messages", -1, "between 0 and 1,000"),
    ],
)
def test_a_value_out_of_range_is_refused_in_words(field, value, words):
    with pytest.raises(ValueError, match=words):
        resolve([("session", field, value)])


def test_values_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="keep_recent_fraction must be smaller than target_fraction"):
        resolve([("installation", "target_fraction", 0.2), ("session", "keep_recent_fraction", 0.3)])


def test_a_target_that_no_view_could_come_down_to_is_refused():
    with pytest.raises(ValueError, match="must come to 500 tokens at least") as caught:
        resolve([("installation", "cap_tokens", 1_000), ("session", "target_fraction", 0.3)])
    assert caught.value.fields == ("target_fraction", "cap_tokens")
    assert resolve([("installation", "cap_tokens", 1_000), ("session", "target_fraction", 0.5)]).policy.cap_tokens == 1_000


def test_an_unknown_scope_is_refused():
    with pytest.raises(ValueError, match="no scope 'galaxy'"):
        resolve([("galaxy", "cap_tokens", 5_000)])


@pytest.mark.parametrize(
    ("profile", "protected"), [(Profile.CONVERSATION, 0), (Profile.CODING, 12), (Profile.RESEARCH, 12), (Profile.SUPPORT, 12)]
)
def test_the_profile_protects_recent_messages_unless_a_value_is_set(profile, protected):
    assert Policy(profile=profile).protected_messages == protected
    assert Policy(profile=profile, protected_recent_messages=3).protected_messages == 3


def test_a_value_that_the_profile_gives_names_it_as_its_source():
    assert resolve([("project", "profile", "coding")]).sources["protected_recent_messages"] == "profile"


def test_the_time_limit_grows_with_the_chunks_up_to_a_cap():
    assert [Policy().total_timeout(chunks) for chunks in (1, 2, 10, 100)] == [120, 180, 660, 900]
    assert Policy(total_timeout_s=95).total_timeout(100) == 95


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("us.anthropic.claude-opus-4-1-v1:0", 200_000),
        ("anthropic/claude-opus-4", 200_000),
        ("gpt-5.1-codex", 272_000),
        ("openai/gpt-4.1-mini", 1_047_576),
        ("GPT-4o", 128_000),
        ("gemini-2.5-pro", 1_048_576),
        ("my-own-model", DEFAULT_WINDOW),
        ("", DEFAULT_WINDOW),
    ],
)
def test_each_known_model_has_its_window(model, window):
    assert window_for(model) == window


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4[1m]", "gpt-5", "gpt-4o", "gemini-2.5-flash", "unknown"])
def test_every_model_can_reach_its_trigger(model):
    """A threshold above what a prompt can fill would never fire."""
    assert 0 < Policy().trigger_tokens(window_for(model)) < window_for(model)
