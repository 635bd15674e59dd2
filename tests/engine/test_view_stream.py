"""A view given message by message is the view that is built at once."""

from collections.abc import Collection, Iterable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import view
from sessions_app.engine.entries import Entry
from sessions_app.engine.terms import PartKind, Role
from tests.engine.histories import Story, histories


class Reading:
    """Gives entries in order, and knows which of them are still to come."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.to_come = list(entries)

    def __iter__(self) -> Iterator[Entry]:
        while self.to_come:
            yield self.to_come.pop(0)

    def awaits(self, keys: Collection[str], call_ids: Collection[str]) -> bool:
        live = [entry for entry in self.to_come if entry.is_sendable and not entry.off_branch]
        pieces = (entry.message_key for entry in live if entry.role is Role.ASSISTANT)
        results = (part.call_id for entry in live for part in entry.parts if part.kind is PartKind.RESULT)
        return any(key in keys for key in pieces) or any(call_id in call_ids for call_id in results)


@given(histories(), st.integers(2, 4))
def test_it_is_the_view_that_is_built_at_once(entries, keep):
    reading = Reading(entries)
    assert tuple(view.stream(reading, None, reading.awaits, keep=keep)) == view.build(entries, None)


def test_what_nothing_more_can_come_to_is_given_away_at_once():
    story = Story()
    for turn in range(50):
        story.user(f"Turn {turn}").calls(f"call-{turn}").result(f"call-{turn}").says("Done.")
    reading = Reading(story.entries)
    messages = view.stream(reading, None, reading.awaits, keep=3)
    assert next(messages).parts[0].part.text == "Turn 0"
    assert len(reading.to_come) > len(story.entries) - 3 * 4 - 4
