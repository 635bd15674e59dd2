"""A summariser reads no more than its window holds: what counts is what it is sent, not how long the entries are (C36)."""

import msgspec
import pytest

from sessions_app.engine.chunks import CALL_TOKENS, RESULT_TOKENS, as_sent
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.policy import Policy
from sessions_app.engine.prompts import CLIPS, PREVIOUS_MARKER
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import SummariserFailed, SummaryRequest
from sessions_app.engine.terms import Kind, PartKind, Role, SummarySource
from sessions_app.providers.registry import summarisers_for
from tests.engine.attempts import FILLER, attempt, long_story
from tests.engine.histories import Story
from tests.fakes.model_server import refuse
from tests.providers.conftest import SUMMARY

WINDOW = 20_000
NAME = f"openai:somebodys-own@{WINDOW}"


def summariser():
    return summarisers_for(Policy(summarisers=(NAME,)))[0]


def between(words: str, answer: str) -> list[Entry]:
    """A turn with much to read, in the middle of others."""
    story = long_story(3).user("Read the log.").calls("log").result("log", words=words).says(answer).extend(long_story(3).entries)
    return [msgspec.structs.replace(entry, index=index, source_id=f"e{index}") for index, entry in enumerate(story.entries)]


def sent(asked) -> int:
    return estimate_text(asked.system) + sum(estimate_text(text) for text in asked.texts) + asked.body["max_tokens"]


def test_a_result_that_alone_is_longer_than_the_window_is_summarised_by_the_model(server):
    entries = between(f"HEAD {FILLER * 9_000} TAIL", "It ends in a panic.")
    made = attempt(entries, summariser=summariser(), force=True).commit
    assert (made.summary_source, [tried.refused for tried in made.tried if tried.refused]) == (SummarySource.LLM, [])
    assert all(sent(asked) <= WINDOW for asked in server.prompts)
    told = "\n".join(text for asked in server.prompts for text in asked.texts)
    assert "HEAD" in told
    assert "TAIL" in told
    assert "characters left out" in told


@pytest.mark.parametrize("words", [FILLER * 3_000, "一二三四五六七八九十。" * 9_000])
def test_a_message_of_that_length_is_cut_and_says_by_how_much(server, words):
    made = attempt(between("ok", f"HEAD {words} TAIL"), summariser=summariser(), force=True).commit
    assert made.summary_source is SummarySource.LLM
    assert all(sent(asked) <= WINDOW for asked in server.prompts)
    assert any("HEAD" in text and "characters left out" in text and "TAIL" in text for asked in server.prompts for text in asked.texts)


def test_what_an_earlier_summary_says_is_never_cut_whatever_else_gives_way(server):
    earlier = f"They began in May. {FILLER * 300} They end in June."
    story = Story().user(f"HEAD {FILLER * 3_000}").says("Read.")
    summariser().summarise(SummaryRequest(entries=tuple(story.entries), previous_summary=earlier, max_tokens=900), lambda: None)
    (asked,) = server.prompts
    assert PREVIOUS_MARKER in asked.texts[0]
    assert earlier in asked.texts[0]
    assert sent(asked) <= WINDOW


def test_what_can_not_be_cut_to_the_window_is_left_to_the_next_summariser(server):
    earlier = FILLER * 2_000
    with pytest.raises(SummariserFailed, match="longer than its window") as failed:
        summariser().summarise(SummaryRequest(previous_summary=earlier, max_tokens=900), lambda: None)
    assert failed.value.is_final
    assert server.prompts == []


def test_a_provider_that_finds_it_too_long_all_the_same_is_asked_once_more_with_less(server):
    server.script(refuse(400, "prompt is too long: 21000 tokens > 8192 maximum"))
    entries = tuple(long_story(20).entries)
    chosen = summariser()
    with pytest.raises(SummariserFailed) as failed:
        chosen.summarise(SummaryRequest(entries=entries, max_tokens=900), lambda: None)
    assert not failed.value.is_final
    assert chosen.summarise(SummaryRequest(entries=entries, max_tokens=900, is_shortened=True), lambda: None).text == SUMMARY
    first, second = map(sent, server.prompts)
    assert second <= WINDOW // 2 < first
    server.script(refuse(400, "prompt is too long: 21000 tokens > 8192 maximum"))
    with pytest.raises(SummariserFailed) as failed:
        chosen.summarise(SummaryRequest(entries=entries, max_tokens=900, is_shortened=True), lambda: None)
    assert failed.value.is_final


def test_of_a_text_that_the_store_keeps_apart_the_prompt_says_how_much_is_missing(server):
    story = Story().user("Look.").calls("a")
    story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="x" * 4_000, call_id="a", blob="f" * 64, chars=90_000))
    story.add(Role.USER, Kind.MESSAGE, Part(kind=PartKind.TEXT, text="y" * 4_000, blob="e" * 64, chars=50_000))
    summariser().summarise(SummaryRequest(entries=tuple(story.entries), max_tokens=900), lambda: None)
    assert "[… 86,000 characters left out …]" in server.prompts[0].texts[0]
    assert "[… 46,000 characters left out …]" in server.prompts[0].texts[0]


def test_results_calls_and_thinking_fill_a_chunk_with_no_more_than_is_sent_of_them():
    story = Story().user(FILLER * 900).calls("a", "b").result("a", "b", words=FILLER * 2_000).result("a", words="ok")
    story.add(Role.ASSISTANT, Kind.THINKING, Part(kind=PartKind.THINKING, text=FILLER * 90))
    story.add(Role.ASSISTANT, Kind.CALL, Part(kind=PartKind.CALL, text=FILLER * 900, call_id="c"))
    shapes = [shape_of(entry) for entry in story.entries]
    assert [shape.tokens for shape in as_sent(shapes)] == [
        shapes[0].tokens, shapes[1].tokens, 2 * RESULT_TOKENS, shapes[3].tokens, 0, CALL_TOKENS
    ]  # fmt: skip
    # The caps are those of the prompt.
    assert estimate_text((FILLER * 90)[: CLIPS[0].result]) <= RESULT_TOKENS
    assert estimate_text((FILLER * 90)[: CLIPS[0].call]) <= CALL_TOKENS
