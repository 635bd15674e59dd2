"""A session's row learns from its own measured prompts how its estimates are to be read."""

from pathlib import Path

import pytest

from sessions_app.engine.calibration import NONE, calibrate
from sessions_app.engine.entries import Usage
from sessions_app.engine.terms import Lineage, Origin, Scope
from sessions_app.events.actors import system_actor
from sessions_app.models import Session
from sessions_app.selectors.measurements import measured_prompts
from sessions_app.services import signals
from sessions_app.services.imports import import_paths
from tests.engine.histories import Story, checkpoint
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FACTOR, OVERHEAD = 1.5, 20_000


def measured_story(turns: int = 12) -> Story:
    """A history whose provider counts half as much again, and 20,000 tokens that stand in no entry."""
    story = Story()
    for number in range(turns):
        story.user(f"Request {number} " + "word " * 900)
        before = sum(entry.tokens for entry in story.entries if not entry.off_branch)
        story.says(f"Answer {number}", usage=Usage(input=round(OVERHEAD + FACTOR * before)))
    return story


def refreshed(session: Session) -> Session:
    signals.refresh(session.pk)
    session.refresh_from_db()
    return session


def test_a_session_learns_factor_and_overhead_from_its_prompts():
    session = refreshed(store_session(measured_story().entries))
    assert session.calibration_factor == pytest.approx(FACTOR, abs=0.01)
    assert session.calibration_overhead == pytest.approx(OVERHEAD, abs=100)
    assert session.calibration_prompts == 12


def test_rows_beside_the_branch_do_not_count():
    story = measured_story(6).says("Abandoned " * 5_000, off_branch=True)
    for number in range(6):
        story.user(f"Again {number} " + "word " * 900)
        before = sum(entry.tokens for entry in story.entries if not entry.off_branch)
        story.says("Yes.", usage=Usage(input=round(OVERHEAD + FACTOR * before)))
    session = refreshed(store_session(story.entries))
    assert session.calibration_factor == pytest.approx(FACTOR, abs=0.01)
    assert session.calibration_overhead == pytest.approx(OVERHEAD, abs=100)


def test_after_a_boundary_the_estimate_says_what_would_be_measured():
    story = measured_story().notice("Compacted").user("Summary").says()
    session = refreshed(store_session(story.entries[:24]))
    plan = checkpoint(1, 25)
    agents = type(plan)(generation=1, lineage=Lineage.AGENT, segments=plan.segments[1:], boundary_index=25)
    session = store_session(story.entries, compaction_count=1)
    refreshed(session)
    store_checkpoint(session, agents, divider=24)
    refreshed(session)
    view = sum(entry.tokens for entry in story.entries[25:])
    assert (session.signal_origin, session.signal_scope) == (Origin.ESTIMATED, Scope.WHOLE_REQUEST)
    assert session.signal_tokens == pytest.approx(OVERHEAD + FACTOR * view, rel=0.02)


def test_before_any_measurement_an_estimate_is_of_the_view_alone():
    session = refreshed(store_session(Story().user("Hello " * 500).says().entries))
    assert (session.calibration_factor, session.calibration_overhead, session.calibration_prompts) == (1.0, 0, 0)
    assert session.signal_scope == Scope.VIEW


@pytest.mark.skipif(not CORPUS.exists(), reason=f"the recordings are not there ({CORPUS})")
def test_recorded_prompts_are_foretold_better_than_without():
    """Each measured prompt, from those before it: by what was appended since the last, and by the view alone."""
    import_paths(actor=system_actor("tests"), paths=[str(CORPUS / "claude-code")])
    plain, calibrated, whole = [], [], []
    for session in Session.objects.filter(inherited_count=0):
        prompts = measured_prompts(session)
        for place in range(4, len(prompts)):
            past, last, this = prompts[:place], prompts[place - 1], prompts[place]
            if last.context != this.context:
                continue
            known = calibrate(past, base=0 if last.context == 0 else None)
            grown = this.estimate - last.estimate
            plain.append(abs(last.measured + grown - this.measured) / this.measured)
            calibrated.append(abs(last.measured + known.tokens(grown) - this.measured) / this.measured)
            if last.context == 0 and known != NONE:
                whole.append(abs(known.request(this.estimate) - this.measured) / this.measured)
    assert len(plain) > 200
    assert middle(calibrated) < 0.7 * middle(plain)
    assert middle(calibrated) < 0.003
    assert middle(whole) < 0.02
    assert sorted(whole)[int(0.95 * len(whole))] < 0.10


def middle(errors: list[float]) -> float:
    return sorted(errors)[len(errors) // 2]
