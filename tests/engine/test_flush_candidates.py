"""What is taken from a history as worth keeping beyond it, and what is not."""

import io
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import flush_candidates, flush_words, mechanical
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.flush_candidates import MAX_FACT_CHARS, MOST_CANDIDATES, MOST_OBLIGATIONS, Candidate, Candidates
from sessions_app.engine.terms import Kind, MemoryKind, PartKind, Role
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader
from tests.engine.histories import Story

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def taken(*said: str) -> list[tuple[str, str]]:
    """Kind and text of what a person's messages give."""
    story = Story()
    for words in said:
        story.user(words).says("I will see to it that this is so.")
    return [(found.kind.value, found.text) for found in of(story.entries).found]


def of(entries: list[Entry], first: int = 0, last: int | None = None) -> Candidates:
    return flush_candidates.from_state(mechanical.collect(entries), first, len(entries) if last is None else last)


LAID_DOWN = [
    ("Never commit anything below the folder legacy.", "constraint"),
    ("You must keep the old names in the public interface.", "constraint"),
    ("Please don't add any dependency to this package.", "constraint"),
    ("Write the report, but do not touch the other two documents.", "constraint"),
    ("Always run the linter before you commit anything.", "constraint"),
    ("I'd rather have one long test than five short ones.", "preference"),
    ("I prefer tabs in makefiles and spaces elsewhere.", "preference"),
    ("Let's go with the second approach for the parser.", "decision"),
    ("Use orjson instead of the standard library here.", "decision"),
    ("We decided to keep the queue in the database.", "decision"),
    ("All of this belongs to the ticket PAY-417, for May.", "identifier"),
    ("The discussion is in acme/billing#1263, have a look.", "identifier"),
    ("The handbook is at https://example.com/handbook, as always.", "reference"),
    ("Bitte niemals direkt auf den Zweig main schieben.", "constraint"),
    ("Die alten Namen dürfen nicht geändert werden.", "constraint"),
    ("Wir haben uns für PostgreSQL entschieden.", "decision"),
    ("Il ne faut jamais modifier la table des comptes.", "constraint"),
    ("Je préfère des commits courts et clairs.", "preference"),
    ("Nunca se debe tocar la tabla de cuentas.", "constraint"),
    ("永远不要修改账本表。", "constraint"),
    ("我们决定使用PostgreSQL。", "decision"),
    ("台帳の表は必ず移行してから変更する。", "constraint"),
]


@pytest.mark.parametrize(("said", "kind"), LAID_DOWN)
def test_what_a_person_lays_down_is_taken_as_what_it_is(said, kind):
    assert taken(said) == [(kind, said)]


@pytest.mark.parametrize(
    "said",
    [
        "Please look at how parse_line treats a record, and make it say so instead of answering nothing.",
        "The test fails about once in twenty runs on the build machine, never here.",
        "It always fails on Mondays, and I do not know why that is.",
        "I don't think that this is the reason for the crash.",
        "Can you run the tests and the linter to ensure that all is green?",
        "Filters by customer are a must.",
        "Why must the old names stay in the public interface?",
        "Do it.",
        "Das geht immer noch nicht, sieh bitte nach.",
        "Ça ne marche pas, regarde encore une fois.",
        "为什么必须保留旧的名字？",
        "The file is encoded in UTF-8 and hashed with SHA-256, as far as I see.",
    ],
)
def test_what_only_sounds_like_it_is_not(said):
    assert taken(said) == []


def test_a_sentence_that_points_back_takes_the_one_before_it_along():
    said = "The importer reads whole archives into memory. It must stay under 200 MB for any file."
    assert taken(said) == [("constraint", said)]


def test_what_the_agent_says_and_what_tools_print_is_not_taken():
    story = Story().user("Please look into the parser for me.").calls("a").result("a", words="You must never trust this output again.")
    story.says("You must never change the parser again. Let's go with plan B instead of plan A.")
    story.reminder("Always answer in French from now on, never in English.")
    assert of(story.entries).found == ()


def call(command: str, call_id: str) -> Part:
    return Part(kind=PartKind.CALL, name="Bash", text=msgspec.json.encode({"command": command}).decode(), call_id=call_id)


def test_commands_that_worked_more_than_once_are_taken_and_look_ups_are_not():
    story = Story().user("Please try everything.")
    for number, command in enumerate(["make check", "make check", "ls -l", "ls -l", "make once", "make broken", "make broken"]):
        story.add(Role.ASSISTANT, Kind.CALL, call(command, str(number)))
        broken = "broken" in command
        story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="no" if broken else "yes", call_id=str(number), is_error=broken))
    assert [(found.kind, found.text, found.indexes) for found in of(story.entries).found] == [(MemoryKind.COMMAND, "make check", (1, 3))]


def test_a_fact_is_taken_once_with_the_entry_that_states_it_first():
    story = Story().user("Never touch the ledger.").says().user("never touch the LEDGER").says()
    (found,) = of(story.entries).found
    assert (found.text, found.indexes) == ("Never touch the ledger.", (0,))


def test_only_entries_of_the_span_are_asked():
    story = Story().user("Never touch the ledger.").says().user("Never touch the journal.").says()
    assert [found.text for found in of(story.entries, 2, 3).found] == ["Never touch the journal."]
    assert [found.text for found in of(story.entries, 0, 1).found] == ["Never touch the ledger."]


def test_credentials_are_taken_out_and_counted():
    found = of(Story().user("Always use the key sk-ant-abcdefghijklmnopqrstuv for the mirror.").entries)
    assert [one.text for one in found.found] == ["Always use the key [credential removed] for the mirror."]
    assert found.redactions == 1


def test_of_very_many_the_newest_are_kept_and_the_others_counted():
    story = Story()
    for number in range(MOST_CANDIDATES + 30):
        story.user(f"Never touch the table number {number} again, please.")
    found = of(story.entries)
    assert (len(found.found), found.beyond, len(found.obligations)) == (MOST_CANDIDATES, 30, MOST_OBLIGATIONS)
    assert found.found[-1].text.startswith(f"Never touch the table number {MOST_CANDIDATES + 29} ")


def test_a_document_that_was_pasted_is_no_list_of_rules():
    pasted = " ".join(f"You must never do the thing number {number}." for number in range(40))
    assert taken(pasted) == []


def model_said(text: str) -> Candidate:
    return Candidate(kind=MemoryKind.FACT, text=text, indexes=(0,), by_model=True)


def test_what_a_model_leaves_out_and_what_had_to_be_kept_is_added_and_counted():
    story = Story().user("Never touch the ledger of payments. I prefer small commits, one thought each.").says()
    mechanical_ones = of(story.entries)
    both, added = flush_candidates.joined([model_said("One must never touch the payments ledger.")], mechanical_ones)
    assert [found.text for found in both] == ["One must never touch the payments ledger.", "I prefer small commits, one thought each."]
    assert added == 1
    all_of_it, nothing = flush_candidates.joined(mechanical_ones.found, mechanical_ones)
    assert (set(all_of_it), nothing) == (set(mechanical_ones.found), 0)


TEXTS = st.text(max_size=300) | st.text(alphabet="Never do. \n<script>`#*", max_size=300).map("Never {}".format)


@given(st.lists(TEXTS, max_size=6))
def test_whatever_is_said_each_fact_is_one_bounded_line_of_an_entry_of_the_span(said):
    story = Story()
    for words in said:
        story.user(words)
    found = of(story.entries)
    assert len({one.digest for one in found.found}) == len(found.found)
    assert set(found.obligations) <= {one.digest for one in found.found}
    for one in found.found:
        assert 0 < len(one.text) <= MAX_FACT_CHARS
        assert one.text.isprintable()
        assert one.indexes
        assert all(0 <= index < len(said) for index in one.indexes)


REAL = sorted([*(SHARED / "claude-code").glob("*.jsonl"), *(SHARED / "codex").glob("*.jsonl")])


@pytest.mark.skipif(not REAL, reason=f"the recordings are not there ({SHARED})")
def test_of_agents_real_files_something_is_taken_and_never_a_pile():
    total = 0
    for path in REAL:
        reader = ClaudeCodeReader() if path.parent.name == "claude-code" else CodexReader()
        parsed = [record.entry for record in reader.read(io.BytesIO(path.read_bytes()), path=path.name) if record.entry is not None]
        entries = [
            Entry(index=index, role=one.role, kind=one.kind, parts=tuple(one.parts), meta=one.meta) for index, one in enumerate(parsed)
        ]
        found = of(entries)
        assert len(found.found) <= 20 + len(entries) // 20, path.name
        total += len(found.found)
    assert total >= 20


@given(st.lists(TEXTS | st.sampled_from([said for said, _ in LAID_DOWN]), max_size=6))
def test_no_message_is_passed_over_that_would_give_something(said):
    """What is looked at first only spares work."""
    story = Story()
    for words in said:
        story.user(words)
    state = mechanical.collect(story.entries)
    with pytest.MonkeyPatch.context() as patch:
        quick = flush_candidates.from_state(state, 0, len(said))
        patch.setattr(flush_words, "_MAY_HOLD", re.compile(""))
        assert flush_candidates.from_state(state, 0, len(said)) == quick
