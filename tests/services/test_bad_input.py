"""What no provider should answer and no history should hold: an attempt ends in words, and the view in force stays what it was."""

import pytest
from django.urls import reverse

from sessions_app.engine import view
from sessions_app.engine.terms import Outcome, Status
from sessions_app.models import Compaction, PolicyValue, Session
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.test_bad_input import HISTORIES
from tests.fakes.keys import point_at
from tests.fakes.model_server import Fault, ModelServer, say
from tests.services.compaction_scenes import fresh, history_digest, long_session, set_policy, view_hash
from tests.stored import store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]

SUMMARY = "## Primary request and intent\nMend the build of every module.\n\n## Next step\nLook into the next module."
CONTEXT_COLUMNS = {
    *("status", "running", "active_console", "last_attempt", "last_generation", "compaction_count", "entry_count", "head_hash"),
    *("signal_tokens", "signal_origin", "signal_scope", "signal_measured", "signal_measured_at", "signal_appended", "pressure"),
    *("composition", "foldable_to", "unfoldable_reason", "evaluation", "changed_at", "trigger_tokens", "refill_warning"),
}
"""Of a session, what tells of its context and of the attempt itself."""


@pytest.fixture
def server(monkeypatch):
    with ModelServer() as running:
        point_at(running, "anthropic", monkeypatch)
        monkeypatch.setattr("sessions_app.providers.model_summariser.FIRST_PAUSE_S", 0.01)
        yield running


def compacted(actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=session, **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


@pytest.mark.parametrize(
    ("reply", "outcome", "words"),
    [
        (lambda asked: say("<!doctype html><html><body>502 Bad Gateway</body></html>"), Outcome.FAILED, "web page"),
        (lambda asked: say("Error: 429 Too Many Requests"), Outcome.FAILED, "error message"),
        (lambda asked: say(asked.texts[0]), Outcome.REJECTED_INFLATED, "larger"),
        (lambda asked: say("word " * 40_000), Outcome.REJECTED_INFLATED, "larger"),
        (lambda asked: say(""), Outcome.REJECTED_EMPTY, "empty"),
        (lambda asked: say(SUMMARY, fault=Fault.HANG), Outcome.FAILED, "gave no answer"),
    ],
)
def test_what_a_provider_gets_wrong_ends_in_words_and_changes_nothing(support_actor, server, reply, outcome, words):
    session = long_session()
    limit = 1 if words == "gave no answer" else 60  # seconds, of which only the one that hangs needs all
    set_policy(session, summarisers=["anthropic:a-model@30000"], call_timeout_s=limit)
    server.reply = reply
    before, history = view_hash(session), history_digest(session)
    attempt = compacted(support_actor, session)
    assert (attempt.status, attempt.outcome) == (Status.FAILED, outcome)
    assert words in attempt.explanation
    assert attempt.explanation.endswith("Nothing was changed.")
    assert (view_hash(session), history_digest(session)) == (before, history)
    assert fresh(session).running is None


@pytest.mark.parametrize("claimed", [0, 1, 10**12])
def test_what_a_provider_claims_to_have_read_moves_no_number_of_the_view(support_actor, server, claimed):
    session = long_session()
    set_policy(session, summarisers=["anthropic:a-model@30000"])
    server.reply = lambda asked: say(SUMMARY, input_tokens=claimed)
    attempt = compacted(support_actor, session)
    assert attempt.status == Status.COMPLETED, attempt.explanation
    assert (
        attempt.tokens_after < attempt.tokens_before == sum(entry.tokens for entry in plans.load_entries(session.pk) if entry.is_sendable)
    )
    estimate = plans.view_tokens(session, plans.load_chain(fresh(session))[-1])
    assert session.signal_tokens == estimate == attempt.tokens_after


@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize("history", sorted(set(HISTORIES) - {"lone surrogates"}))  # which are replaced where a source is read
def test_any_history_that_is_stored_ends_in_an_outcome_with_its_reason(support_actor, history, is_forced):
    session = store_session(HISTORIES[history]().entries, window_override=8_000)
    signals.refresh(session.pk)
    before, rows = view_hash(session), history_digest(session)
    attempt = compacted(support_actor, fresh(session), force=is_forced)
    assert attempt.outcome in (Outcome.COMMITTED, Outcome.SKIPPED), attempt.explanation
    assert history_digest(session)[: len(rows)] == rows
    assert view.problems(plans.load_view(fresh(session))) == []
    if attempt.outcome == Outcome.SKIPPED:
        assert attempt.explanation.endswith("Nothing was changed.")
        assert view_hash(session) == before


def test_a_compaction_changes_nothing_of_a_session_but_what_tells_of_its_context(support_actor):
    """Mode, model, place and rights are none of its business."""
    session = long_session(working_directory="/w/shop", branch="main", labels=["urgent"], agent_version="2.1")
    names = {field.name for field in Session._meta.concrete_fields} - CONTEXT_COLUMNS
    before = {name: getattr(fresh(session), name) for name in names}
    assert compacted(support_actor, session).status == Status.COMPLETED
    assert {name: getattr(fresh(session), name) for name in names} == before


def test_a_stored_value_that_no_policy_may_have_starts_nothing_and_leaves_the_view(support_actor, client, support):
    """It may come from another version. The page still shows the session, and a request says what is the matter."""
    session = long_session()
    before = view_hash(session)
    PolicyValue.objects.create(scope="session", scope_id=str(session.pk), field="cap_tokens", value=5)
    client.force_login(support)
    assert client.get(reverse("session-detail", args=[session.pk])).status_code == 200
    client.raise_request_exception = False
    answer = client.post(reverse("compaction-create", args=[session.pk]), {})
    assert "cap_tokens must lie between" in answer.content.decode()
    assert answer.status_code == 409
    assert not Compaction.objects.exists()
    assert view_hash(session) == before
