"""Facts of a history, and what becomes of them in a view."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import retention
from sessions_app.engine.facts import MAX_FACTS, Fact, FactClass, Facts
from sessions_app.engine.mechanical import facts_of
from sessions_app.engine.retention import Count, FactFate, Place
from sessions_app.engine.terms import CoverageStatus
from tests.engine.fact_examples import EXAMPLES, NO_FACTS, call, story_with, todos, user
from tests.engine.histories import Story, histories

EACH = [(kind, build, value) for kind, examples in EXAMPLES.items() for build, value in examples]


def told(facts: Facts, kind: FactClass) -> list[str]:
    return [fact.text for fact in facts.found if fact.kind is kind]


def test_there_are_ten_examples_of_each_class():
    assert {kind: len(examples) for kind, examples in EXAMPLES.items()} == dict.fromkeys(FactClass, 10)


@pytest.mark.parametrize(("kind", "build", "value"), EACH, ids=[f"{kind}-{value[:30]}" for kind, _, value in EACH])
def test_a_fact_is_found_with_its_entry(kind, build, value):
    story = story_with(build)
    (fact,) = [fact for fact in facts_of(story.entries).found if fact.kind is kind and fact.text == value]
    assert 0 < fact.index < len(story.entries)


@pytest.mark.parametrize(("kind", "build"), [(kind, build) for kind, builds in NO_FACTS.items() for build in builds])
def test_what_only_looks_like_a_fact_is_none(kind, build):
    assert told(facts_of(story_with(build).entries), kind) == []


@pytest.mark.parametrize(("kind", "build", "value"), EACH, ids=[f"{kind}-{value[:30]}" for kind, _, value in EACH])
def test_a_fact_that_stands_in_the_view_is_kept_and_one_that_does_not_is_dropped(kind, build, value):
    facts = Facts(found=tuple(fact for fact in facts_of(story_with(build).entries).found if fact.kind is kind and fact.text == value))
    assert retention.report(facts, summary=f"So it was: {value}", block="").total == Count(kept=1)
    assert retention.report(facts, summary="", block=f"- {value}").total == Count(by_code=1)
    assert retention.report(facts, summary="", block="", tail_texts=[value]).total == Count(in_tail=1)
    assert retention.report(facts, summary="Nothing of the kind.", block="Nor here.").total == Count(dropped=1)


def test_a_file_is_kept_by_its_base_name_but_not_by_a_longer_one():
    facts = facts_of(story_with(call("Edit", file_path="/w/app/ledger.py")).entries)
    assert retention.report(facts, summary="Changed `ledger.py`.", block="").total == Count(kept=1)
    assert retention.report(facts, summary="Changed `old_ledger.py` and ledger.pyc.", block="").total == Count(dropped=1)


def test_a_number_is_kept_however_it_is_spaced_and_not_inside_another():
    facts = facts_of(story_with(user("It takes 12 ms.")).entries)
    kept = retention.report(facts, summary="It took 12ms.", block="")
    assert kept.classes[FactClass.NUMBER] == Count(kept=1)
    assert retention.report(facts, summary="It took 112 ms, or 12 s.", block="").classes[FactClass.NUMBER] == Count(dropped=1)


def test_what_one_sentence_tells_in_other_words_is_paraphrased_and_two_sentences_are_none():
    facts = facts_of(story_with(user("Never call the carrier twice for one parcel.")).entries)
    one = "For one parcel the carrier must not get a second call, so nothing may call it twice."
    two = "The carrier is slow. A parcel is called for. Twice it failed."
    assert retention.report(facts, summary=one, block="").classes[FactClass.CONSTRAINT] == Count(paraphrased=1)
    assert retention.report(facts, summary=two, block="").classes[FactClass.CONSTRAINT] == Count(dropped=1)


def test_an_error_with_other_numbers_is_another_error():
    facts = facts_of(story_with(call("Bash", command="t", result="E AssertionError: assert 14 == 6", is_error=True)).entries)
    report = retention.report(facts, summary="It failed with E AssertionError: assert 15 == 2.", block="")
    assert report.classes[FactClass.ERROR] == Count(dropped=1)


def test_what_code_added_counts_apart_from_what_the_summary_kept():
    facts = facts_of(story_with(user("Make the lock hold."), call("Edit", file_path="a.py"), call("Edit", file_path="b.py")).entries)
    summary = "Changed `a.py`."
    report = retention.report(facts, summary=summary, block=f"{summary}\n- `b.py`\n", tail_texts=["Make the lock hold."])
    assert report.total == Count(kept=1, by_code=1, in_tail=1)
    places = {found.fact.text: found.place for found in report.facts}
    assert places == {"a.py": Place.SUMMARY, "b.py": Place.CODE, "Make the lock hold.": Place.TAIL}


def test_a_fact_counts_once_with_its_latest_entry():
    story = story_with(user("Fix `a.py`."), user("Fix `a.py`."))
    (fact,) = [fact for fact in facts_of(story.entries).found if fact.kind is FactClass.ASK]
    assert fact.index == 2


def test_facts_of_entries_that_were_folded_before_count_apart():
    facts = facts_of(story_with(user("Make the lock hold."), user("Count the parcels.")).entries)
    report = retention.report(facts, summary="Make the lock hold.", block="", span=frozenset({2}))
    assert report.total == Count(dropped=1)
    assert report.earlier == Count(kept=1)


def test_of_very_many_facts_the_newest_are_looked_up_and_the_others_counted():
    facts = facts_of(Story().extend([]).user(" ".join(f"name_{number}" for number in range(MAX_FACTS + 5))[:20_000]).entries)
    many = Facts(found=facts.found, beyond={FactClass.IDENTIFIER: 5})
    assert retention.report(many, summary="", block="").beyond == 5
    story = Story()
    for number in range(MAX_FACTS + 5):
        story.user(f"Part {number}, please.")
    assert facts_of(story.entries).beyond == {FactClass.ASK: 5}


@pytest.mark.parametrize(
    ("summary", "block", "unsupported", "status"),
    [
        ("Make the lock hold. `a.py` was changed. Write the migration.", "", 0, CoverageStatus.PASS),
        ("`a.py` was changed.", "- Make the lock hold.\n- Write the migration", 0, CoverageStatus.PASS_WITH_BACKFILL),
        ("`a.py` was changed.", "- Make the lock hold.", 0, CoverageStatus.WARN),
        ("Make the lock hold. `a.py` was changed. Write the migration.", "", 1, CoverageStatus.WARN),
    ],
)
def test_the_coverage_is_what_became_of_what_matters(summary, block, unsupported, status):
    story = story_with(user("Make the lock hold."), call("Edit", file_path="a.py"), todos(("Write the migration", "pending")))
    report = retention.report(facts_of(story.entries), summary=summary, block=block)
    assert retention.coverage_status(report, unsupported) is status


def test_nothing_to_check_is_unknown():
    assert retention.coverage_status(retention.report(Facts(), summary="x", block=""), 0) is CoverageStatus.UNKNOWN


def test_a_report_survives_being_stored():
    report = retention.report(facts_of(story_with(*(build for _, build, _ in EACH)).entries), summary="`ledger.py`", block="- 429 ms")
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(report)), retention.Retention) == report


NAMES = st.text(alphabet="bcdfghjklmnp", min_size=5, max_size=9)


@st.composite
def planted(draw: st.DrawFn) -> tuple[list[Fact], str, str, list[str], dict[str, tuple[FactFate, Place | None]]]:
    """Facts with names of their own, each put into one place of a view, or none; and what must be found of each."""
    names = draw(st.lists(NAMES, min_size=1, max_size=25, unique=True))
    noise = draw(st.lists(st.sampled_from(["It went on.", "Nothing else.", "- one more", "Then this:"]), max_size=10))
    places: dict[Place, list[str]] = {Place.SUMMARY: list(noise), Place.CODE: ["## State", *noise], Place.TAIL: list(noise)}
    facts, known = [], {}
    for number, name in enumerate(names):
        kind = draw(st.sampled_from(list(FactClass)))
        value, other = _value(kind, name, number)
        place = draw(st.sampled_from([*Place, None]))
        reworded = place is not None and other and draw(st.booleans())
        facts.append(Fact(kind, value, number))
        known[value] = (FactFate.DROPPED, None) if place is None else (FactFate.PARAPHRASED if reworded else FactFate.KEPT, place)
        if place is not None:
            said = other if reworded else value
            places[place].insert(draw(st.integers(0, len(places[place]))), f"{draw(st.sampled_from(['', '- ', 'See ']))}{said}")
    summary = "\n".join(places[Place.SUMMARY])
    return facts, summary, f"<block>\n{summary}\n\n" + "\n".join(places[Place.CODE]), places[Place.TAIL], known


def _value(kind: FactClass, name: str, number: int) -> tuple[str, str]:
    """A fact of a class that no other resembles, and how other words would tell it (empty: they can't)."""
    match kind:
        case FactClass.FILE_EDITED | FactClass.FILE_READ:
            return f"/w/{name}/{name}{number}.py", ""
        case FactClass.URL:
            return f"https://{name}.test/{number}", ""
        case FactClass.IDENTIFIER:
            return f"{name}_{number}", ""
        case FactClass.NUMBER:
            return f"{1000 + number} ms", ""
        case _:
            return f"must{name} the{name} one{name} {number + 1000}", f"{number + 1000} of one{name}, so must{name}"


@settings(max_examples=200, deadline=None)
@given(planted())
def test_planted_facts_are_classified_without_an_error(case):
    facts, summary, block, tail, known = case
    report = retention.report(Facts(found=tuple(facts)), summary=summary, block=block, tail_texts=tail)
    assert {found.fact.text: (found.fate, found.place) for found in report.facts} == known
    assert report.total.total == len(facts)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_view_that_holds_every_word_of_a_history_drops_nothing(entries):
    facts = facts_of(entries)
    whole = [part.text for entry in entries for part in entry.parts]
    assert retention.report(facts, summary="", block="", tail_texts=whole).total.dropped == 0
