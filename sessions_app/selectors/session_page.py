"""The head of a session's page: who and what it is, how full its context is, and what can be done about it."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from sessions_app.engine.terms import Scope, SkipReason, Status
from sessions_app.models import Compaction, Session, SessionKind, SessionRelation, SessionStatus
from sessions_app.selectors.agents import agent_name
from sessions_app.selectors.followed import session_cursor
from sessions_app.selectors.runners import RunnerLine, runner_line
from sessions_app.selectors.verdicts import Evaluation, Resting, awaited, evaluation_of, resting_of

WHOSE_CONTEXT = {
    SessionKind.IMPORTED: "imported: compacting changes this console's view only",
    SessionKind.OBSERVED: "observed: compacting changes this console's view only",
    SessionKind.INLINE: "inline: compacting changes the agent's real context",
    SessionKind.OWNED: "owned: compacting changes the agent's real context",
    SessionKind.JOINED: "joined: compacting changes the agent's real context",
}
UNFOLDABLE = {
    SkipReason.EMPTY_SESSION: "no entries yet",
    SkipReason.FEWER_THAN_THREE_ROUNDS: "fewer than three rounds",
    SkipReason.NO_LEGAL_BOUNDARY: "a call is still open",
    SkipReason.NOTHING_TO_FOLD: "nothing to fold yet",
    SkipReason.WOULD_NOT_SHRINK: "it would not shrink",
    SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET: "what must stay fills it",
}
BUSY_WORDS = {SessionStatus.WORKING: "agent is working", SessionStatus.WAITING: "waiting for approval"}
_FILLS = {"system": "system", "block": "block", "results": "tools", "calls": "tools"}
"""Which colour a part of the composition has; what is not named is text."""

_FILL_WORDS = {"system": "system", "block": "block", "tools": "calls and results", "text": "text"}


LEFT_TO_US = 204
"""What a runner answers that has no way of its own."""

MOST_KIN = 20
"""Copies of a session that its page names."""

_KIN_WORDS = {SessionRelation.FORK: ("fork of", "forked as"), SessionRelation.CONTINUATION: ("continues", "continued in")}


@dataclass(frozen=True)
class Kin:
    """A session that this one was copied from or goes on from, or the other way round; `words` stand before its title."""

    id: uuid.UUID
    title: str
    words: str


@dataclass(frozen=True)
class GaugeSegment:
    """A stretch of the bar: `x` and `width` are per cent of the context window."""

    name: str
    fill: str
    tokens: int | None
    x: float
    width: float


@dataclass(frozen=True)
class Gauge:
    """How full the context is. `tokens` is None when nothing is known; `after` is what the open attempt expects to leave."""

    tokens: int | None
    window: int
    is_window_reported: bool  # by the agent
    share: float
    trigger_tokens: int
    trigger_share: float
    trigger_source: str  # where the value that decides it was set
    segments: tuple[GaugeSegment, ...]
    free: int
    origin: str
    scope: str
    measured_at: str
    appended: int
    factor: float  # measured tokens for each estimated one
    overhead: int  # tokens of what no entry holds
    calibrated_by: int  # measured prompts; 0: estimates stand as they are
    awaits_measurement: bool
    expected_after: int | None
    expected_width: float
    label_inside: bool

    @property
    def trigger_percent(self) -> float:
        """Where the trigger's tick stands on the bar, in per cent."""
        return round(100 * self.trigger_share, 2)


@dataclass(frozen=True)
class CompactButton:
    """One of four states: `ready`, `busy`, `unsupported`, `running`. Nothing here depends on who looks."""

    state: str
    label: str
    why: str
    before: int | None = None
    after: int | None = None
    since: datetime | None = None
    progress: int | None = None


@dataclass(frozen=True)
class SessionHeader:
    """What stands above the tabs."""

    id: uuid.UUID
    title: str
    project: str  # its name; empty for a session of none
    project_id: uuid.UUID | None
    status: str
    agent: str
    agent_version: str
    model: str
    kind: str
    whose_context: str
    entry_count: int
    compaction_count: int
    attempt_count: int
    event_count: int
    warning_count: int
    failure_count: int
    labels: tuple[str, ...]
    started_at: datetime | None
    branch: str
    goal: str  # that somebody set; empty: it is what the messages tell
    parent_id: uuid.UUID | None  # of a sub-agent
    parent_title: str
    inherited_count: int  # entries that are copies
    is_origin_known: bool  # the session that they were copied from is stored: what they cost is counted there
    gauge: Gauge
    button: CompactButton
    evaluation: Evaluation | None
    evaluation_awaited: str
    resting: Resting
    runner: RunnerLine | None = None


def header(session_id: uuid.UUID | str) -> SessionHeader:
    """The head of a page, read afresh; three queries, and two where it has a runner. Raises `Session.DoesNotExist`."""
    # The cursor first: what is read after it can only be newer, so that no event is missed between page and socket.
    seq = session_cursor(session_id)
    return header_of(Session.objects.select_related("project", "parent", "running").get(pk=session_id), seq)


def header_of(session: Session, seq: int) -> SessionHeader:
    """The head of a page from a row with its `project`, `parent` and `running`; no query, but two where it has a runner."""
    runner = runner_line(session)
    running = session.running if session.running and session.running.is_open else None
    parent = session.parent if session.relation == SessionRelation.SUB_AGENT else None
    return SessionHeader(
        id=session.pk,
        title=session.title,
        project=session.project.name if session.project else "",
        project_id=session.project_id,
        status=session.status,
        agent=agent_name(session.agent),
        agent_version=session.agent_version,
        model=session.model,
        kind=session.kind,
        whose_context=_whose_context(session, runner),
        entry_count=session.entry_count,
        compaction_count=session.compaction_count,
        attempt_count=session.last_attempt,
        event_count=seq,
        warning_count=session.warning_count,
        failure_count=session.failure_count,
        labels=tuple(session.labels),
        started_at=session.started_at,
        branch=session.branch,
        goal=session.goal,
        parent_id=parent.pk if parent else None,
        parent_title=parent.title if parent else "",
        inherited_count=session.inherited_count,
        is_origin_known=session.parent_id is not None,
        gauge=_gauge(session, running),
        button=_button(session, running, runner),
        runner=runner,
        evaluation=evaluation_of(session),
        evaluation_awaited=awaited(session),
        resting=resting_of(session),
    )


def kin_of(session: Session) -> tuple[Kin, ...]:
    """Where a session (with its `parent`) is from, and what became of it in other files; one query."""
    found = []
    if session.parent and session.relation in _KIN_WORDS:
        found.append(Kin(session.parent.pk, session.parent.title, _KIN_WORDS[SessionRelation(session.relation)][0]))
    copies = Session.objects.filter(copied_from=session.source_key, parent=session.pk, relation__in=_KIN_WORDS)
    told = copies.order_by("started_at").values_list("pk", "title", "relation")[:MOST_KIN]
    found += [Kin(pk, title, _KIN_WORDS[SessionRelation(kind)][1]) for pk, title, kind in told]
    return tuple(found)


def current_chunk(compaction: Compaction) -> int:
    """Number of the chunk that is being summarised, from 1."""
    return min(compaction.chunk_index + 1, compaction.chunk_count)


def percent_done(compaction: Compaction) -> int:
    """How far an open attempt is, in per cent of the chunks it will summarise; never 100 before its end."""
    if not compaction.chunk_count:
        return 3
    return min(97, round(100 * compaction.chunk_index / compaction.chunk_count))


def _gauge(session: Session, running: Compaction | None) -> Gauge:
    window = max(session.window, 1)
    tokens = session.signal_tokens
    share = (tokens or 0) / window
    checkpoint = session.active_console_id or session.active_agent_id
    is_at_runner = running is not None and running.forwarded_at is not None and running.runner_answer != LEFT_TO_US
    expected = session.foldable_to if running and not is_at_runner else None
    return Gauge(
        tokens=tokens,
        window=session.window,
        is_window_reported=session.window_reported == session.window and not session.window_override,
        share=share,
        trigger_tokens=session.trigger_tokens,
        trigger_share=min(1.0, session.trigger_tokens / window),
        trigger_source=session.trigger_source,
        segments=_segments(session.composition, tokens or 0, window, is_whole=session.signal_scope == Scope.WHOLE_REQUEST),
        free=max(0, session.window - (tokens or 0)),
        origin=session.signal_origin,
        scope=session.signal_scope,
        measured_at=session.signal_measured_at,
        appended=session.signal_appended,
        factor=round(session.calibration_factor, 2),
        overhead=session.calibration_overhead,
        calibrated_by=session.calibration_prompts,
        awaits_measurement=bool(checkpoint) and session.signal_measured is None,
        expected_after=expected,
        expected_width=round(100 * min(1.0, (expected or 0) / window), 2),
        label_inside=session.trigger_tokens / window <= 0.86,
    )


def _segments(composition: dict[str, int], tokens: int, window: int, *, is_whole: bool) -> tuple[GaugeSegment, ...]:
    """The parts of the context to scale, by their estimates; together never longer than the signal.

    A whole request holds what no entry does (tool schemas, a system prompt that its source leaves out). That rest is
    drawn without a number: it would be a measured number less an estimated one.
    """
    amounts = dict.fromkeys(_FILL_WORDS, 0)
    for name, amount in composition.items():
        amounts[_FILLS.get(name, "text")] += amount
    total = sum(amounts.values())
    scale = 100 * min(1.0, tokens / total if total else 0) / window
    parts: list[tuple[str, str, int | None, float]] = [
        (_FILL_WORDS[fill], fill, amount, amount * scale) for fill, amount in amounts.items() if amount
    ]
    if is_whole and tokens > total:
        parts.insert(0, ("not in the source: tools, system prompt", "system", None, 100 * (tokens - total) / window))
    segments: list[GaugeSegment] = []
    x = 0.0
    for name, kind, size, width in parts:
        shown = min(width, 100 - x)
        segments.append(GaugeSegment(name, kind, size, round(x, 2), round(max(0.1, shown - 0.15), 2)))
        x += shown
    return tuple(segments)


def _whose_context(session: Session, runner: RunnerLine | None) -> str:
    if runner is not None:
        return f"{session.kind}: the runner {runner.name} is asked first, and what it compacts is the agent's real context"
    return WHOSE_CONTEXT[SessionKind(session.kind)]


def _button(session: Session, running: Compaction | None, runner: RunnerLine | None) -> CompactButton:
    if running:
        return _running_button(running)
    if runner is not None and runner.undecided:
        return CompactButton("unsupported", "Cannot compact", "its outcome is not known")
    is_foldable = not session.unfoldable_reason and session.foldable_to is not None
    if runner is not None and not is_foldable and not session.is_busy:
        return CompactButton("ready", "Compact", f"asks {runner.name}")
    if session.unfoldable_reason or session.foldable_to is None:
        why = (
            UNFOLDABLE.get(SkipReason(session.unfoldable_reason), "nothing to fold yet") if session.unfoldable_reason else "not counted yet"
        )
        return CompactButton("unsupported", "Cannot compact", why)
    if session.is_busy:
        return CompactButton("busy", "Compact after the turn", BUSY_WORDS[SessionStatus(session.status)])
    return CompactButton("ready", "Compact", "", before=session.signal_tokens, after=session.foldable_to)


def _running_button(running: Compaction) -> CompactButton:
    if running.status == Status.WAITING_FOR_IDLE:
        return CompactButton("running", "Waiting for the turn", "then it compacts", since=running.requested_at, progress=0)
    label = f"Compacting, {current_chunk(running)} of {running.chunk_count}" if running.chunk_count else "Compacting"
    since = running.started_at or running.requested_at
    return CompactButton("running", label, "show progress", since=since, progress=percent_done(running))
