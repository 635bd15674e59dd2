"""A session's row learns from its own measured prompts how its estimates are to be read."""

import uuid
from pathlib import Path

import pytest

from sessions_app.engine.calibration import NONE, calibrate
from sessions_app.engine.entries import Usage
from sessions_app.engine.plan import LEAST_BLOCK_TOKENS, make
from sessions_app.engine.terms import Lineage, Origin, Scope, Status
from sessions_app.events.actors import system_actor
from sessions_app.models import Session, SessionKind
from sessions_app.selectors import plans
from sessions_app.selectors.compact_preview import compact_preview
from sessions_app.selectors.measurements import measured_prompts
from sessions_app.services import signals
from sessions_app.services.compactions.automatic import before_turn
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


def full_session() -> Session:
    """One that the console holds, whose last measured prompt has reached the trigger; its tools fill most of the target."""
    session = refreshed(store_session(measured_story(26).entries, window_override=56_000, kind=SessionKind.INLINE, model="m"))
    assert (session.signal_tokens or 0) >= session.trigger_tokens
    return session


def test_an_automatic_compaction_leaves_what_a_provider_would_measure_below_the_target(support_actor, monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    session = full_session()
    policy = plans.effective_policy(session).policy
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    made = decision.compaction
    assert (decision.verdict.fires, made.status) == (True, Status.COMPLETED)
    kept = sum(shape.tokens for shape in plans.load_shapes(session.pk, made.boundary_index))
    assert FACTOR * (kept + LEAST_BLOCK_TOKENS) + OVERHEAD <= policy.target_tokens(session.window)
    assert refreshed(session).signal_tokens <= policy.target_tokens(session.window)
    assert not before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).verdict.fires


def test_button_dialog_and_plan_of_a_calibrated_session_say_the_same():
    session = full_session()
    policy, known = plans.effective_policy(session).policy, plans.calibration_of(session)
    asked = {"policy": policy, "window": session.window, "summariser_window": 100_000, "signal_tokens": session.signal_tokens}
    shapes = plans.load_shapes(session.pk)
    plan = make(shapes, previous=None, **asked, manual=True, force=False, calibration=known)
    plain = make(shapes, previous=None, **asked, manual=True, force=False)
    said = compact_preview(session)
    assert (said.boundary_index, said.view_after) == (plan.boundary_index, plan.kept_tokens + plan.block_tokens)
    assert plan.boundary_index > plain.boundary_index
    assert session.foldable_to == known.after(session.signal_tokens, plan.tokens_before, said.view_after)


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
