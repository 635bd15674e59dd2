"""Providers that lie, repeat what they were given, never end, or are dead: the attempt goes on without them, and pays them once."""

import pytest

from sessions_app.engine.entries import Usage
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import SummariserFailed, SummaryRequest
from sessions_app.engine.terms import Outcome, SummarySource
from sessions_app.engine.texts import storable
from sessions_app.providers import base, model_summariser
from sessions_app.providers.base import measured
from sessions_app.providers.patience import Patience
from sessions_app.providers.registry import summarisers_for
from tests.engine.attempts import FILLER, attempt, long_story
from tests.engine.histories import Story
from tests.fakes.keys import point_at
from tests.fakes.model_server import Asked, Fault, ModelServer, refuse, say

SUMMARY = "## Primary request and intent\nBuild the parser, part by part.\n\n## Next step\nRun the tests."
NAMES = {"anthropic": "anthropic:scripted-model@9000", "openai": "openai:scripted-model@9000"}


@pytest.fixture(params=sorted(NAMES))
def server(request, monkeypatch):
    monkeypatch.setattr(model_summariser, "FIRST_PAUSE_S", 0.01)
    with ModelServer(reply=lambda _: say(SUMMARY)) as running:
        running.summariser = NAMES[request.param]
        point_at(running, request.param, monkeypatch)
        yield running


def chain(server: ModelServer, **policy):
    return summarisers_for(Policy(summarisers=(server.summariser, "extractive"), **policy))


def run(server: ModelServer, story: Story, **options):
    first, *others = chain(server)
    return attempt(story.entries, summariser=first, fallbacks=others, **options).commit


def chunked() -> Story:
    return long_story(turns=60)


# What it repeats.


def echo(asked: Asked):
    return say("\n".join(asked.texts))


def material(asked: Asked):
    """Only what was to be read, without the marks around it, and with headings of a summary in it."""
    text = asked.texts[-1].partition("<material>")[2].partition("</material>")[0]
    lines = [line.partition("] ")[2] if line.startswith("[#") else line for line in text.splitlines()]
    return say("## Primary request and intent\n" + "\n".join(line for line in lines if not line.startswith(("<", "["))))


@pytest.mark.parametrize("reply", [echo, material])
def test_what_returns_its_input_is_no_summary_also_where_that_has_headings(server, reply):
    server.reply = reply
    story = long_story(turns=8)
    story.user("## Goal\nBuild it.\n\n## Next steps\nGo on.").says(f"Yes. {FILLER * 8}")
    for entry in long_story(turns=4).entries[1:]:
        story.add(entry.role, entry.kind, *entry.parts)
    made = run(server, story, previous_summary=f"{SUMMARY}\n\n{FILLER * 20}", window=60_000, force=True)
    assert (made.summary_source, made.summariser) == (SummarySource.EXTRACTIVE, "extractive")
    assert {tried.refused for tried in made.tried if tried.summariser == server.summariser} == {
        "the summary was a copy of the conversation and not a summary of it"
    }


def test_a_fold_that_repeats_one_part_and_forgets_the_others_is_refused(server):
    """The parts are told apart by their numbers."""
    part = "## Key concepts and decisions\n" + "It was decided that the parser keeps its state where the reader finds it. " * 8

    def reply(asked: Asked):
        text = asked.texts[-1]
        if "[partial record 1]" in text:
            return say(text.partition("[partial record 1]\n")[2].partition("\n\n[partial record 2]")[0])
        return say(f"{part}Part {text.partition('This is part ')[2][:2]}.")

    server.reply = reply
    made = run(server, chunked(), window=60_000)
    assert made.summary_source is SummarySource.MIXED
    assert [tried.refused for tried in made.tried][-3:-1] == ["the summary was a copy of the conversation and not a summary of it"] * 2


def test_an_answer_that_is_far_longer_than_was_asked_for_is_refused(server):
    server.reply = lambda _: say("## Next step\n" + "x y z " * 9_000)
    made = run(server, long_story(turns=90, words=FILLER * 12), window=400_000)
    assert made.summary_source is SummarySource.EXTRACTIVE
    assert "far longer than was asked for" in made.tried[0].refused


def test_an_answer_without_an_end_is_left(server, monkeypatch):
    monkeypatch.setattr("sessions_app.providers.openai.MAX_ANSWER_CHARS", 50_000)
    monkeypatch.setattr("sessions_app.providers.anthropic.MAX_ANSWER_CHARS", 50_000)
    assert base.MAX_ANSWER_CHARS > 10**6
    server.reply = lambda _: say("word " * 20_000, pieces=100)
    with pytest.raises(SummariserFailed, match="gave no answer"):
        chain(server)[0].summarise(SummaryRequest(entries=tuple(long_story(2).entries)), lambda: None)


@pytest.mark.parametrize("broken", ["half \ud83d of it", "and a nul \0 in it"])
def test_characters_that_no_store_takes_are_replaced(server, broken):
    server.reply = lambda _: say(f"{SUMMARY} {broken} \U0001f600", pieces=900)
    made = run(server, long_story(turns=6), window=60_000)
    assert made.summary == f"{SUMMARY} {broken} \U0001f600".replace("\ud83d", "\ufffd").replace("\0", "\ufffd")


def test_the_halves_of_a_character_that_came_in_two_pieces_are_one_again():
    assert storable("".join(("\ud83d", "\ude00 and \ud83d"))) == "\U0001f600 and \ufffd"
    assert storable("a\0b") == "a\ufffdb"


# What it counts.


@pytest.mark.parametrize("tokens", [-5, 10**20, 1.5, 2**53 + 1])
def test_what_no_provider_can_have_counted_is_not_measured_and_the_answer_stays(server, tokens):
    server.script(say(SUMMARY, input_tokens=tokens))
    made = run(server, long_story(turns=4), window=60_000)
    assert (made.summary, made.tried[0].usage, made.tried[0].cost_usd) == (SUMMARY, None, None)


def test_whole_numbers_are_measured_and_nothing_counts_as_none():
    assert measured(input=12, output=None, cache_read=2**53) == Usage(input=12, cache_read=2**53)
    assert [measured(input=told) for told in (True, "12", 1.0, -1, 2**53 + 1, [1])] == [None] * 6


# Where it is dead.


@pytest.mark.parametrize(
    ("answer", "calls"),
    [(refuse(401), 1), (refuse(404, "no such model"), 1), (refuse(500), 2), (say(""), 2), (say("x", fault=Fault.GARBAGE), 2)],
)
def test_who_gave_nothing_usable_is_not_asked_again_for_the_next_chunk(server, answer, calls):
    server.reply = lambda _: answer
    made = run(server, chunked(), window=60_000)
    assert (made.summary_source, made.outcome) == (SummarySource.EXTRACTIVE, Outcome.COMMITTED)
    assert len(server.prompts) == calls


def test_what_one_chunk_alone_is_refused_for_says_nothing_of_the_next(server):
    server.script(say("x", stop="refusal"))
    made = run(server, chunked(), window=60_000)
    assert made.summary_source is SummarySource.MIXED
    assert len(server.prompts) > 3


def test_who_hangs_is_waited_for_once_and_then_the_next_is_asked(server):
    server.reply = lambda _: say("x", fault=Fault.HANG)
    first, *others = chain(server, call_timeout_s=1, total_timeout_s=4)
    made = attempt(chunked().entries, summariser=first, fallbacks=others, window=60_000).commit
    assert made.summary_source is SummarySource.EXTRACTIVE
    assert (len(server.prompts), made.tried[0].refused.endswith("gave no answer in time.")) == (1, True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_whoever_comes_last_has_time_left_however_long_the_others_take():
    """By default: two calls of 90 s would be more than the 120 s of a small attempt."""
    clock = Clock()
    patience = Patience(Policy(), clock)
    told = [patience.for_call(chunk_count=1, models_left=models, is_last=False) for models in (1, 2, 3)]
    assert told == [90, 52.5, 35]
    for models in (3, 2, 1):
        clock.now += patience.for_call(chunk_count=1, models_left=models, is_last=False)
    assert clock.now == 105
    assert patience.for_call(chunk_count=1, models_left=1, is_last=False) == 0
    assert patience.for_call(chunk_count=10, models_left=1, is_last=False) == 90
    assert patience.for_call(chunk_count=1, models_left=1, is_last=True) == 90


def test_a_model_for_which_no_time_is_left_is_passed_over_without_a_call(server, monkeypatch):
    monkeypatch.setattr(Patience, "for_call", lambda *_, **__: 0.0)
    made = run(server, long_story(turns=6), window=60_000)
    assert made.tried[0].refused.endswith("no time is left for it.")
    assert (made.summary_source, server.prompts) == (SummarySource.EXTRACTIVE, [])
    assert isinstance(chain(server)[1], ExtractiveSummariser)
