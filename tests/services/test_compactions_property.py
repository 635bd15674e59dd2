"""Whatever comes in whatever order (requests, cancels, appends, crashes, sweeps), the invariants hold after each step."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from sessions_app.engine import view
from sessions_app.engine.terms import OPEN_STATUSES, Status
from sessions_app.events.actors import Actor
from sessions_app.events.verify import verify_stream
from sessions_app.models import ActorKind, Compaction, Entry, Event, Lease, Session, SessionStatus
from sessions_app.selectors import plans
from sessions_app.services import sweeper
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import CompactionUnderWay, revert
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session

ACTOR = Actor(kind=ActorKind.USER, id="1", name="ana", role="support")


class Killed(BaseException):
    """The worker's process is gone: nothing after this line is done."""


class OneSession(RuleBasedStateMachine):
    """One session under all that people, agents and machines do to it."""

    session: Session

    @initialize()
    def begin(self) -> None:
        self.session = long_session(turns=8)
        self.history = history_digest(self.session)

    @property
    def open_attempt(self) -> Compaction | None:
        return Compaction.objects.filter(session=self.session, status__in=OPEN_STATUSES).first()

    @rule(force=st.booleans())
    def somebody_asks(self, force: bool) -> None:
        under_way = self.open_attempt
        answer = request(actor=ACTOR, session=fresh(self.session), force=force)
        assert answer.joined == (under_way is not None)

    @rule()
    def a_worker_takes_the_task(self) -> None:
        last = Compaction.objects.filter(session=self.session).order_by("-attempt").first()
        if last is not None:
            run_compaction(last.pk)

    @precondition(lambda self: self.open_attempt is not None and self.open_attempt.status == Status.REQUESTED)
    @rule(seen=st.integers(0, 12))
    def a_worker_is_killed_on_its_way(self, seen: int) -> None:
        left = [seen]

        def dies_later(real):
            def stand_in(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return real(*args, **kwargs)

            return stand_in

        with pytest.MonkeyPatch.context() as patch:
            from sessions_app.services.compactions import commit, endings, run, step_events

            for module, name in ((lease, "write"), (run, "append_step"), (run, "commit"), (commit, "append_step"), (commit, "move")):
                patch.setattr(module, name, dies_later(getattr(module, name)))
            for module, name in ((endings, "append_step"), (step_events.log, "append")):
                patch.setattr(module, name, dies_later(getattr(module, name)))
            try:
                run_compaction(self.open_attempt.pk)
            except Killed:
                return

    @precondition(lambda self: self.open_attempt is not None)
    @rule()
    def somebody_cancels(self) -> None:
        cancel(actor=ACTOR, session=self.session, compaction_id=self.open_attempt.pk)

    @rule(turns=st.integers(1, 3))
    def the_agent_goes_on(self, turns: int) -> None:
        grow(self.session, turns)
        self.history = history_digest(self.session)

    @rule(status=st.sampled_from([SessionStatus.WORKING, SessionStatus.IDLE]))
    def the_turn_begins_or_ends(self, status: SessionStatus) -> None:
        rows = Session.objects.filter(pk=self.session.pk).exclude(status=SessionStatus.COMPACTING)
        rows.update(status=status, last_activity_at=Now())

    @rule()
    def time_passes(self) -> None:
        long_ago = Now() - timedelta(hours=1)
        Lease.objects.filter(session=self.session, token__isnull=False).update(expires_at=long_ago)
        Compaction.objects.filter(session=self.session, status=Status.WAITING_FOR_IDLE).update(deadline_at=long_ago)

    @rule(at_start=st.booleans())
    def the_sweep_comes(self, at_start: bool) -> None:
        sweeper.sweep(at_start=at_start)

    @rule(generation=st.sampled_from([None, 1, 2]))
    def somebody_goes_back(self, generation: int | None) -> None:
        if generation and not Compaction.objects.filter(session=self.session, generation=generation).exists():
            return
        try:
            revert(actor=ACTOR, session=self.session, generation=generation)
        except CompactionUnderWay:
            assert self.open_attempt is not None

    @invariant()
    def no_entry_changes_and_dividers_alone_are_added(self) -> None:
        """1."""
        if not hasattr(self, "history"):
            return
        now = history_digest(self.session)
        assert now[: len(self.history)] == self.history
        assert {row[2] for row in now[len(self.history) :]} <= {"compacted"}
        assert [row[0] for row in now] == list(range(len(now)))
        self.history = now

    @invariant()
    def the_view_is_legal_and_its_prefix_is_the_one_that_was_folded(self) -> None:
        """4, 5 and 6."""
        if not hasattr(self, "history"):
            return
        session = fresh(self.session)
        assert view.problems(plans.load_view(session)) == []
        active = session.active_console
        if active is not None and active.boundary_index:
            assert active.status == Status.COMPLETED
            before = Entry.objects.get(session=session, index=active.boundary_index - 1)
            assert bytes(before.prefix_hash) == bytes(active.prefix_hash)

    @invariant()
    def at_most_one_attempt_is_open_and_the_session_points_at_it(self) -> None:
        """7."""
        if not hasattr(self, "history"):
            return
        session, attempt = fresh(self.session), self.open_attempt
        assert session.running == attempt
        assert (session.status == SessionStatus.COMPACTING) <= (attempt is not None)

    @invariant()
    def every_attempt_ends_once_and_changes_nothing_unless_it_is_committed(self) -> None:
        """9 and 13."""
        if not hasattr(self, "history"):
            return
        for attempt in Compaction.objects.filter(session=self.session):
            terminal = [status for status in Status if status.is_terminal]
            steps = Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).order_by("seq")
            assert [event.step for event in steps] == list(range(1, len(steps) + 1))
            assert sum(event.payload["status"] in terminal for event in steps) == (0 if attempt.is_open else 1)
            assert (attempt.generation is not None) == (attempt.divider_index is not None) == (attempt.status == Status.COMPLETED)
            assert attempt.segments.exists() == (attempt.status == Status.COMPLETED)
        assert verify_stream(f"session:{self.session.pk}").broken_at is None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_invariants_hold_under_every_order_of_what_may_happen(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    monkeypatch.setattr("sessions_app.services.compactions.keeper.POLL_S", 0.01)
    health = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        OneSession, settings=settings(max_examples=20, stateful_step_count=15, deadline=None, suppress_health_check=health)
    )
