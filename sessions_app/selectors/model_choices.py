"""The models that a session can go over to, and what each would come to."""

from dataclasses import dataclass

from sessions_app.engine import triggers
from sessions_app.engine.policy import Policy, window_for
from sessions_app.engine.terms import Origin
from sessions_app.engine.triggers import Reason, Verdict
from sessions_app.models import Session
from sessions_app.providers.turn_models import parse_model, suggestions
from sessions_app.selectors import plans
from sessions_app.selectors.verdicts import resting_of

WORDS = {
    "fits": "the view fits",
    "compacts": "the view is compacted first",
    "refused": "the view does not fit, and automatic compaction is off or rests",
}


@dataclass(frozen=True)
class ModelChoice:
    """One model that can be asked here. `outcome` is a key of `WORDS`. Sizes in tokens."""

    name: str
    window: int
    trigger: int
    outcome: str
    is_current: bool

    @property
    def words(self) -> str:
        return WORDS[self.outcome]


def model_choices(session: Session) -> tuple[ModelChoice, ...]:
    """The models to choose from, `scripted` last. One query, however many there are."""
    policy = plans.effective_policy(session).policy
    return tuple(_choice(session, policy, name) for name in suggestions())


def name_of(session: Session) -> str:
    """The model of a session as one names it, with its provider where that is known."""
    return session.model if session.provider in {"", session.model} else f"{session.provider}:{session.model}"


def window_source(session: Session) -> str:
    """Where a session's window is from, in words."""
    return "somebody set it" if session.window_override else "the agent reports it" if session.window_reported else "as the model has it"


def switch_verdict(session: Session, policy: Policy, window: int) -> Verdict:
    """What a switch to a window of so many tokens would come to, as the session's row stands. No query."""
    return triggers.model_switch(
        view_tokens=session.signal_tokens or 0,
        origin=Origin(session.signal_origin or Origin.ESTIMATED),
        new_window=window,
        policy=policy,
        circuit_open=resting_of(session).until is not None,
    )


def _choice(session: Session, policy: Policy, name: str) -> ModelChoice:
    provider, model, named_window = parse_model(name)
    verdict = switch_verdict(session, policy, named_window or window_for(model))
    outcome = "compacts" if verdict.fires else "fits" if verdict.reason is Reason.VIEW_FITS else "refused"
    return ModelChoice(name, verdict.window, verdict.limit, outcome, (provider, model) == (session.provider, session.model))
