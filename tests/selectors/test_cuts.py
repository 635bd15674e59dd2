"""Boundaries that a person asks for, checked without reading the whole history."""

import pytest

from sessions_app.engine import boundary
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.selectors import cuts, plans
from tests.engine.histories import Story
from tests.stored import store_session

pytestmark = pytest.mark.django_db


def told(turns: int) -> Story:
    """Turns with a call whose result comes late, one without a result, and a result that nobody called for."""
    story = Story()
    for turn in range(turns):
        story.user(f"Turn {turn}").calls(f"late-{turn}").calls(f"call-{turn}").result(f"call-{turn}")
        if turn % 3 == 0:
            story.calls(f"lost-{turn}")
        if turn % 4 == 1:
            story.result(f"stray-{turn}")
        story.says(f"Step {turn}")
        story.result(f"late-{turn}").says("Done.")
    return story


def refusal(check, *place, **options) -> str:
    try:
        check(*place, **options)
    except IllegalBoundary as error:
        return str(error)
    return ""


@pytest.mark.parametrize("start", [0, 5])
def test_every_cut_is_judged_as_the_whole_history_judges_it(monkeypatch, start):
    monkeypatch.setattr(cuts, "TAIL_STEP", 3)
    session = store_session(told(8).entries)
    shapes = plans.load_shapes(session.pk)
    judged = [
        (
            refusal(cuts.check_boundary, session.pk, start, wanted),
            refusal(boundary.choose, shapes[start:], keep_tokens=0, wanted=wanted),
        )
        for wanted in range(start + 1, len(shapes))
    ]
    assert [ours for ours, _ in judged] == [exact for _, exact in judged]
    assert {bool(ours) for ours, _ in judged} == {True, False}


def test_a_legal_cut_in_a_long_history_reads_a_stretch_of_it(monkeypatch):
    read: list[int] = []
    load = plans.load_shapes

    def counted(*place):
        shapes = load(*place)
        read.append(len(shapes))
        return shapes

    monkeypatch.setattr(cuts, "TAIL_STEP", 20)
    monkeypatch.setattr(plans, "load_shapes", counted)
    session = store_session(told(100).entries)
    wanted = next(entry.index for entry in told(100).entries if entry.text == "Turn 50")
    cuts.check_boundary(session.pk, 0, wanted)
    assert read == [41]
