"""A recorded session under two or more policies, side by side. Reads, and stores nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.replay import Replay, Replayed, replay
from sessions_app.engine.summarising import Load
from sessions_app.models import Session
from sessions_app.providers.registry import summarisers_for
from sessions_app.selectors import plans

MAX_HELD = 20_000
"""Entries that are held at once."""


@dataclass(frozen=True)
class NamedPolicy:
    """A policy with the name that its column bears."""

    name: str
    policy: Policy


@dataclass(frozen=True)
class ReplayedPolicy:
    """What a policy would have come to."""

    name: str
    policy: Policy
    trigger_tokens: int
    replay: Replay


def current_policy(session: Session, name: str = "current") -> NamedPolicy:
    """The policy in force."""
    return NamedPolicy(name, plans.effective_policy(session).policy)


def replayed_policies(
    session: Session,
    policies: Sequence[NamedPolicy],
    *,
    window: int | None = None,
    ask_models: bool = False,
    on_compaction: Callable[[str, Replayed], None] = lambda _name, _made: None,
) -> list[ReplayedPolicy]:
    """The session's whole history under each policy, as if nothing had ever been compacted.

    Summaries are made without a model, unless `ask_models`: then each policy's own summarisers are asked. `window`: instead
    of the session's.
    """
    shapes = plans.load_shapes(session.pk)
    load = _loader(session)
    size = window or session.window
    told = []
    for one in policies:
        policy = one.policy if ask_models else msgspec.structs.replace(one.policy, summarisers=(ExtractiveSummariser.name,))
        came_to = replay(
            shapes,
            load,
            policy=policy,
            window=size,
            summarisers=summarisers_for(policy),
            on_compaction=lambda made, name=one.name: on_compaction(name, made),  # type: ignore[misc]
        )
        told.append(ReplayedPolicy(one.name, policy, policy.trigger_tokens(size), came_to))
    return told


def _loader(session: Session) -> Load:
    """Every compaction reads the history from its start: one that is not too long is read from the store once."""
    if session.entry_count > MAX_HELD:
        return lambda first, last: plans.load_entries(session.pk, first, last)
    held = list(plans.load_entries(session.pk))
    return lambda first, last: iter(held[first : last + 1])
