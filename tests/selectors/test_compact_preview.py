"""What a preview says of a run is what the run does: the same chunks, as many calls, and as much that is read."""

import pytest

from sessions_app.engine import prompts
from sessions_app.engine.terms import Status
from sessions_app.models import PolicyScope, PolicyValue
from sessions_app.selectors import compact_preview as previews
from sessions_app.selectors.compact_preview import CompactPreview, compact_preview
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.test_calls import Long, story
from tests.services.compaction_scenes import fresh, grow
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(monkeypatch) -> Long:
    """The only summariser there is."""
    model = Long(window=40_000)
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    for module in ("selectors.compact_preview", "services.compactions.task"):
        monkeypatch.setattr(f"sessions_app.{module}.summarisers_for", lambda _policy: [model])
    PolicyValue.objects.create(scope=PolicyScope.INSTALLATION, field="coverage_blocking", value=False)
    return model


def ran(session, actor, model: Long) -> tuple[CompactPreview, int]:
    """What the preview said, and the tokens that the run then sent."""
    foreseen = compact_preview(fresh(session))
    before = len(model.requests)
    attempt = request(actor=actor, session=fresh(session)).compaction
    run_compaction(attempt.pk)
    assert fresh(attempt).status == Status.COMPLETED, attempt.explanation
    assert (attempt.boundary_index, attempt.entries_folded) == (foreseen.boundary_index, foreseen.folded)
    if foreseen.is_exact:
        assert (attempt.chunk_count, len(model.requests) - before) == (foreseen.chunk_count, foreseen.calls.count)
    return foreseen, sum(prompts.sent_tokens(asked) for asked in model.requests[before:])


@pytest.mark.parametrize(("turns", "longest"), [(20, 5), (80, 400)], ids=["one call", "long results"])
def test_a_run_sends_what_its_preview_says(support_actor, model, turns, longest):
    session = store_session(story(3, turns, longest=longest).entries)
    signals.refresh(session.pk)
    foreseen, sent = ran(session, support_actor, model)
    assert foreseen.calls.read == pytest.approx(sent, rel=0.15)


def test_the_next_one_counts_the_summary_that_it_takes_up(support_actor, model):
    session = store_session(story(3, 40, longest=40).entries)
    signals.refresh(session.pk)
    ran(session, support_actor, model)
    grow(session, 60)
    foreseen, sent = ran(session, support_actor, model)
    assert foreseen.calls.read == pytest.approx(sent, rel=0.2)


def test_of_very_many_entries_a_sample_is_read(support_actor, model, monkeypatch):
    monkeypatch.setattr(previews, "MAX_PACKED", 100)
    session = store_session(story(3, 120, longest=400).entries)
    signals.refresh(session.pk)
    foreseen, sent = ran(session, support_actor, model)
    assert not foreseen.is_exact
    assert foreseen.calls.read == pytest.approx(sent, rel=0.3)
    assert foreseen.calls.count == pytest.approx(len(model.requests), rel=0.3)
