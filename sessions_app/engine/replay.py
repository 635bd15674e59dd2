"""A recorded history once more under another policy: which compactions there would have been, and what each request would have held.

Nothing is stored and nobody is asked but the summarisers that are given. Sizes are the stored estimates of a view's entries.
"""

from collections.abc import Callable, Sequence

import msgspec

from sessions_app.engine.attempt import Task
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.library import checkpoint_of, to_its_end
from sessions_app.engine.policy import Policy
from sessions_app.engine.probes import Probe, probe
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import Commit, Summariser
from sessions_app.engine.summarising import Load, Reading
from sessions_app.engine.terms import CoverageStatus, Outcome, Role, Rung, SegmentKind, Trigger

LEAST_GROWTH = 0.05
"""Of the trigger: by so much a view must grow after an attempt that came to nothing before there is another one."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction that there would have been. `at`: the entry that would have come next."""

    at: int
    trigger: Trigger
    outcome: Outcome
    rung: Rung
    boundary_index: int
    tokens_before: int
    tokens_after: int
    summary_tokens: int
    coverage_status: CoverageStatus


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A whole history under one policy. All sizes are estimated tokens of views; a request is one answer of the assistant."""

    compactions: tuple[Replayed, ...] = ()
    requests: int = 0
    tokens_sent: int = 0  # of all requests together
    peak: int = 0  # of the largest request
    final: int = 0  # of the view at the end
    too_large: int = 0  # requests that the window would not have held
    not_possible: int = 0  # attempts that came to nothing
    facts: int = 0  # of everything that the last checkpoint folded
    facts_in_view: int = 0
    facts_by_summary: int = 0  # of these, in the summary itself
    probes: tuple[Probe, ...] = ()  # questions about what was folded, put to the view at the end

    @property
    def summary_tokens(self) -> int:
        """Of all summaries together: what writing them would have cost in output."""
        return sum(one.summary_tokens for one in self.compactions)

    @property
    def retained(self) -> float | None:
        """The share of facts that the final view still holds; None where nothing was folded."""
        return self.facts_in_view / self.facts if self.facts else None

    @property
    def probe_score(self) -> float | None:
        """The share of questions whose answer the final view holds; None where nothing was folded."""
        return sum(one.found for one in self.probes) / len(self.probes) if self.probes else None


def replay(
    shapes: Sequence[EntryShape],
    load: Load,
    *,
    policy: Policy,
    window: int,
    summarisers: Sequence[Summariser],
    on_compaction: Callable[[Replayed], None] = lambda _: None,
) -> Replay:
    """Walks the history once. An attempt is made before a turn whose view reaches the trigger, and before any request that the
    window would not hold; each costs one pass over the entries before it."""
    walk = _Walk(shapes, load, policy, window, summarisers, on_compaction)
    answer_of = ""  # message that is being answered: its further rows are no further request
    is_answering = False
    for position, shape in enumerate(shapes):
        if shape.is_sent and shape.is_user_message:
            walk.begin_turn()
        is_assistant = shape.is_sent and shape.role is Role.ASSISTANT
        if is_assistant and not (is_answering and (not shape.message_key or shape.message_key == answer_of)):
            walk.request(position)
        if shape.is_sent:
            is_answering, answer_of = is_assistant, shape.message_key if is_assistant else ""
            walk.add(shape)
    return walk.result()


class _Walk:
    def __init__(
        self,
        shapes: Sequence[EntryShape],
        load: Load,
        policy: Policy,
        window: int,
        summarisers: Sequence[Summariser],
        on_compaction: Callable[[Replayed], None],
    ) -> None:
        self._shapes, self._load, self._policy, self._window, self._summarisers = shapes, load, policy, window, summarisers
        self._on_compaction = on_compaction
        self._trigger_tokens = policy.trigger_tokens(window)
        self._held = 0
        self._chain: list[Checkpoint] = []
        self._last: Commit | None = None
        self._folded: Commit | None = None  # the last one that made a block
        self._in_vain = -1  # size of the view when an attempt last came to nothing
        self._is_due = False
        self._made: list[Replayed] = []
        self._requests = self._sent = self._peak = self._too_large = self._not_possible = 0

    def begin_turn(self) -> None:
        self._is_due = self._policy.enabled

    def request(self, position: int) -> None:
        """What the assistant's next answer would have been asked with."""
        if self._is_due and self._held >= self._trigger_tokens:
            self._attempt(position, Trigger.THRESHOLD)
        self._is_due = False
        if self._held > self._window and self._policy.enabled:
            self._attempt(position, Trigger.OVERFLOW)
        self._requests += 1
        self._sent += self._held
        self._peak = max(self._peak, self._held)
        self._too_large += self._held > self._window

    def add(self, shape: EntryShape) -> None:
        self._held += shape.tokens

    def _attempt(self, position: int, trigger: Trigger) -> None:
        if self._in_vain >= 0 and self._held < self._in_vain + LEAST_GROWTH * self._trigger_tokens:
            return
        before = self._held
        result = to_its_end(
            Task(
                shapes=self._shapes[:position],
                load=self._load,
                chain=tuple(self._chain),
                policy=self._policy,
                window=self._window,
                signal_tokens=before,
                summarisers=self._summarisers,
                previous_summary=self._last.summary if self._last else "",
                trigger=trigger,
            )
        )
        if not isinstance(result, Commit):
            self._in_vain = before
            self._not_possible += 1
            return
        self._in_vain = -1
        self._chain.append(checkpoint_of(result, len(self._chain) + 1))
        self._last = result
        self._folded = result if result.entries_folded else self._folded
        self._held = result.tokens_after
        self._made.append(_replayed(result, self._shapes[position].index, trigger))
        self._on_compaction(self._made[-1])

    def result(self) -> Replay:
        facts = in_view = by_summary = 0
        if self._folded is not None:
            for count in (self._folded.retention.total, self._folded.retention.earlier):
                facts, in_view, by_summary = facts + count.total, in_view + count.in_view, by_summary + count.by_summary
        return Replay(
            compactions=tuple(self._made),
            requests=self._requests,
            tokens_sent=self._sent,
            peak=self._peak,
            final=self._held,
            too_large=self._too_large,
            not_possible=self._not_possible,
            facts=facts,
            facts_in_view=in_view,
            facts_by_summary=by_summary,
            probes=self._probes(),
        )

    def _probes(self) -> tuple[Probe, ...]:
        """Asks about all that was folded, of the view at the end. One more pass over the history."""
        folded, last = self._folded, self._last
        if folded is None or last is None:
            return ()
        reading = Reading(self._load, len(self._shapes), lambda: None)
        reading.state_before(folded.boundary_index)
        carried = [segment.first for segment in last.segments if segment.kind is SegmentKind.ENTRY and segment.first is not None]
        cleared = frozenset(last.cleared)
        stands = (
            part.text
            for entry in reading.tail(carried, folded.boundary_index)
            if entry.is_sendable and not entry.off_branch and entry.index not in cleared
            for part in entry.parts
        )
        return probe(reading.facts(), (folded.block, *stands))


def _replayed(made: Commit, at: int, trigger: Trigger) -> Replayed:
    return Replayed(
        at=at,
        trigger=trigger,
        outcome=made.outcome,
        rung=made.rungs[-1].rung if made.rungs else Rung.SUMMARISE,
        boundary_index=made.boundary_index,
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_after,
        summary_tokens=estimate_text(made.summary) if made.entries_folded else 0,
        coverage_status=made.coverage_status,
    )
