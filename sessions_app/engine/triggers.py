"""Whether a compaction is due, and why or why not: one explained verdict for each evaluation."""

from enum import StrEnum

import msgspec

from sessions_app.engine.policy import Policy
from sessions_app.engine.signal import Signal
from sessions_app.engine.terms import Origin, Trigger


class Reason(StrEnum):
    """Why an evaluation came out as it did."""

    OVER_TRIGGER = "over_trigger"
    OVER_PREFLIGHT = "over_preflight"
    UNDER_TRIGGER = "under_trigger"
    DISABLED = "disabled"
    CIRCUIT_OPEN = "durable_compaction_circuit_open"
    UPGRADE_DISABLED = "upgrade_disabled"
    NOT_AN_UPGRADE = "not_an_upgrade"
    NOT_ROUTED = "not_routed"
    BACKGROUND_SESSION = "background_session"
    NO_CAPACITY = "no_capacity"
    ALREADY_ATTEMPTED = "already_attempted_this_turn"
    DRAFT_WAITS = "draft_waits"
    IN_VAIN = "same_attempt_came_to_nothing"
    NO_ENTRIES = "no_entries"
    WITHIN_BUDGET = "within_compaction_budget"
    ALL_PROTECTED = "protected_tail_exhausts_compaction_window"
    REQUEST_TOO_LARGE = "current_request_too_large"
    NOT_OURS = "not_ours"
    OVERFLOWED = "overflowed"
    VIEW_FITS = "view_fits"
    VIEW_TOO_LARGE = "view_too_large"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation found. `limit` is the number of tokens that `tokens` was compared with."""

    trigger: Trigger
    fires: bool
    reason: Reason
    tokens: int = 0
    origin: Origin = Origin.ESTIMATED
    limit: int = 0
    window: int = 0
    note: str = ""  # more of the reason, in whole sentences

    @property
    def circuit_open(self) -> bool:
        """Whether it would have fired, had the last attempts not failed."""
        return self.reason is Reason.CIRCUIT_OPEN

    @property
    def explanation(self) -> str:
        """The verdict in one sentence."""
        said = _SENTENCES[self.reason].format(tokens=self.tokens, limit=self.limit, window=self.window, origin=self.origin.value)
        return f"{said} {self.note}" if self.note else said


_SENTENCES = {
    Reason.OVER_TRIGGER: "It fired: {tokens:,} tokens ({origin}) have reached the trigger of {limit:,}.",
    Reason.OVER_PREFLIGHT: "It fired: nothing was measured since the boundary, and the estimate of {tokens:,} tokens is over {limit:,}.",
    Reason.UNDER_TRIGGER: "It did not fire: {tokens:,} tokens ({origin}) are under the trigger of {limit:,}.",
    Reason.DISABLED: "It did not fire: automatic compaction is switched off for this session.",
    Reason.CIRCUIT_OPEN: "It did not fire: the last attempts failed, so automatic compaction rests for a while.",
    Reason.UPGRADE_DISABLED: "It did not fire: the policy does not compact when a session moves to the highest tier.",
    Reason.NOT_AN_UPGRADE: "It did not fire: the session did not move up to the highest tier.",
    Reason.NOT_ROUTED: "It did not fire: the router only watched, and changed nothing.",
    Reason.BACKGROUND_SESSION: "It did not fire: sub-agents and scheduled runs are not compacted on a change of tier.",
    Reason.NO_CAPACITY: "It did not fire: the request leaves no room for any history.",
    Reason.ALREADY_ATTEMPTED: "It did not fire: this turn has tried to compact already.",
    Reason.DRAFT_WAITS: "It did not fire: the draft of a compaction waits to be reviewed.",
    Reason.IN_VAIN: "It did not fire: the same compaction came to nothing before, and nothing that it depends on has changed since.",
    Reason.NO_ENTRIES: "It did not fire: there is no history yet.",
    Reason.WITHIN_BUDGET: "It did not fire: the history of {tokens:,} tokens fits into {limit:,} with its margin.",
    Reason.ALL_PROTECTED: "It did not fire: everything is protected, so there is nothing to fold.",
    Reason.REQUEST_TOO_LARGE: "It did not fire: the present request alone has {tokens:,} tokens, more than fit into {limit:,}.",
    Reason.NOT_OURS: (
        "It did not fire: {tokens:,} tokens ({origin}) have reached the trigger of {limit:,}, but the agent keeps this context, "
        "and nothing here compacts it by itself."
    ),
    Reason.OVERFLOWED: "It fired: the provider refused the request as too long; {tokens:,} tokens ({origin}) was what the view held.",
    Reason.VIEW_FITS: "It did not fire: the view of {tokens:,} tokens fits the new model, which takes {limit:,}.",
    Reason.VIEW_TOO_LARGE: "It fired: the view of {tokens:,} tokens does not fit the new model, which takes {limit:,}.",
}


def before_turn(
    *,
    signal: Signal,
    policy: Policy,
    window: int,
    circuit_open: bool = False,
    attempted: bool = False,
    draft_waits: bool = False,
    ours: bool = True,
) -> Verdict:
    """Whether a turn has to be preceded by a compaction.

    The trigger is inclusive. Where nothing was measured since the boundary, an estimate over `preflight_ratio` of the
    window fires as well, also when the trigger lies above that. `attempted`: this turn has tried to compact before;
    `draft_waits`: a person has still to decide about what an earlier one made;
    `ours`: the console holds the context itself. An agent's own is only watched.
    """
    limit = policy.trigger_tokens(window)
    verdict = Verdict(
        trigger=Trigger.THRESHOLD,
        fires=False,
        reason=Reason.UNDER_TRIGGER if policy.enabled else Reason.DISABLED,
        tokens=signal.tokens,
        origin=signal.origin,
        limit=limit,
        window=window,
    )
    preflight = int(policy.preflight_ratio * window)
    if not policy.enabled:
        return verdict
    if signal.tokens >= limit:
        verdict = msgspec.structs.replace(verdict, fires=True, reason=Reason.OVER_TRIGGER)
    elif signal.measured is None and signal.tokens > preflight:
        verdict = msgspec.structs.replace(verdict, trigger=Trigger.PREFLIGHT, fires=True, reason=Reason.OVER_PREFLIGHT, limit=preflight)
    obstacles = (
        (not ours, Reason.NOT_OURS),
        (attempted, Reason.ALREADY_ATTEMPTED),
        (draft_waits, Reason.DRAFT_WAITS),
        (circuit_open, Reason.CIRCUIT_OPEN),
    )
    return _unless(verdict, obstacles) if verdict.fires else verdict


def in_vain(verdict: Verdict, note: str) -> Verdict:
    """A verdict that would fire, where the same attempt came to nothing and would again. `note` says of which, and why."""
    return msgspec.structs.replace(verdict, fires=False, reason=Reason.IN_VAIN, note=note)


def overflow(*, signal: Signal, policy: Policy, window: int, circuit_open: bool = False, attempted: bool = False) -> Verdict:
    """Whether a request that its provider refused as too long may be tried once more, over a shorter view."""
    verdict = Verdict(
        trigger=Trigger.OVERFLOW,
        fires=True,
        reason=Reason.OVERFLOWED,
        tokens=signal.tokens,
        origin=signal.origin,
        limit=policy.trigger_tokens(window),
        window=window,
    )
    return _unless(
        verdict, ((not policy.enabled, Reason.DISABLED), (attempted, Reason.ALREADY_ATTEMPTED), (circuit_open, Reason.CIRCUIT_OPEN))
    )


def _unless(verdict: Verdict, obstacles: tuple[tuple[bool, Reason], ...]) -> Verdict:
    """The verdict, or the first of what keeps it from firing."""
    reason = next((reason for applies, reason in obstacles if applies), None)
    return verdict if reason is None else msgspec.structs.replace(verdict, fires=False, reason=reason)


def model_switch(
    *, view_tokens: int, new_window: int, policy: Policy, origin: Origin = Origin.ESTIMATED, circuit_open: bool = False
) -> Verdict:
    """Whether the view has to be compacted before a session goes over to a model with `new_window`."""
    limit = policy.trigger_tokens(new_window)
    fires = view_tokens >= limit
    reason = Reason.VIEW_TOO_LARGE if fires else Reason.VIEW_FITS
    verdict = Verdict(
        trigger=Trigger.MODEL_SWITCH, fires=fires, reason=reason, tokens=view_tokens, origin=origin, limit=limit, window=new_window
    )
    obstacles = ((not policy.enabled, Reason.DISABLED), (circuit_open, Reason.CIRCUIT_OPEN))
    return _unless(verdict, obstacles) if fires else verdict


class TierResult(StrEnum):
    """What became of a change of tier."""

    NOT_APPLICABLE = "not_applicable"
    HANDLED = "handled"
    COMPACT_FAILED = "compact_failed"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """What a router reports of a turn. Tiers run from `c0` to `c3`; `t0` to `t3` mean the same."""

    routed_tier: str
    previous_tier: str = ""
    base_tier: str = ""
    final_tier: str = ""
    routing_applied: bool = True


HIGHEST_TIER = "c3"
LOWER_TIERS = ("c0", "c1", "c2")


def tier_of(name: str) -> str:
    """The tier's own name, or an empty text for what is none."""
    tier = f"c{name[1:]}" if name[:1] in {"t", "c"} else ""
    return tier if tier in (*LOWER_TIERS, HIGHEST_TIER) else ""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens at the moment of a change of tier. `durable`: history and block, without what is protected."""

    window: int  # what the request leaves for history
    durable: int
    active_request: int = 0  # the user's message that is being answered
    entries: int = 0
    protected_entries: int = 0  # the active request and everything after it
    is_background: bool = False  # a sub-agent or a scheduled run
    attempted_this_turn: bool = False
    circuit_open: bool = False


def tier_upgrade(route: Route, capacity: Capacity, policy: Policy) -> tuple[TierResult | None, Verdict]:
    """What a change of tier asks for. A result of None: a compaction is due, and its end decides.

    The first rule that applies decides; the order is that of the contract (see docs/decisions). The margin of the
    policy multiplies the history, for both estimates of a request that nothing has measured yet.
    """
    reason = _not_applicable(route, capacity, policy)
    if reason is not None:
        return TierResult.NOT_APPLICABLE, _tier_verdict(reason, capacity, capacity.durable)
    with_margin = int(capacity.durable * policy.safety_margin)
    request = int(capacity.active_request * policy.safety_margin)
    rules = (
        (capacity.window <= 0, Reason.NO_CAPACITY, 0),
        (capacity.attempted_this_turn, Reason.ALREADY_ATTEMPTED, with_margin),
        (not capacity.entries, Reason.NO_ENTRIES, 0),
        (with_margin <= capacity.window, Reason.WITHIN_BUDGET, with_margin),
        (capacity.protected_entries >= capacity.entries, Reason.ALL_PROTECTED, with_margin),
        (request > capacity.window, Reason.REQUEST_TOO_LARGE, request),
        (capacity.circuit_open, Reason.CIRCUIT_OPEN, with_margin),
    )
    for applies, why, tokens in rules:
        if applies:
            return TierResult.HANDLED, _tier_verdict(why, capacity, tokens)
    return None, _tier_verdict(Reason.OVER_TRIGGER, capacity, with_margin)


def _not_applicable(route: Route, capacity: Capacity, policy: Policy) -> Reason | None:
    if not policy.tier_upgrade_enabled:
        return Reason.UPGRADE_DISABLED
    if tier_of(route.routed_tier) != HIGHEST_TIER:
        return Reason.NOT_AN_UPGRADE
    if not route.routing_applied:
        return Reason.NOT_ROUTED
    previous = tier_of(route.previous_tier)
    if not previous and tier_of(route.final_tier) == HIGHEST_TIER:
        previous = tier_of(route.base_tier)
    if previous not in LOWER_TIERS:
        return Reason.NOT_AN_UPGRADE
    return Reason.BACKGROUND_SESSION if capacity.is_background else None


def _tier_verdict(reason: Reason, capacity: Capacity, tokens: int) -> Verdict:
    return Verdict(
        trigger=Trigger.TIER_UPGRADE,
        fires=reason is Reason.OVER_TRIGGER,
        reason=reason,
        tokens=tokens,
        limit=max(capacity.window, 0),
        window=max(capacity.window, 0),
    )
