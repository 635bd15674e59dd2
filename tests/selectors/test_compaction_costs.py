"""What a preview says of money."""

import pytest

from sessions_app.engine.calls import Calls
from sessions_app.models import Session
from sessions_app.selectors.compact_preview import CompactPreview
from sessions_app.selectors.compaction_costs import costs_of

CALLS = Calls(count=3, read=132_000, written=9_000)
PLAN = CompactPreview(view_tokens=150_000, view_after=50_000, folded_tokens=120_000, chunk_count=2, calls=CALLS)
KNOWN = Session(model="claude-haiku-4-5")


def test_a_summary_without_a_model_costs_nothing_and_an_unknown_model_saves_nothing_that_is_known():
    costs = costs_of(Session(model="no-such-model"), PLAN)
    assert (costs.summary, costs.model, costs.rewrite, costs.saved) == (0.0, "", None, None)


def test_the_next_request_pays_for_the_cache_and_the_ones_after_it_save():
    costs = costs_of(KNOWN, PLAN)
    assert costs.rewrite == pytest.approx(50_000 * 1.25e-6)
    assert costs.saved == pytest.approx(100_000 * 0.1e-6)


def test_what_a_model_reads_and_may_write_is_priced(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    plan = CompactPreview(**{**vars(PLAN), "summariser": "anthropic:claude-haiku-4-5", "asks_model": True})
    assert costs_of(KNOWN, plan).summary == pytest.approx(132_000 * 1e-6 + 9_000 * 5e-6)


def test_a_model_without_a_list_price_has_an_unknown_cost():
    plan = CompactPreview(**{**vars(PLAN), "summariser": "openai:our-own", "asks_model": True})
    assert costs_of(KNOWN, plan).summary is None


def test_a_plan_that_is_refused_costs_nothing_to_tell():
    assert costs_of(KNOWN, CompactPreview(refusal="Nothing to fold.")) is None
