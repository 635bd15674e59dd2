"""Whether a summary says only what its entries say."""

import pytest
from hypothesis import given, settings

from sessions_app.engine import grounding
from sessions_app.engine.grounding import ClaimKind
from sessions_app.engine.summary import ORDER
from tests.engine.attempts import Canned, answer, attempt, long_story, wordy
from tests.engine.fact_examples import call, says, story_with, user
from tests.engine.histories import tidy_histories


def unsupported(text: str, *builds, known: str = "", roots=()) -> list[str]:
    checked = grounding.check(text, [story_with(*builds).entries], known=known, roots=roots)
    return [claim.text for claim in checked.unsupported]


def user_section(*lines: str) -> str:
    return "## All user messages\n" + "\n".join(lines) + "\n\n## Current work\nAt rest."


@pytest.mark.parametrize(
    "line",
    [
        "- “Make the lock hold, please.”",
        '- "Make the lock hold, please."',
        '1. #3: "make the  lock hold, please"',
        "- “Make the lock …”",
        "- #3 (answered) “Make the lock [...] please.”",
        '- "Make the lock hold, please" (the first request)',
    ],
)
def test_a_quote_of_the_user_that_an_entry_says_is_supported(line):
    assert unsupported(user_section(line), user("Make the lock hold, please.")) == []


def test_a_quote_that_nobody_said_is_not():
    said = "Drop the production database first."
    assert unsupported(user_section(f"- “{said}”"), user("Make the lock hold, please.")) == [said]
    assert unsupported(f"The user asked: “{said}”", user("Make the lock hold, please.")) == [said]


def test_a_quote_may_mend_a_slip_of_the_pen():
    line = "- “no, the risk that someone assumes it's a stable link is too big”"
    assert unsupported(user_section(line), user("no, the risk that someone asumes it's a stable link is to big")) == []


def test_words_in_quotes_that_are_not_the_users_are_no_claim():
    assert unsupported("The button says “Remove everything now” in the draft.", user("Go on.")) == []


def test_what_the_user_answered_through_a_tool_counts_as_said():
    asked = call("AskUserQuestion", result='User has answered your questions: "Which one?"="The blue one at the top"')
    assert unsupported("The user chose “The blue one at the top”.", asked) == []


@pytest.mark.parametrize(
    "path",
    ["/w/app/ledger.py", "app/ledger.py", "./app/ledger.py", "ledger.py", "/w/app"],
)
def test_a_path_that_an_entry_names_is_supported(path):
    assert unsupported(f"Changed `{path}`.", call("Edit", file_path="/w/app/ledger.py")) == []


def test_an_absolute_path_is_supported_by_a_relative_one_under_the_root():
    assert unsupported("Changed `/w/app/ledger.py`.", says("I changed app/ledger.py."), roots=("/w",)) == []


@pytest.mark.parametrize(
    "name", ["app/locks.py", "/srv/other", "LockKeeper", "hold_the_lock", "0a1b2c3d4e5f", "PAY-77", "owner/project#12"]
)
def test_a_name_that_no_entry_knows_is_unsupported(name):
    assert unsupported(f"It lies in {name} now.", call("Edit", file_path="/w/app/ledger.py")) == [name]
    assert unsupported(f"It lies in {name} now.", says(f"See {name}.")) == []
    assert unsupported(f"It lies in {name} now.", known=f"earlier: {name}") == []


def test_positions_and_pairs_of_words_are_no_names():
    assert unsupported("Since #12 input/output and read/write use UTF-8, as (#4, open) says.", user("Go on.")) == []


def test_an_unknown_name_is_told_once_with_its_kind():
    checked = grounding.check("`x/a.py`, again `x/a.py`.", [])
    assert [(claim.kind, claim.text) for claim in checked.unsupported] == [(ClaimKind.PATH, "x/a.py")]


@settings(max_examples=30, deadline=None)
@given(tidy_histories())
def test_what_the_extractive_summary_says_is_always_supported(entries):
    ended = attempt(wordy(entries), force=True).result
    assert getattr(ended, "unsupported", ()) == ()


def test_a_checkpoint_names_what_its_summary_made_up():
    made_up = "\n\n".join(f"## {section.value}\nThe work in `app/locks.py` is done." for section in ORDER)
    commit = attempt(long_story().entries, summariser=Canned(answer(made_up))).commit
    assert [claim.text for claim in commit.unsupported] == ["app/locks.py"]
    assert commit.coverage_status == "warn"
