"""A view given message by message is the view that is built at once."""

import pytest

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint, Segment, SyntheticMessage
from sessions_app.engine.terms import Lineage, Role, SegmentKind
from sessions_app.selectors import plans
from sessions_app.selectors.view_stream import stream_view
from tests.engine.histories import Story
from tests.stored import store_session


def told() -> Story:
    """Turns with results that come late, pieces of a message far apart, a call without result, a result without call."""
    story = Story().system()
    for turn in range(12):
        story.user(f"Turn {turn}").calls(f"late-{turn}", key="far" if turn in (1, 8) else "").calls(f"call-{turn}").result(f"call-{turn}")
        if turn % 4 == 0:
            story.calls(f"lost-{turn}")
        if turn >= 5:
            story.result(f"late-{turn - 5}")
        story.result(f"stray-{turn}").says(f"Step {turn}", off_branch=turn == 6)
    return story


def plan(size: int) -> Checkpoint:
    """A system range, a block, two carried entries and a tail in which one of them lies."""
    segments = (
        Segment(kind=SegmentKind.RANGE, first=0, last=0),
        Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="What happened before.")),
        Segment(kind=SegmentKind.ENTRY, first=3),
        Segment(kind=SegmentKind.ENTRY, first=size - 2),
        Segment(kind=SegmentKind.RANGE, first=size // 3),
    )
    return Checkpoint(
        generation=1, lineage=Lineage.CONSOLE, segments=segments, boundary_index=size // 3, cleared=frozenset({size // 2, size - 5})
    )


@pytest.mark.django_db
@pytest.mark.parametrize("keep", [2, 3, 100])
@pytest.mark.parametrize("is_folded", [False, True])
def test_it_is_the_view_that_is_built_at_once(keep, is_folded):
    entries = told().entries
    session = store_session(entries)
    checkpoint = plan(len(entries)) if is_folded else None
    assert tuple(stream_view(session.pk, checkpoint, keep=keep)) == plans.view_of(session.pk, checkpoint, whole=True)


@pytest.mark.django_db
def test_of_a_long_history_little_is_held():
    story = Story()
    for turn in range(400):
        story.user(f"Turn {turn}").calls(f"call-{turn}").result(f"call-{turn}").says("Done.")
    session = store_session(story.entries)
    messages = stream_view(session.pk, None)
    pages: list[int] = []
    load = plans.load_entries

    def counted(*place, **more):
        for entry in load(*place, **more):
            pages.append(entry.index)
            yield entry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "load_entries", counted)
        next(messages)
    assert len(pages) < 2 * view.HELD_BACK + 10


@pytest.mark.django_db
def test_it_can_end_at_an_entry():
    session = store_session(Story().user("One").says("Two").user("Three").says("Four").entries)
    said = [part.part.text for message in stream_view(session.pk, None, upto=2) for part in message.parts]
    assert said == ["One", "Two", "Three"]
