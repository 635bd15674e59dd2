"""Which summarisers a policy means. Keys and addresses come from the environment alone, and are never stored or logged."""

import os
from collections.abc import Sequence
from functools import partial

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy, model_of, window_for
from sessions_app.engine.steps import ShouldStop, Summariser, SummariserFailed, SummaryAnswer, SummaryRequest
from sessions_app.providers.anthropic import AnthropicClient
from sessions_app.providers.base import ModelClient
from sessions_app.providers.memory_extractor import ModelExtractor
from sessions_app.providers.model_summariser import ModelSummariser
from sessions_app.providers.openai import OpenAIClient
from sessions_app.providers.patience import Patience
from sessions_app.providers.scripted import ScriptedSummariser

KEYS = {"anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"), "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL")}
"""Variables of each provider: its key, and the address of a server that speaks the same."""


class UnusableSummariser:
    """One that the policy names and that can't work here: the attempt tells of it and goes on to the next."""

    is_model = True

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.window = window_for("")
        self._why = why

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:  # noqa: ARG002
        raise SummariserFailed(self._why, is_final=True)


def summarisers_for(policy: Policy) -> Sequence[Summariser]:
    """The summarisers of the policy, in its order; never none."""
    patience = Patience(policy)
    return [_summariser(name, policy, patience, place) for place, name in enumerate(policy.summarisers)] or [ExtractiveSummariser()]


def extractor_for(policy: Policy) -> ModelExtractor | None:
    """The model that is asked what to keep of a session: the first of the policy's summarisers that is one and can be asked here."""
    for name in policy.summarisers:
        provider = name.partition(":")[0]
        if provider in KEYS and is_usable(name):
            client = partial(make_client, provider, timeout_s=policy.call_timeout_s)
            return ModelExtractor(name, model=model_of(name)[0], make_client=client, timeout_s=policy.call_timeout_s)
    return None


def is_usable(name: str) -> bool:
    """Whether a summariser of this name can be asked here: whether its key, or a server's address, is set."""
    provider = name.partition(":")[0]
    return provider not in KEYS or any(os.environ.get(variable) for variable in KEYS[provider])


def _summariser(name: str, policy: Policy, patience: Patience, place: int) -> Summariser:
    if name == ScriptedSummariser.name:
        return ScriptedSummariser(delay_s=policy.scripted_delay_s)
    if name == ExtractiveSummariser.name:
        return ExtractiveSummariser()
    provider = name.partition(":")[0]
    if not is_usable(name):
        return UnusableSummariser(name, f"no key is set ({KEYS[provider][0]}).")
    model, window = model_of(name)
    behind = policy.summarisers[place:]
    models_left = sum(one.partition(":")[0] in KEYS for one in behind)
    return ModelSummariser(
        name,
        model=model,
        window=window,
        make_client=lambda timeout_s: make_client(provider, timeout_s=timeout_s),
        timeout_s=lambda chunks: patience.for_call(chunk_count=chunks, models_left=models_left, is_last=len(behind) == 1),
    )


def make_client(provider: str, *, timeout_s: float) -> ModelClient:
    """A client of a provider of `KEYS`, as the environment says. Raises `ImportError` where its package is not installed."""
    has_key, is_copy = (bool(os.environ.get(variable)) for variable in KEYS[provider])
    if provider == "anthropic":
        return AnthropicClient(timeout_s=timeout_s, has_key=has_key)
    return OpenAIClient(timeout_s=timeout_s, has_key=has_key, is_copy=is_copy)
