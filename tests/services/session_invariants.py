"""What must hold of a session after every step, whatever happened to it: the invariants of compaction, by their numbers.

Not here, since no state shows them: that followers hear of a commit after it (6, `live/test_poke.py`), that cancel and deadline take
effect within a second (13, `test_compactions_ending.py`) and that planning is linear (16, `test_compactions_cost.py`).
"""

import re
from itertools import takewhile

import msgspec
from hypothesis.stateful import RuleBasedStateMachine

from sessions_app.engine import mechanical, view
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.fates import fate_of
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Kind, Outcome, Role, Status, Trigger
from sessions_app.events.verify import verify_stream
from sessions_app.models import Compaction, Event, Session, SessionStatus
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import plans
from tests.services.compaction_scenes import fresh, history_digest

FAILED = frozenset({Status.FAILED, Status.TIMED_OUT, Status.EMERGENCY_EPHEMERAL})
SHOWN = (Fate.VERBATIM, Fate.PINNED, Fate.CLEARED)
GONE = (Fate.SUMMARISED, Fate.TRIMMED)
CLEARED_SLACK = 10
"""Tokens by which the placeholder of one entry may differ from what it is planned with."""


class Watched(RuleBasedStateMachine):
    """A session, and what was seen of it so far."""

    session: Session

    def watch(self, session: Session) -> None:
        self.session = session
        self.history = history_digest(session)
        self.copied = set(Compaction.objects.filter(session=session).values_list("pk", flat=True))
        self.hashes: dict[tuple[object, ...], str] = {}
        self.checked: set[object] = set()

    def check(self) -> None:
        if not hasattr(self, "session"):
            return
        session = fresh(self.session)
        self.no_entry_changes_and_dividers_alone_are_added()
        entries = list(plans.load_entries(session.pk))
        chain = plans.load_chain(session)
        messages = plans.load_view(session)
        self.the_view_is_a_pure_function(session, entries, messages)
        self.every_entry_has_one_fate_and_stands_where_it_says(session, entries, messages)
        self.the_block_tells_every_request_and_all_that_was_done(session, entries)
        self.the_open_request_stands_word_for_word(session, entries, messages)
        assert view.problems(messages) == []  # 4
        self.the_meter_counts_what_is_sent(session, messages, len(chain[-1].cleared) if chain else 0)
        self.at_most_one_attempt_is_open_and_the_session_points_at_it(session)
        self.every_attempt_ends_once_and_changes_nothing_unless_it_is_committed(session)
        self.the_breaker_counts_failures_since_the_last_success(session)
        told = plans.overrides_then(session.pk)
        now = plans.overrides_of(session)
        assert (now.pinned, now.excluded, now.version) == (told.pinned, told.excluded, told.version)

    def no_entry_changes_and_dividers_alone_are_added(self) -> None:
        """1."""
        now = history_digest(self.session)
        assert now[: len(self.history)] == self.history
        assert {row[2] for row in now[len(self.history) :]} <= {"compacted"}
        assert [row[0] for row in now] == list(range(len(now)))
        self.history = now

    def the_view_is_a_pure_function(self, session: Session, entries: list[Entry], messages: tuple[view.ViewMessage, ...]) -> None:
        """2, 5 and 6: of entries, checkpoint and decisions alone, so that what did not commit, or was taken back, shows nowhere."""
        chain = plans.load_chain(session)
        assert view.build(reversed(entries), chain[-1] if chain else None) == messages
        decided = plans.overrides_of(session)
        key = (session.active_console_id, session.active_agent_id, decided.pinned, decided.excluded, len(entries))
        assert self.hashes.setdefault(key, view.view_hash(messages)) == view.view_hash(messages)
        active = session.active_console
        if active is not None and active.boundary_index:
            assert active.status == Status.COMPLETED
            before = EntryRow.objects.get(session=session, index=active.boundary_index - 1)
            assert bytes(before.prefix_hash) == bytes(active.prefix_hash)
            assert entries[active.boundary_index].source_id == active.boundary_source_id

    def every_entry_has_one_fate_and_stands_where_it_says(
        self, session: Session, entries: list[Entry], messages: tuple[view.ViewMessage, ...]
    ) -> None:
        """3: and what left the view says with which generation."""
        chain, held = plans.load_chain(session), plans.overrides_of(session)
        sent: dict[int, list[Part]] = {}
        for message in messages:
            for part in message.parts:
                if part.entry_index is not None:
                    sent.setdefault(part.entry_index, []).append(part.part)
        fates = {entry.index: fate_of(shape_of(entry), chain) for entry in entries}
        assert {index for index, found in fates.items() if found.fate in SHOWN} == sent.keys()
        assert all(found.generation is not None for found in fates.values() if found.fate in GONE)
        assert not held.pinned & held.excluded
        assert not held.excluded & sent.keys()
        for entry in entries:
            if fates[entry.index].fate in (Fate.VERBATIM, Fate.PINNED):
                assert sent[entry.index] == list(entry.parts)

    def the_open_request_stands_word_for_word(self, session: Session, entries: list[Entry], messages: tuple[view.ViewMessage, ...]) -> None:
        """14: the latest request of a person that no closing statement follows."""
        asked = next((entry for entry in reversed(entries) if shape_of(entry).is_user_message), None)
        if asked is None or asked.index in plans.overrides_of(session).excluded:
            return
        later = entries[asked.index + 1 :]
        if not any(entry.role is Role.ASSISTANT and entry.kind is Kind.MESSAGE for entry in later):
            sent = [part.part for message in messages for part in message.parts if part.entry_index == asked.index]
            assert sent == list(asked.parts)

    def the_block_tells_every_request_and_all_that_was_done(self, session: Session, entries: list[Entry]) -> None:
        """14 and 15: state is that of all entries from the first one on, and each request is listed or counted."""
        active = session.active_console
        if active is None or active.pk in self.copied or active.pk in self.checked or not active.mechanical_state:
            return
        self.checked.add(active.pk)
        excluded = plans.overrides_then(session.pk, version=active.override_version).excluded
        state = mechanical.collect(entry for entry in entries[: active.boundary_index] if entry.index not in excluded)
        assert msgspec.json.decode(msgspec.json.encode(state)) == active.mechanical_state
        block = "".join(message.text for message in _synthetic(active))
        said = block.partition("## What the user said before this point\n")[2]
        if said:
            left_out = sum(map(int, re.findall(r"^- \((\d+) messages left out here", said, re.MULTILINE)))
            listed = len(re.findall(r"^- #\d+", said.partition("\n\n")[0], re.MULTILINE))
            assert listed + left_out == int(said.split(maxsplit=1)[0])

    def the_meter_counts_what_is_sent(self, session: Session, messages: tuple[view.ViewMessage, ...], cleared: int) -> None:
        chain = plans.load_chain(session)
        estimate = plans.view_tokens(session, chain[-1] if chain else None)
        assert sum(session.composition.values()) == estimate
        parts = [part for message in messages for part in message.parts if part.part.text != view.NO_RESULT]
        assert abs(estimate - sum(part.tokens for part in parts)) <= CLEARED_SLACK * cleared

    def at_most_one_attempt_is_open_and_the_session_points_at_it(self, session: Session) -> None:
        """7."""
        waiting = [attempt for attempt in Compaction.objects.filter(session=session) if attempt.is_open]
        assert len(waiting) <= 1
        assert session.running == (waiting[0] if waiting else None)
        assert (session.status == SessionStatus.COMPACTING) <= bool(waiting)

    def every_attempt_ends_once_and_changes_nothing_unless_it_is_committed(self, session: Session) -> None:
        """9, 10, 11 and 13."""
        terminal = [status for status in Status if status.is_terminal]
        for attempt in Compaction.objects.filter(session=session).exclude(pk__in=self.copied):
            steps = Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).order_by("seq")
            assert [event.step for event in steps] == list(range(1, len(steps) + 1))
            assert sum(event.payload["status"] in terminal for event in steps) == Status(attempt.status).is_terminal
            is_committed = attempt.status == Status.COMPLETED
            assert (attempt.generation is not None) == (attempt.divider_index is not None) == is_committed
            assert attempt.segments.exists() == is_committed
            assert attempt.explanation or is_committed or not Status(attempt.status).is_terminal
            assert attempt.trigger != Trigger.OVERFLOW or attempt.summarisers_tried == []
            if is_committed:
                _made_progress(attempt)
        assert verify_stream(f"session:{session.pk}").broken_at is None

    def the_breaker_counts_failures_since_the_last_success(self, session: Session) -> None:
        found = Compaction.objects.filter(session=session).order_by("attempt")
        ended = [attempt for attempt in found if Status(attempt.status).is_terminal]
        after = list(takewhile(lambda attempt: attempt.status != Status.COMPLETED, reversed(ended)))
        may_count = [attempt for attempt in after if attempt.trigger != Trigger.MANUAL and attempt.status in FAILED]
        assert session.breaker_failures <= len(may_count)
        assert (session.breaker_failed_at is None) == (session.breaker_failures == 0)


def _synthetic(compaction: Compaction):
    return [segment.payload for segment in plans.load_checkpoint(compaction).segments if segment.payload is not None]


def _made_progress(attempt: Compaction) -> None:
    """10: within the target where nobody asked; smaller than before where somebody did, unless it was forced."""
    if attempt.trigger == Trigger.MANUAL:
        assert attempt.force or attempt.tokens_after < attempt.tokens_before
    elif attempt.outcome == Outcome.COMMITTED:
        policy = msgspec.convert(attempt.policy["values"], Policy)
        assert attempt.tokens_after <= policy.target_tokens(int(attempt.evaluation["window"]))
    else:
        assert attempt.tokens_after < attempt.tokens_before
