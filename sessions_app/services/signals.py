"""Keeps on a session's row how full its context is, what fills it, and what a compaction would leave of it."""

import uuid

import msgspec
from django.db.models import Max, Q, Sum

from sessions_app import prepared
from sessions_app.engine import boundary, signal
from sessions_app.engine.boundary import Boundary
from sessions_app.engine.entries import Checkpoint, Usage
from sessions_app.engine.plan import LEAST_BLOCK_TOKENS
from sessions_app.engine.policy import Policy, window_for
from sessions_app.engine.terms import Kind, Lineage, Role, SegmentKind, SkipReason
from sessions_app.models import Compaction, Entry, PolicyValue, Session, SessionKind
from sessions_app.selectors import plans
from sessions_app.services.signal_columns import MEASUREMENTS_TRIED, Fold, Known, columns, fills, fold

TAIL_STEP = 400
"""Entries of the first tail in which a cut is looked for; each further one is four times longer."""


def refresh(session_id: uuid.UUID | str) -> None:
    """Derives signal, trigger, composition and what a compaction would leave, and stores them in one update.

    Call it in the transaction that changed the session's entries, checkpoints or policy.
    """
    session = Session.objects.get(pk=session_id)
    context = plans.default_context(session)
    chain = plans.load_chain(session, context)
    checkpoint = chain[-1] if chain else None
    policy = plans.effective_policy(session).policy
    window = session.window_override or window_for(session.model)
    composition = _composition(session, checkpoint)
    now = signal.derive(measurement=_measurement(session, context, checkpoint), view_tokens=sum(composition.values()))
    left = _fold(session, checkpoint, policy, window, now, composition)
    prepared.update(Session, session.pk, **columns(now, window, policy, composition, left))


def store(session: Session, known: Known) -> None:
    """The same for a session that was imported just now and is known whole: nothing is read back."""
    # Most installations have set no policy at all, and that is told in a tenth of the time.
    policy = plans.effective_policy(session).policy if prepared.exists(PolicyValue) else Policy()
    prepared.update(Session, session.pk, **known.columns(policy, session.window_override or window_for(session.model)))


def _composition(session: Session, checkpoint: Checkpoint | None) -> dict[str, int]:
    """Estimated tokens of the view by what fills it; the values add up to the whole."""
    live = Entry.objects.filter(session_id=session.pk, off_branch=False).exclude(role=Role.NOTICE).filter(_held(checkpoint))
    filled = {"block": plans.synthetic_tokens(checkpoint)} if checkpoint else {}
    filled |= fills(live.order_by().values_list("role", "kind").annotate(Sum("tokens")))
    if checkpoint and checkpoint.cleared:
        saved = sum(filled.values()) - plans.view_tokens(session, checkpoint)
        filled["results"] = max(0, filled.get("results", 0) - saved)
    return {name: tokens for name, tokens in filled.items() if tokens}


def _held(checkpoint: Checkpoint | None) -> Q:
    """The entries that stand in a view, as a condition."""
    if checkpoint is None:
        return Q()
    held = Q(index__in=[segment.first for segment in checkpoint.segments if segment.kind is SegmentKind.ENTRY])
    for segment in checkpoint.segments:
        if segment.kind is SegmentKind.RANGE:
            held |= Q(index__gte=segment.first) if segment.last is None else Q(index__range=(segment.first, segment.last))
    return held


def _measurement(session: Session, context: Lineage, checkpoint: Checkpoint | None) -> signal.Measurement | None:
    """What a provider counted last in this context, since its checkpoint was made."""
    if checkpoint and context is Lineage.CONSOLE and session.kind != SessionKind.INLINE:
        return None  # the agent goes on with a context of its own; what it measures is not the view of this console
    since = _divider_index(session, context)
    measured = Entry.objects.filter(session_id=session.pk, usage__isnull=False, index__gt=since, off_branch=False).order_by("-index")
    for index, usage, at, key in measured.values_list("index", "usage", "timestamp", "message_key")[:MEASUREMENTS_TRIED]:
        prompt = msgspec.convert(usage, Usage).prompt
        if prompt:
            first = _first_of_message(session, index, key, since)
            return signal.Measurement(prompt_tokens=prompt, appended_tokens=plans.tokens_between(session.pk, first, None), at=at)
    return None


def _divider_index(session: Session, context: Lineage) -> int:
    active_id = session.active_agent_id if context is Lineage.AGENT else session.active_console_id
    divider = Compaction.objects.filter(pk=active_id).values_list("divider_index", flat=True).first() if active_id else None
    return -1 if divider is None else divider


def _first_of_message(session: Session, index: int, key: str, since: int) -> int:
    """The first row of the message that was measured: the prompt ends before it."""
    if not key:
        return index
    rows = Entry.objects.filter(session_id=session.pk, index__range=(max(since + 1, index - TAIL_STEP), index), message_key=key)
    first = rows.order_by("index").values_list("index", flat=True).first()
    return index if first is None else first


def _fold(
    session: Session, checkpoint: Checkpoint | None, policy: Policy, window: int, now: signal.Signal, composition: dict[str, int]
) -> Fold:
    """About how many tokens a manual compaction would leave, or why there is nothing to fold."""
    after_system = _after_system(session)
    start = checkpoint.boundary_index if checkpoint else after_system
    chosen = _choose_in_tail(session, start, policy, boundary.keep_budget(policy, window, now.tokens, manual=True))
    system_tokens = plans.tokens_between(session.pk, 0, after_system - 1) if after_system else 0
    return fold(chosen, system_tokens, sum(composition.values()), now, policy, window)


def _choose_in_tail(session: Session, start: int, policy: Policy, keep_tokens: int) -> Boundary | SkipReason:
    """The cut of a manual compaction, looked for in a tail that grows until it holds one or is the whole view."""
    newest = Entry.objects.filter(session_id=session.pk).aggregate(newest=Max("index"))["newest"]
    if newest is None:
        return SkipReason.EMPTY_SESSION
    length = TAIL_STEP
    while True:
        first = max(start, newest + 1 - length)
        is_whole = first == start
        if not is_whole and plans.tokens_between(session.pk, first, None) <= keep_tokens:
            length *= 4
            continue
        chosen = boundary.choose(
            plans.load_shapes(session.pk, first),
            keep_tokens=keep_tokens,
            floor_tokens=LEAST_BLOCK_TOKENS if is_whole else 0,
            protected_messages=policy.protected_messages,
            midway=not is_whole,
        )
        if isinstance(chosen, Boundary) and not is_whole and not chosen.starts_turn and not chosen.carried:
            return _with_request(session, chosen, start)
        if isinstance(chosen, Boundary) or is_whole:
            return chosen
        length *= 4


def _with_request(session: Session, chosen: Boundary, start: int) -> Boundary:
    """The cut with the user message of its turn, which lies before the tail."""
    turns = Entry.objects.filter(session_id=session.pk, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    request = turns.filter(index__range=(start, chosen.index - 1)).order_by("-index").values_list("index", "tokens").first()
    if request is None:
        return chosen
    return msgspec.structs.replace(chosen, carried=(request[0],), kept_tokens=chosen.kept_tokens + request[1])


def _after_system(session: Session) -> int:
    """Index after the leading system entries: they are never folded."""
    other = Entry.objects.filter(session_id=session.pk).exclude(role__in=[Role.SYSTEM, Role.NOTICE]).order_by("index")
    return other.values_list("index", flat=True).first() or 0
