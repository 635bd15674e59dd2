"""Whatever people pin, exclude, compact and take back, while the agent goes on: the invariants hold after each step."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sessions_app.engine import view
from sessions_app.engine.entries import Part
from sessions_app.engine.fates import fate_of
from sessions_app.engine.terms import Fate
from sessions_app.events.actors import Actor
from sessions_app.events.verify import verify_stream
from sessions_app.models import ActorKind, Compaction, Session
from sessions_app.selectors import plans
from sessions_app.selectors.compact_preview import compact_preview
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.overrides import CannotOverride, exclude, include, pin, unpin
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session

ACTOR = Actor(kind=ActorKind.USER, id="1", name="ana", role="support")
GONE = (Fate.SUMMARISED, Fate.TRIMMED)


class DecidedSession(RuleBasedStateMachine):
    """One session, on which people decide about entries."""

    session: Session

    @initialize()
    def begin(self) -> None:
        self.session = long_session(turns=8)
        self.history = history_digest(self.session)

    @rule(decide=st.sampled_from([pin, unpin, exclude, include]), place=st.floats(0, 0.999))
    def somebody_decides(self, decide, place: float) -> None:
        index = int(place * fresh(self.session).entry_count)
        try:
            decide(actor=ACTOR, session=self.session, index=index)
        except CannotOverride:
            return  # a notice; nothing is decided, as the invariants show

    @rule(turns=st.integers(1, 4))
    def the_agent_goes_on(self, turns: int) -> None:
        grow(self.session, turns)
        signals.refresh(self.session.pk)
        self.history = history_digest(self.session)

    @rule(force=st.booleans())
    def somebody_compacts(self, force: bool) -> None:
        preview = compact_preview(fresh(self.session))
        gone_before = self.gone()
        compaction = request(actor=ACTOR, session=fresh(self.session), force=force).compaction
        run_compaction(compaction.pk)
        compaction.refresh_from_db()
        assert not compaction.is_open
        self.history = history_digest(self.session)
        if compaction.generation is None:
            return
        if not force:
            assert (preview.boundary_index, preview.folded) == (compaction.boundary_index, compaction.entries_folded)
        held = plans.overrides_of(fresh(self.session))
        assert not (self.gone() - gone_before) & (held.pinned | held.excluded)

    @rule(generation=st.sampled_from([None, 1, 2]), as_it_was=st.booleans())
    def somebody_goes_back(self, generation: int | None, as_it_was: bool) -> None:
        if generation is None or Compaction.objects.filter(session=self.session, generation=generation).exists():
            revert(actor=ACTOR, session=fresh(self.session), generation=generation, as_it_was=as_it_was)

    def fates(self) -> dict[int, Fate]:
        chain = plans.load_chain(fresh(self.session))
        return {shape.index: fate_of(shape, chain).fate for shape in plans.load_shapes(self.session.pk)}

    def gone(self) -> set[int]:
        return {index for index, fate in self.fates().items() if fate in GONE}

    @invariant()
    def the_history_is_what_it_was(self) -> None:
        assert history_digest(self.session) == self.history

    @invariant()
    def the_view_is_legal_and_holds_what_is_pinned_and_nothing_that_is_excluded(self) -> None:
        messages = plans.load_view(fresh(self.session))
        assert view.problems(messages) == []
        sent: dict[int, list[Part]] = {}
        for message in messages:
            for part in message.parts:
                if part.entry_index is not None:
                    sent.setdefault(part.entry_index, []).append(part.part)
        held = plans.overrides_of(self.session)
        assert not held.pinned & held.excluded
        assert not held.excluded & sent.keys()
        for entry in plans.load_entries(self.session.pk):
            if entry.index in held.pinned:
                assert sent[entry.index] == list(entry.parts)
        shown = {index for index, fate in self.fates().items() if fate in (Fate.VERBATIM, Fate.PINNED, Fate.CLEARED)}
        assert shown == sent.keys()

    @invariant()
    def the_meter_counts_what_is_sent(self) -> None:
        chain = plans.load_chain(fresh(self.session))
        estimate = plans.view_tokens(self.session, chain[-1] if chain else None)
        assert sum(self.session.composition.values()) == estimate
        assert estimate == sum(message.tokens for message in plans.load_view(self.session))

    @invariant()
    def the_rows_tell_what_holds_now(self) -> None:
        now, told = plans.overrides_of(fresh(self.session)), plans.overrides_then(self.session.pk)
        assert (now.pinned, now.excluded, now.version) == (told.pinned, told.excluded, told.version)

    def teardown(self) -> None:
        if hasattr(self, "session"):
            assert verify_stream(f"session:{self.session.pk}").broken_at is None


@pytest.mark.django_db(transaction=True)
def test_any_order_of_decisions_and_compactions_keeps_the_invariants(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    run_state_machine_as_test(
        DecidedSession,
        settings=settings(max_examples=20, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)),
    )
