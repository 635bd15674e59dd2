"""A view counted by a vocabulary: what an attempt plans with where its policy says so."""

import pytest

from sessions_app.engine.bpe import BpeCounter
from sessions_app.engine.counting import ENTRY_OVERHEAD
from sessions_app.engine.entries import Part
from sessions_app.engine.recounting import recounted
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Stop, Stopped
from sessions_app.engine.terms import Kind, PartKind, Role
from tests.engine.attempts import attempt, checkpoint_of, long_story
from tests.engine.histories import Story


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> BpeCounter:
    return BpeCounter(tmp_path_factory.mktemp("vocabulary"))


def again(entries, count, checkpoint=None, should_stop=lambda: None):
    shapes = [shape_of(entry) for entry in entries]
    return recounted(shapes, checkpoint, lambda first, last: iter(entries[first : last + 1]), count, should_stop)


def test_texts_calls_and_results_are_counted_in_full_and_the_frame_beside_them(bpe):
    entries = Story().user("Please run the tests.").calls("a").result("a", words="all green").says("They pass.").entries
    found = again(entries, bpe.count)
    expected = [
        sum(bpe.count(part.text) + (bpe.count(part.name) if part.kind is PartKind.CALL else 0) for part in entry.parts) + ENTRY_OVERHEAD
        for entry in entries
    ]
    assert [shape.tokens for shape in found] == expected


def test_pictures_and_ciphertext_are_estimated_and_never_by_their_encoding(bpe):
    story = Story()
    story.add(Role.USER, Kind.MESSAGE, Part(kind=PartKind.IMAGE, text="", width=1000, height=750, size_bytes=10_000_000))
    story.add(Role.ASSISTANT, Kind.THINKING, Part(kind=PartKind.THINKING, text="x" * 4_000, encrypted=True))
    picture, thinking = again(story.entries, bpe.count)
    assert picture.tokens == 1_000 + ENTRY_OVERHEAD
    assert thinking.tokens < 4_000 // 4


def test_a_long_text_counts_as_dense_as_its_beginning():
    story = Story()
    story.add(Role.TOOL, Kind.RESULT, Part(kind=PartKind.RESULT, text="ab " * 100, chars=30_000, blob="x", call_id="a"))
    assert again(story.entries, lambda text: len(text) // 3)[0].tokens == 10_000 + ENTRY_OVERHEAD


def test_what_no_longer_stands_in_the_view_is_not_read():
    entries = long_story(turns=12).entries
    made = attempt(entries).result
    checkpoint = checkpoint_of(made, 1)
    seen = []

    def count(text: str) -> int:
        seen.append(text)
        return 7

    found = again(entries, count, checkpoint)
    folded = [shape for shape in found if shape.index < made.boundary_index and not checkpoint.holds(shape.index)]
    assert folded
    assert [shape.tokens for shape in folded] == [entries[shape.index].tokens for shape in folded]
    assert len(seen) < sum(len(entry.parts) for entry in entries)


def test_a_cancel_is_heard_while_it_counts():
    with pytest.raises(Stopped):
        again(long_story(turns=12).entries, len, should_stop=lambda: Stop.CANCELLED)
