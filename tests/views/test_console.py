"""Numbers, times and names as people read them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.template import Context, Template
from django.test import RequestFactory

from sessions_app.selectors.agents import agent_name, short_model
from sessions_app.templatetags import console


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (8_900, "8.9k"),
        (131_240, "131.2k"),
        (999_949, "999.9k"),
        (999_950, "1M"),
        (1_048_576, "1.05M"),
    ],
)
def test_tokens_take_few_characters_and_unknown_is_a_word(value, text):
    assert console.tokens(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "unknown"), (0, "0 B"), (512, "512 B"), (49_000, "49.0 kB"), (512_000_000, "512 MB")])
def test_sizes_have_a_unit(value, text):
    assert console.size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (86_400, "1 d"),
        (70 * 86_400, "2 mo"),
        (800 * 86_400, "2 y"),
    ],
)
def test_an_age_is_one_number_and_one_unit(seconds, text):
    now = datetime(2026, 11, 30, tzinfo=UTC)
    assert console.ago(now - timedelta(seconds=seconds), now) == text


def test_a_moment_is_told_in_utc_whatever_its_zone():
    at = datetime.fromisoformat("2026-11-30T15:02:41+01:00")
    assert console.iso(at) == "2026-11-30T14:02:41+00:00"
    assert console.utc(at) == "30 Nov 2026, 14:02:41 UTC"


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("claude-opus-4-5-20251101", "opus-4-5"),
        ("anthropic/claude-sonnet-4-5", "sonnet-4-5"),
        ("gpt-5.1-codex", "gpt-5.1-codex"),
        ("20251101", "20251101"),
        ("", ""),
    ],
)
def test_a_model_is_named_without_maker_and_date(model, text):
    assert short_model(model) == text


def test_an_agent_that_is_not_known_keeps_its_name():
    assert (agent_name("claude-code"), agent_name("mine"), agent_name("")) == ("Claude Code", "mine", "unknown")


@pytest.mark.parametrize(
    ("tag", "address"),
    [
        ("{% query sort='title' %}", "/?q=a+%26+b&amp;sort=title"),
        ("{% query q='' %}", "/"),
        ("{% query without='q' %}", "/"),
        ("{% query after='x' %}", "/?q=a+%26+b&amp;after=x"),
    ],
)
def test_the_address_changes_in_one_place_and_leaves_the_page_that_was_open(tag, address):
    request = RequestFactory().get("/")
    request.GET = QueryDict("q=a+%26+b&after=page")
    assert Template("{% load console %}" + tag).render(Context({"request": request})) == address


@pytest.mark.parametrize(
    ("value", "text"), [(None, "unknown"), (-3.0, "unknown"), (0.0, "under 0.1 s"), (0.4, "0.4 s"), (142.0, "2 m 22 s")]
)
def test_a_span_never_claims_what_was_not_measured(value, text):
    assert console.seconds(value) == text


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("extractive", "extractive", "extractive"),
        ("scripted", "extractive", "extractive, paced"),
        ("claude-code", "external", "external (claude-code)"),
        ("", "mixed", "mixed"),
        ("", "", ""),
    ],
)
def test_who_wrote_a_summary_is_said_once(name, source, text):
    assert console.summariser_words(name, source) == text
