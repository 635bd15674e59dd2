"""Reading, checking and packing summaries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import chunks, summary
from sessions_app.engine.rounds import Round, stretches_of
from sessions_app.engine.summary import ORDER, Rejection, Section


def test_what_is_rendered_is_parsed_again():
    bodies = {section: f"About {section.value}." for section in ORDER}
    assert summary.parse(summary.render(bodies)).bodies == bodies


@pytest.mark.parametrize(
    ("line", "section"),
    [
        ("## Primary request and intent", Section.INTENT),
        ("1. Primary Request and Intent:", Section.INTENT),
        ("**Errors & fixes**", Section.ERRORS),
        ("### 6. Pending Tasks", Section.PENDING),
        ("8. Optional Next Step:", Section.NEXT),
        ("3. Files and Code Sections:", Section.FILES),
    ],
)
def test_other_writers_headings_are_understood(line, section):
    assert summary.parse(f"{line}\nSomething.").bodies == {section: "Something."}


def test_a_heading_in_a_code_block_is_no_heading():
    assert summary.parse("## Current work\n```\n## Next step\n```").missing == tuple(s for s in ORDER if s is not Section.CURRENT)


def test_a_missing_heading_is_named_in_a_warning():
    assert "“Next step”" in summary.warnings("## Current work\nx")[0]


def check(text: str, **more) -> Rejection | None:
    return summary.validate(text, **{"truncated": False, "tokens": 10, "replaced_tokens": 100, **more})


def test_unusable_summaries_are_told_apart():
    assert check("") is Rejection.EMPTY
    assert check(summary.render({})) is Rejection.EMPTY
    assert check("## Next step\nGo", truncated=True) is Rejection.TRUNCATED
    assert check("## Next step\nGo", tokens=100) is Rejection.INFLATED
    assert check("word " * 200, inputs=["other", "a word " + "word " * 300]) is Rejection.ECHO
    assert check("## Next step\nGo") is None


def test_a_free_text_without_any_heading_is_usable():
    assert check("The parser was fixed; tests are next.") is None


ROUNDS = st.lists(st.integers(0, 30_000), max_size=300).map(
    lambda sizes: [
        Round(first=2 * at, last=2 * at + 1, head=2 * at, starts_turn=True, is_pending=False, tokens=size, messages=1)
        for at, size in enumerate(sizes)
    ]
)


@given(ROUNDS, st.integers(1_000, 500_000), st.integers(2, 64))
def test_each_chunk_takes_all_the_rounds_that_fit(rounds, window, max_calls):
    limit = min(int(window * chunks.WINDOW_SHARE), chunks.CHUNK_TOKENS)
    newest = [chunk for chunk in chunks.pack(stretches_of(rounds), window, max_calls) if not chunk.is_surplus]
    held: list[int] = []
    for size in (one.tokens for one in rounds):
        if held and held[-1] + size <= limit:
            held[-1] += size
        else:
            held.append(size)
    assert [chunk.tokens for chunk in newest] == held[-len(newest) :] if rounds else not newest


@given(ROUNDS, st.integers(1_000, 500_000), st.integers(2, 64))
def test_chunks_hold_every_round_whole_and_in_order(rounds, window, max_calls):
    packed = chunks.pack(stretches_of(rounds), window, max_calls)
    assert sum(not chunk.is_surplus for chunk in packed) < max_calls
    assert not any(chunk.is_surplus for chunk in packed[-1:])
    assert sum(chunk.tokens for chunk in packed) == sum(round_.tokens for round_ in rounds)
    edges = [(chunk.first, chunk.last) for chunk in packed]
    assert [first for first, _ in edges[1:]] == [last + 1 for _, last in edges[:-1]]
    if rounds:
        assert (edges[0][0], edges[-1][1]) == (rounds[0].first, rounds[-1].last)


@given(st.lists(st.integers(0, 5_000), min_size=2, max_size=200), st.integers(100, 100_000))
def test_folding_always_comes_to_an_end(sizes, window):
    groups = chunks.fold_groups(sizes, window)
    assert [start for start, _ in groups] == [0, *(end for _, end in groups[:-1])]
    assert groups[-1][1] == len(sizes)
    assert len(groups) < len(sizes)
