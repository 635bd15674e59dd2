"""Which summariser a policy means."""

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import Summariser
from sessions_app.providers.scripted import ScriptedSummariser


def summariser_for(policy: Policy) -> Summariser:
    """The first summariser of the policy that works here; without any, the extractive one, which always does."""
    for name in policy.summarisers:
        if name == ScriptedSummariser.name:
            return ScriptedSummariser(delay_s=policy.scripted_delay_s)
        if name == ExtractiveSummariser.name:
            return ExtractiveSummariser()
    return ExtractiveSummariser()
