"""Events as lines of a log: facts as a person would write them."""

import pytest

from sessions_app.models import Event
from sessions_app.rendering.ledger import event_line


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        ({"usage": {"input": 12, "cache_read": None}}, "usage input 12, cache read none"),
        ({"applied": True}, "applied yes"),
        ({"names": ["a.py", "b.py"], "count": 2}, "names a.py, b.py · count 2"),
        ({"calls": 0, "names": [], "why": ""}, ""),
    ],
)
def test_facts_are_words_and_no_values_of_a_program(payload, facts):
    assert event_line(Event(type="turn.answered", at="2026-12-01T02:36:01Z", seq=1, payload=payload)).facts == facts
