"""Whatever comes in whatever order (requests, cancels, appends, crashes, sweeps), the invariants hold after each step."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from sessions_app.engine import view
from sessions_app.engine.terms import OPEN_STATUSES, Status, Trigger
from sessions_app.engine.triggers import Route
from sessions_app.events.actors import Actor
from sessions_app.events.verify import verify_stream
from sessions_app.models import ActorKind, Compaction, Entry, Event, Lease, Session, SessionKind, SessionStatus
from sessions_app.selectors import plans
from sessions_app.services import sweeper
from sessions_app.services.compactions import automatic, breakers, commit, emergencies, endings, lease, run, step_events
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import CompactionUnderWay, revert
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy

FAILED = frozenset({Status.FAILED, Status.TIMED_OUT, Status.EMERGENCY_EPHEMERAL})
ACTOR = Actor(kind=ActorKind.USER, id="1", name="ana", role="support")


class Killed(BaseException):
    """The worker's process is gone: nothing after this line is done."""


PRESSURES = st.sampled_from([0.3, 0.82, 1.5])
KILLS = st.one_of(st.none(), st.integers(0, 14))


@contextmanager
def dies_after(seen: int | None) -> Iterator[None]:
    """A worker that is killed after so many of its writes; with None, one that lives."""
    left = seen

    def dies_later(real):
        def stand_in(*args, **kwargs):
            nonlocal left
            if left is not None:
                left -= 1
                if left < 0:
                    raise Killed
            return real(*args, **kwargs)

        return stand_in

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((lease, "write"), (run, "append_step"), (run, "commit"), (commit, "append_step"), (commit, "move")):
            patch.setattr(module, name, dies_later(getattr(module, name)))
        for module, name in ((endings, "append_step"), (step_events.log, "append"), (emergencies, "end_with"), (breakers, "count")):
            patch.setattr(module, name, dies_later(getattr(module, name)))
        try:
            yield
        except Killed:
            return


@contextmanager
def broken(is_broken: bool) -> Iterator[None]:
    """An engine that breaks in the middle of its work."""

    def breaks(*args, **kwargs):
        raise RuntimeError("a fault of the test")

    with pytest.MonkeyPatch.context() as patch:
        if is_broken:
            patch.setattr(run, "engine_run", breaks)
        yield


class OneSession(RuleBasedStateMachine):
    """One session under all that people, agents and machines do to it."""

    session: Session

    @initialize()
    def begin(self) -> None:
        self.session = long_session(turns=8, kind=SessionKind.INLINE, model="a-model")
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
        attempt = self.open_attempt
        with dies_after(seen):
            run_compaction(attempt.pk)

    @precondition(lambda self: self.is_free)
    @rule(pressure=PRESSURES, seen=KILLS, breaks=st.booleans())
    def a_turn_begins(self, pressure: float, seen: int | None, breaks: bool) -> None:
        """Threshold and preflight, with a worker that may be killed at any step, or whose engine may break."""
        session = self.under(pressure)
        with dies_after(seen), broken(breaks):
            self.served(automatic.before_turn(session=session, actor=ACTOR, turn_id=uuid.uuid4()))

    @precondition(lambda self: self.is_free)
    @rule(seen=KILLS, again=st.booleans())
    def the_provider_refuses_a_request_as_too_long(self, seen: int | None, again: bool) -> None:
        turn = uuid.uuid4()
        with dies_after(seen):
            decision = automatic.recover_overflow(session=fresh(self.session), actor=ACTOR, turn_id=turn)
            self.served(decision)
            if again:
                second = automatic.recover_overflow(session=fresh(self.session), actor=ACTOR, turn_id=turn)
                assert not (decision.compaction and decision.compaction.turn_id == turn and second.made_room)

    @precondition(lambda self: self.is_free)
    @rule(pressure=PRESSURES, room=st.sampled_from([500, 2_000, 8_000]), seen=KILLS, breaks=st.booleans())
    def a_router_chooses_the_highest_tier(self, pressure: float, room: int, seen: int | None, breaks: bool) -> None:
        report = Route(routed_tier="c3", previous_tier="c1")
        session = self.under(pressure)
        with dies_after(seen), broken(breaks):
            self.served(automatic.route(session=session, actor=ACTOR, turn_id=uuid.uuid4(), report=report, history_tokens=room))

    @precondition(lambda self: self.open_attempt is None and not fresh(self.session).is_busy)
    @rule(window=st.sampled_from([2_000, 4_000, 8_000, 64_000]), seen=KILLS)
    def somebody_chooses_another_model(self, window: int, seen: int | None) -> None:
        with dies_after(seen):
            decision = automatic.switch_model(session=fresh(self.session), actor=ACTOR, model=f"model-{window}", window=window)
            session = fresh(self.session)
            assert (session.model == f"model-{window}") or decision.refusal
            assert decision.refusal or session.signal_tokens < session.trigger_tokens

    @rule()
    def somebody_lets_automatic_compaction_start_again(self) -> None:
        assert breakers.reset(actor=ACTOR, session=fresh(self.session)).breaker_failures == 0

    @rule()
    def the_rest_is_over(self) -> None:
        rows = Session.objects.filter(pk=self.session.pk, breaker_failed_at__isnull=False)
        rows.update(breaker_failed_at=Now() - timedelta(seconds=301))

    @rule(enabled=st.booleans())
    def somebody_switches_automatic_compaction(self, enabled: bool) -> None:
        set_policy(self.session, enabled=enabled)

    @property
    def is_free(self) -> bool:
        """Whether no dead worker holds the session: what comes next would wait for the sweep."""
        attempt = self.open_attempt
        return attempt is None or attempt.status != Status.RUNNING

    def under(self, pressure: float) -> Session:
        """The session, whose provider measured so much of its window."""
        session = fresh(self.session)
        Session.objects.filter(pk=session.pk).update(signal_tokens=int(pressure * session.window), signal_measured=None)
        return fresh(session)

    def served(self, decision: automatic.Decision) -> None:
        """12, 4, and that an emergency view is of this request alone."""
        enabled = plans.effective_policy(self.session).policy.enabled
        own = decision.compaction is not None and decision.compaction.trigger not in (Trigger.MANUAL, Trigger.TIER_UPGRADE)
        assert enabled or not own
        if decision.view is not None:
            assert decision.compaction.status == Status.EMERGENCY_EPHEMERAL
            assert not decision.compaction.segments.exists()
            assert view.problems(plans.view_of(self.session.pk, decision.view)) == []

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
    def the_breaker_counts_failures_since_the_last_success(self) -> None:
        if not hasattr(self, "history"):
            return
        session = fresh(self.session)
        ended = [attempt for attempt in Compaction.objects.filter(session=session).order_by("attempt") if not attempt.is_open]
        after = list(takewhile(lambda attempt: attempt.status != Status.COMPLETED, reversed(ended)))
        may_count = [attempt for attempt in after if attempt.trigger != Trigger.MANUAL and attempt.status in FAILED]
        assert session.breaker_failures <= len(may_count)
        assert (session.breaker_failed_at is None) == (session.breaker_failures == 0)

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
