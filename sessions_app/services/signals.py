"""Keeps on a session's row how full its context is, what fills it, and what a compaction would leave of it."""

import uuid
from collections.abc import Mapping

from django.db import transaction
from django.db.models import Q, Sum

from sessions_app import prepared
from sessions_app.engine import boundary, calibration, signal
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.policy import Policy, resolve, window_for
from sessions_app.engine.terms import Lineage, Role, SegmentKind
from sessions_app.models import Compaction, Entry, PolicyValue, Session, SessionKind
from sessions_app.selectors import cuts, measurements, plans
from sessions_app.selectors.entry_rows import readable_usage
from sessions_app.services import evaluations
from sessions_app.services.signal_columns import MEASUREMENTS_TRIED, Fold, Known, columns, fills, fold

_HELD_HERE = frozenset({SessionKind.INLINE, SessionKind.OWNED})
"""Kinds whose agent gets the view of this console, so that what is measured is measured of that."""


def refresh(session_id: uuid.UUID | str, *, added: Mapping[str, int] | None = None) -> None:
    """Derives signal, trigger, composition and what a compaction would leave, and stores them in one update.

    Call it in the transaction that changed the session's entries, checkpoints or policy. `added`: nothing changed but that
    entries were appended, of which it gives the tokens by what they fill; the others are not summed again.
    """
    with transaction.atomic(savepoint=False):
        # Locked first: two that refresh at once would each see what the other has not committed, and the later store the older.
        session = Session.objects.select_for_update(no_key=True).get(pk=session_id)
        context = plans.default_context(session)
        chain = _chain(session, context)
        checkpoint = chain[-1] if chain else None
        policy = plans.effective_policy(session)
        window = _window(session)
        composition = _composition(session, checkpoint) if added is None else _with_added(session.composition, added)
        measurement = _measurement(session, context, checkpoint)
        of_call = None if measurement and session.usage_reported and measurement.at == session.usage_reported["at"] else measurement
        known = _calibration(session, of_call, sum(composition.values()))
        now = signal.derive(measurement=measurement, view_tokens=sum(composition.values()), calibration=known)
        left = _fold(session, checkpoint, policy.policy, window, now, composition, known)
        told = columns(now, window, policy, composition, left, known)
        prepared.update(Session, session.pk, **told, **evaluations.watched(session.kind, told, policy.policy))


def _chain(session: Session, context: Lineage) -> tuple[Checkpoint, ...]:
    """The checkpoints in force; none where their plan is broken: whatever is written to the session must not fail with it."""
    try:
        return plans.load_chain(session, context)
    except plans.BrokenPlan:
        return ()


def store(session: Session, known: Known) -> None:
    """The same for a session that was imported just now and is known whole: nothing is read back."""
    # Most installations have set no policy at all, and that is told in a tenth of the time.
    policy = plans.effective_policy(session) if prepared.exists(PolicyValue) else resolve(())
    told = known.columns(policy, _window(session))
    prepared.save(session, **told, **evaluations.watched(session.kind, told, policy.policy))


def _window(session: Session) -> int:
    """Tokens: what somebody set, else what the agent's file says, else what is known of the model."""
    return session.window_override or session.window_reported or window_for(session.model)


def _with_added(composition: Mapping[str, int], added: Mapping[str, int]) -> dict[str, int]:
    """A view ends with an open range: what is appended stands in it."""
    return {name: tokens for name in (*composition, *added) if (tokens := composition.get(name, 0) + added.get(name, 0))}


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
    return held & ~Q(index__in=checkpoint.excluded) if checkpoint.excluded else held


def _measurement(session: Session, context: Lineage, checkpoint: Checkpoint | None) -> signal.Measurement | None:
    """What a provider counted last in this context, since its checkpoint was made."""
    since = _divider_index(session, context)
    if session.kind in _HELD_HERE:
        since = max(since, plans.overrides_of(session).since - 1)
    elif checkpoint and (checkpoint.generation or checkpoint.excluded) and context is Lineage.CONSOLE:
        return None  # the agent goes on with a context of its own; what it measures is not the view of this console
    told, since = _reported(session, since)
    rows = Entry.objects.filter(session_id=session.pk, usage__isnull=False, index__gt=since, off_branch=False).order_by("-index")
    for index, usage, at, key in rows.values_list("index", "usage", "timestamp", "message_key")[:MEASUREMENTS_TRIED]:
        measured = readable_usage(usage)
        if measured and (prompt := measured.prompt):
            first = _first_of_message(session, index, key, since)
            return signal.Measurement(prompt_tokens=prompt, appended_tokens=plans.tokens_between(session.pk, first, None), at=at)
    return told


def _reported(session: Session, since: int) -> tuple[signal.Measurement | None, int]:
    """What the agent itself said that its context holds, if that was after the entry `since`; and after which one a call says more."""
    told = session.usage_reported
    if not told or told["entries"] <= since:
        return None, since
    appended = plans.tokens_between(session.pk, told["entries"], None)
    return signal.Measurement(prompt_tokens=told["tokens"], appended_tokens=appended, at=told["at"]), told["entries"] - 1


def _calibration(session: Session, measurement: signal.Measurement | None, view_tokens: int) -> calibration.Calibration:
    """What the measured prompts say; what they can't, as it was said before."""
    known = plans.calibration_of(session)
    prompts = measurements.measured_prompts(session)
    # Which view a prompt was of is known in the context that is shown, and before the first checkpoint.
    base = 0 if prompts and prompts[-1].context == 0 else None
    if measurement and prompts:
        base = view_tokens - measurement.appended_tokens - prompts[-1].estimate
    return calibration.calibrate(prompts, base=base, known=known)


def _divider_index(session: Session, context: Lineage) -> int:
    active_id = session.active_agent_id if context is Lineage.AGENT else session.active_console_id
    divider = Compaction.objects.filter(pk=active_id).values_list("divider_index", flat=True).first() if active_id else None
    return -1 if divider is None else divider


def _first_of_message(session: Session, index: int, key: str, since: int) -> int:
    """The first row of the message that was measured: the prompt ends before it."""
    if not key:
        return index
    rows = Entry.objects.filter(session_id=session.pk, index__range=(max(since + 1, index - cuts.TAIL_STEP), index), message_key=key)
    first = rows.order_by("index").values_list("index", flat=True).first()
    return index if first is None else first


def _fold(
    session: Session,
    checkpoint: Checkpoint | None,
    policy: Policy,
    window: int,
    now: signal.Signal,
    composition: dict[str, int],
    known: calibration.Calibration,
) -> Fold:
    """About how many tokens a manual compaction would leave, or why there is nothing to fold."""
    after_system = cuts.after_system(session.pk)
    keep_tokens = boundary.keep_budget(policy, window, now.tokens, manual=True, calibration=known)
    try:
        chosen = cuts.manual_cut(session.pk, checkpoint, policy, keep_tokens)
    except plans.BrokenPlan:
        return Fold()  # no cut goes near an entry that can't be read; whatever is written must not fail with it
    system_tokens = plans.tokens_between(session.pk, 0, after_system - 1) if after_system else 0
    return fold(chosen, system_tokens, sum(composition.values()), now, policy, window, known)
