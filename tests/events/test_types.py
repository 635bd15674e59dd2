"""Every type of event has words that a person understands."""

import re

import pytest

from sessions_app.events.types import EventType, label_of, words_for


@pytest.mark.parametrize("event_type", EventType)
def test_each_type_is_a_noun_and_a_verb_and_has_words_of_its_own(event_type):
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", str(event_type))
    assert event_type.label != words_for(str(event_type)) or event_type.label.count(" ") == 1, (
        "write its words beside it in events/types.py"
    )
    assert re.fullmatch(r"[A-Z][a-z][^._]*", event_type.label)


def test_no_two_types_read_the_same():
    assert len({event_type.label for event_type in EventType}) == len(EventType)


def test_a_type_of_another_version_still_reads_as_words():
    assert label_of("entry.pinned_again") == "Entry pinned again"
    assert label_of("user.signed_in") == "Signed in"
