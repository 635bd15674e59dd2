"""The summariser without a model: what it chooses, and that it invents nothing."""

import re

import pytest
from hypothesis import given, settings

from sessions_app.engine import summary
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.mechanical import collect
from sessions_app.engine.policy import Policy
from sessions_app.engine.sentences import split
from sessions_app.engine.steps import Stop, Stopped, SummaryRequest
from sessions_app.engine.summary import ORDER, Section
from sessions_app.engine.terms import Kind, Role
from sessions_app.providers.registry import summarisers_for
from sessions_app.providers.scripted import ScriptedSummariser
from tests.engine.attempts import FILLER, wordy
from tests.engine.histories import Story, histories
from tests.engine.test_mechanical import Work


def summarise(entries, *, previous: str = "", instructions: str = "", max_tokens: int = 3_000) -> dict[Section, str]:
    request = SummaryRequest(
        entries=tuple(entries), previous_summary=previous, state=collect(entries), instructions=instructions, max_tokens=max_tokens
    )
    text = ExtractiveSummariser().summarise(request, lambda: None).text
    return summary.parse(text).bodies


def a_day_of_work() -> Work:
    work = Work().user("The export hangs on large files. Never change the wire format.")
    work.says("Let me look at the writer.").tool("Read", {"file_path": "/srv/app/writer.py"})
    work.says("The root cause is that `flush` waits for the socket while it holds the lock in `writer.py`.")
    work.tool("Bash", {"command": "pytest tests/test_writer.py"}, "Exit code 1\nE   TimeoutError: flush took 30 s", is_error=True)
    work.says("The test fails because the fixture never closes the socket.")
    work.tool("Edit", {"file_path": "/srv/app/writer.py"}).tool("Bash", {"command": "pytest tests/test_writer.py"}, "3 passed")
    work.says("I moved `flush` out of the lock instead of adding a timeout, so large files no longer hang.")
    work.user("Good. Now write it down in the changelog.")
    work.says("I'll add it under Unreleased in `CHANGELOG.md`.")
    return work.tool("TodoWrite", {"todos": [{"content": "Write the changelog", "status": "in_progress"}]})


def test_each_section_says_what_it_is_for():
    told = summarise(a_day_of_work().entries)
    assert set(told) == set(ORDER)
    assert "The export hangs on large files." in told[Section.INTENT]
    assert "Never change the wire format." in told[Section.INTENT]
    assert "instead of adding a timeout" in told[Section.DECISIONS] + told[Section.CURRENT]
    assert "writer.py` edited" in told[Section.FILES]
    assert "TimeoutError: flush took 30 s" in told[Section.ERRORS]
    assert "because the fixture never closes the socket" in told[Section.ERRORS]
    assert "Succeeded at #" in told[Section.ERRORS]
    assert "[in progress] Write the changelog" in told[Section.PENDING]
    assert "Answer the user's request #13" in told[Section.NEXT]


def test_talk_about_talk_loses_against_reasons():
    told = summarise(a_day_of_work().entries, max_tokens=420)
    assert "Let me look at the writer." not in "".join(told.values())


def test_an_answered_request_is_never_a_next_step():
    """An answered request must not be taken up again."""
    told = summarise(Story().user("Delete the old index.").says("Deleted the old index.").entries)
    assert "Nothing is open" in told[Section.NEXT]
    assert "answered at #1" not in told[Section.PENDING]


def test_an_open_question_of_the_assistant_waits_for_its_answer():
    told = summarise(Story().user("Rename it.").says("It is used in two places. Shall I rename both of them?").entries)
    assert "Shall I rename both of them?" in told[Section.NEXT]


def test_what_an_earlier_summary_decided_is_taken_up_and_what_was_next_then_is_not():
    previous = summary.render(
        {Section.DECISIONS: "We must keep `zstd` level 3 because level 9 doubled the import time.", Section.NEXT: "Run the old benchmark."}
    )
    told = summarise(a_day_of_work().entries, previous=previous)
    assert "level 9 doubled the import time" in told[Section.DECISIONS]
    assert "old benchmark" not in "".join(told.values())


def test_what_was_said_about_a_file_outlives_several_generations():
    work = Work().user("Export it.").tool("Write", {"file_path": "/srv/export.py"})
    work.says("`export.py` — flushes outside of the lock because sockets are slow.")
    spans = [work.entries, *(Story().user(f"Go on, {turn}.").says(f"Step {turn} must wait.").entries for turn in range(4))]
    previous = ""
    for span in spans:
        request = SummaryRequest(entries=tuple(span), previous_summary=previous, state=collect(work.entries))
        previous = ExtractiveSummariser().summarise(request, lambda: None).text
        assert "flushes outside of the lock because sockets are slow" in summary.parse(previous).bodies[Section.FILES]


def test_a_summary_that_the_agent_wrote_itself_is_taken_up():
    work = Work()
    work.add(
        Role.USER,
        Kind.SUMMARY,
        *Story().user("2. Key Technical Concepts:\n- The cache must stay in `lru.py` because of forks.").entries[0].parts,
    )
    work.user("Go on.").says("Going on.")
    assert "because of forks" in summarise(work.entries)[Section.DECISIONS]


def test_instructions_raise_what_they_name():
    words = " ".join(f"The module `m{number}.py` must stay because of reason {number}." for number in range(60))
    entries = Story().user("Explain.").says(words + " The turbine is green.").user("Thanks.").says("Fine.").entries
    assert "turbine" not in summarise(entries, max_tokens=500)[Section.DECISIONS]
    assert "turbine" in summarise(entries, max_tokens=500, instructions="Stress the turbine.")[Section.DECISIONS]


@pytest.mark.parametrize("max_tokens", [200, 600, 3_000])
def test_a_summary_keeps_to_its_budget(max_tokens):
    work = a_day_of_work()
    for turn in range(200):
        work.user(f"Request {turn}: {FILLER * 5}").says(f"Because of {turn}, `f{turn}.py` must change. {FILLER * 5}")
    text = summary.render(summarise(work.entries, max_tokens=max_tokens))
    assert estimate_text(text) <= max_tokens * 1.25 + 120


@settings(max_examples=40, deadline=None)
@given(histories())
def test_what_is_told_of_the_assistant_stands_in_the_span(entries):
    """Grounding: no sentence is made up. Take away what was said, and nothing is left but heads."""
    entries = wordy(entries, times=1)
    told = summarise(entries)[Section.DECISIONS].replace(summary.NOTHING, "")
    told = re.sub(r"(?:^|\n)(?:On “.*?” \(#\d+\):|At the beginning:|From an earlier summary:)", "", told)
    for sentence in sorted({said for entry in entries for said in split(entry.text)}, key=len, reverse=True):
        told = told.replace(sentence, "")
    assert told.strip(" .\n") == ""


def test_partial_summaries_fold_into_one_that_knows_them_all():
    first, second = a_day_of_work().entries[:8], a_day_of_work().entries[8:]
    summariser = ExtractiveSummariser()
    partials = [summariser.summarise(SummaryRequest(entries=tuple(part)), lambda: None).text for part in (first, second)]
    request = SummaryRequest(partial_summaries=tuple(partials), state=collect(a_day_of_work().entries))
    told = summary.parse(summariser.summarise(request, lambda: None).text).bodies
    assert "holds the lock" in told[Section.DECISIONS] + told[Section.FILES]
    assert "instead of adding a timeout" in told[Section.DECISIONS] + told[Section.FILES]
    assert "the fixture never closes the socket" in told[Section.ERRORS]


def test_it_stops_when_it_is_told_to():
    with pytest.raises(Stopped):
        ExtractiveSummariser().summarise(SummaryRequest(entries=tuple(Story().user().entries)), lambda: Stop.CANCELLED)


def test_the_scripted_summariser_says_the_same_at_its_own_pace():
    request = SummaryRequest(entries=tuple(a_day_of_work().entries), state=collect(a_day_of_work().entries))
    (paced,) = summarisers_for(Policy(summarisers=("scripted",), scripted_delay_s=0.05))
    assert isinstance(paced, ScriptedSummariser)
    assert paced.summarise(request, lambda: None) == ExtractiveSummariser().summarise(request, lambda: None)


def test_the_scripted_summariser_does_not_sleep_through_a_stop():
    asked = iter([None, Stop.CANCELLED])
    with pytest.raises(Stopped):
        ScriptedSummariser(delay_s=60).summarise(SummaryRequest(), lambda: next(asked))
