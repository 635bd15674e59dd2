"""Which summarisers a policy means."""

from collections.abc import Callable, Sequence

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import Summariser
from sessions_app.providers.scripted import ScriptedSummariser


def summarisers_for(policy: Policy) -> Sequence[Summariser]:
    """The summarisers of the policy that work here, in its order; never none."""
    known: dict[str, Callable[[], Summariser]] = {
        ScriptedSummariser.name: lambda: ScriptedSummariser(delay_s=policy.scripted_delay_s),
        ExtractiveSummariser.name: ExtractiveSummariser,
    }
    return [known[name]() for name in policy.summarisers if name in known] or [ExtractiveSummariser()]
