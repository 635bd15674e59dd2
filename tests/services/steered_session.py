"""One session under all that people, agents, machines and accidents do to it, as a state machine; its invariants stand beside it."""

import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta

import msgspec
import pytest
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from sessions_app.engine import view
from sessions_app.engine.steps import Planned, Result, Step
from sessions_app.engine.terms import OPEN_STATUSES, Status, Trigger
from sessions_app.engine.triggers import Route
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind, Compaction, Lease, Session, SessionKind, SessionStatus
from sessions_app.selectors import plans
from sessions_app.services import signals, sweeper
from sessions_app.services.compactions import automatic, breakers, commit, drafts, emergencies, endings, lease, run, step_events
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import CompactionUnderWay, revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.forks import fork
from sessions_app.services.overrides import CannotOverride, exclude, include, pin, unpin
from tests.engine.histories import Story
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy, view_hash, wait_until
from tests.services.session_invariants import Watched
from tests.stored import append_entries

ACTOR = Actor(kind=ActorKind.USER, id="1", name="ana", role="support")
PRESSURES = st.sampled_from([0.3, 0.82, 1.5])
KILLS = st.one_of(st.none(), st.integers(0, 14))
PLACES = st.floats(0, 0.999)


class Killed(BaseException):
    """The worker's process is gone: nothing after this line is done."""


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
        patch.setattr(drafts, "move", dies_later(drafts.move))
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


@contextmanager
def meanwhile(act: Callable[[Callable[[], object]], None]) -> Iterator[None]:
    """Lets `act` happen while an attempt runs, once its boundary is chosen. It is given what the attempt asks whether to stop."""
    real = run.engine_run

    def interrupted(task, *, should_stop) -> Generator[Step, None, Result]:
        steps = real(task, should_stop=should_stop)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            yield step
            if isinstance(step, Planned):
                act(should_stop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "engine_run", interrupted)
        yield


class SteeredSession(Watched):
    """What may happen to a session, in any order."""

    @initialize()
    def begin(self) -> None:
        self.watch(long_session(turns=8, kind=SessionKind.INLINE, model="a-model"))

    @property
    def open_attempt(self) -> Compaction | None:
        return Compaction.objects.filter(session=self.session, status__in=OPEN_STATUSES).first()

    @property
    def is_free(self) -> bool:
        """Whether no dead worker holds the session: what comes next would wait for the sweep."""
        attempt = self.open_attempt
        return attempt is None or attempt.status != Status.RUNNING

    # People.

    @rule(force=st.booleans(), is_reviewed=st.booleans())
    def somebody_asks(self, force: bool, is_reviewed: bool) -> None:
        under_way = self.open_attempt
        changes = {"review_before_commit": is_reviewed}
        answer = request(actor=ACTOR, session=fresh(self.session), force=force, changes=changes)
        assert answer.joined == (under_way is not None)
        assert under_way in (None, answer.compaction)

    @precondition(lambda self: self.open_attempt is not None)
    @rule()
    def somebody_cancels(self) -> None:
        cancel(actor=ACTOR, session=self.session, compaction_id=self.open_attempt.pk)

    @rule(generation=st.sampled_from([None, 1, 2, 3]), as_it_was=st.booleans())
    def somebody_goes_back(self, generation: int | None, as_it_was: bool) -> None:
        if generation and not Compaction.objects.filter(session=self.session, generation=generation).exists():
            return
        try:
            revert(actor=ACTOR, session=self.session, generation=generation, as_it_was=as_it_was)
        except CompactionUnderWay:
            assert self.open_attempt is not None

    @rule(decide=st.sampled_from([pin, unpin, exclude, include]), place=PLACES)
    def somebody_decides_about_an_entry(self, decide, place: float) -> None:
        try:
            decide(actor=ACTOR, session=self.session, index=int(place * fresh(self.session).entry_count))
        except CannotOverride:
            return  # nothing is decided, as the invariants show

    @precondition(lambda self: Compaction.objects.filter(session=self.session, status=Status.DRAFTED).exists())
    @rule(decide=st.sampled_from(["commit", "discard", "edit"]))
    def somebody_decides_about_a_draft(self, decide: str) -> None:
        draft = Compaction.objects.filter(session=self.session, status=Status.DRAFTED).order_by("attempt")[0]
        chosen = {"actor": ACTOR, "session": self.session, "compaction_id": draft.pk}
        try:
            match decide:
                case "edit":
                    drafts.edit(**chosen, text="## Next step\nGo on with the build, as somebody worded it.")
                    assert fresh(draft).status == Status.DRAFTED
                case "discard":
                    assert drafts.discard(**chosen).status == Status.CANCELLED
                case _:
                    assert drafts.commit_draft(**chosen).status in (Status.COMPLETED, Status.STALE)
        except CompactionUnderWay:
            assert self.open_attempt is not None
        except (drafts.DraftBlocked, drafts.InvalidSummary):
            assert fresh(draft).status == Status.DRAFTED

    @rule(goes_on_there=st.booleans())
    def somebody_forks_it(self, goes_on_there: bool) -> None:
        hash_before = view_hash(self.session)
        copy = fork(actor=ACTOR, session=fresh(self.session))
        assert view_hash(copy) == view_hash(self.session) == hash_before
        if goes_on_there:
            self.watch(copy)

    @rule(enabled=st.booleans())
    def somebody_switches_automatic_compaction(self, enabled: bool) -> None:
        set_policy(self.session, enabled=enabled)

    @rule()
    def somebody_lets_automatic_compaction_start_again(self) -> None:
        assert breakers.reset(actor=ACTOR, session=fresh(self.session)).breaker_failures == 0

    @precondition(lambda self: self.open_attempt is None and not fresh(self.session).is_busy)
    @rule(window=st.sampled_from([2_000, 4_000, 8_000, 64_000]), seen=KILLS)
    def somebody_chooses_another_model(self, window: int, seen: int | None) -> None:
        with dies_after(seen):
            decision = automatic.switch_model(session=fresh(self.session), actor=ACTOR, model=f"model-{window}", window=window)
            session = fresh(self.session)
            assert (session.model == f"model-{window}") or decision.refusal
            assert decision.refusal or session.signal_tokens < session.trigger_tokens

    # Workers.

    @rule()
    def a_worker_takes_the_task(self) -> None:
        last = Compaction.objects.filter(session=self.session).order_by("-attempt").first()
        if last is not None:
            run_compaction(last.pk)

    @precondition(lambda self: self.open_attempt is not None and self.open_attempt.status == Status.REQUESTED)
    @rule(seen=st.integers(0, 12))
    def a_worker_is_killed_on_its_way(self, seen: int) -> None:
        with dies_after(seen):
            run_compaction(self.open_attempt.pk)

    @precondition(lambda self: self.open_attempt is not None and self.open_attempt.status == Status.REQUESTED)
    @rule(
        what=st.sampled_from(["grows", "is asked again", "is cancelled", "is reverted", "is forked", "is swept", "pin", "exclude"]),
        place=PLACES,
    )
    def something_happens_while_it_runs(self, what: str, place: float) -> None:
        attempt, before = self.open_attempt, view_hash(self.session)
        size = fresh(self.session).entry_count

        def act(should_stop: Callable[[], object]) -> None:
            match what:
                case "grows":
                    self.the_agent_goes_on(turns=1)
                case "is asked again":
                    again = request(actor=ACTOR, session=fresh(self.session))
                    assert (again.joined, again.compaction.pk) == (True, attempt.pk)
                case "is cancelled":
                    cancel(actor=ACTOR, session=self.session, compaction_id=attempt.pk)
                    wait_until(lambda: should_stop() is not None)
                case "is reverted":
                    with pytest.raises(CompactionUnderWay):
                        revert(actor=ACTOR, session=self.session, generation=None)
                case "is forked":
                    assert view_hash(fork(actor=ACTOR, session=fresh(self.session))) == before
                case "is swept":
                    assert sweeper.sweep().lost == 0
                case _:
                    self.somebody_decides_about_an_entry({"pin": pin, "exclude": exclude}[what], place)

        with meanwhile(act):
            run_compaction(attempt.pk)
        assert attempt is not None
        assert not fresh(attempt).is_open
        assert attempt.status != Status.STALE or what == "exclude"
        if what == "grows" and attempt.status == Status.COMPLETED:
            chain = plans.load_chain(fresh(self.session))
            excluded = plans.overrides_of(self.session).excluded
            assert all(chain[-1].holds(index) for index in range(size, self.session.entry_count) if index not in excluded)
        if what == "is cancelled":
            assert attempt.status in (Status.CANCELLED, Status.SKIPPED)
            assert view_hash(self.session) == before

    @rule(at_start=st.booleans())
    def the_sweep_comes(self, at_start: bool) -> None:
        sweeper.sweep(at_start=at_start)

    @rule()
    def time_passes(self) -> None:
        long_ago = Now() - timedelta(hours=1)
        Lease.objects.filter(session=self.session, token__isnull=False).update(expires_at=long_ago)
        Compaction.objects.filter(session=self.session, status=Status.WAITING_FOR_IDLE).update(deadline_at=long_ago)

    @rule()
    def the_rest_is_over(self) -> None:
        rows = Session.objects.filter(pk=self.session.pk, breaker_failed_at__isnull=False)
        rows.update(breaker_failed_at=Now() - timedelta(seconds=301))

    # Agents and providers.

    @rule(turns=st.integers(1, 3))
    def the_agent_goes_on(self, turns: int) -> None:
        grow(self.session, turns)
        signals.refresh(self.session.pk)
        self.history = history_digest(self.session)

    @rule(calls=st.integers(0, 2), lacks_result=st.booleans())
    def a_request_stays_open(self, calls: int, lacks_result: bool) -> None:
        first = fresh(self.session).entry_count
        told = Story().user(f"Request {first}: and why does the build of step {first} fail?")
        for number in range(calls):
            told.calls(f"open-{first}-{number}")
            if not (lacks_result and number == calls - 1):
                told.result(f"open-{first}-{number}", words="It says nothing. " * 20)
        moved = [msgspec.structs.replace(entry, index=first + at, source_id=f"e{first + at}") for at, entry in enumerate(told.entries)]
        append_entries(self.session, moved)
        signals.refresh(self.session.pk)
        self.history = history_digest(self.session)

    @rule(status=st.sampled_from([SessionStatus.WORKING, SessionStatus.IDLE]))
    def the_turn_begins_or_ends(self, status: SessionStatus) -> None:
        rows = Session.objects.filter(pk=self.session.pk).exclude(status=SessionStatus.COMPACTING)
        rows.update(status=status, last_activity_at=Now())

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

    def under(self, pressure: float) -> Session:
        """The session, whose provider measured so much of its window."""
        session = fresh(self.session)
        Session.objects.filter(pk=session.pk).update(signal_tokens=int(pressure * session.window), signal_measured=None)
        return fresh(session)

    def served(self, decision: automatic.Decision) -> None:
        """Off is off; and an emergency view is legal, and of this request alone."""
        enabled = plans.effective_policy(self.session).policy.enabled
        own = decision.compaction is not None and decision.compaction.trigger not in (Trigger.MANUAL, Trigger.TIER_UPGRADE)
        assert enabled or not own
        if decision.view is not None:
            assert decision.compaction.status == Status.EMERGENCY_EPHEMERAL
            assert not decision.compaction.segments.exists()
            assert view.problems(plans.view_of(self.session.pk, decision.view)) == []

    @invariant()
    def everything_holds(self) -> None:
        self.check()
