"""Who can answer the turns of a session here: `scripted`, and every provider whose key or address is in the environment."""

from sessions_app.engine.policy import model_of
from sessions_app.providers import registry, scripted_model
from sessions_app.providers.base import ModelClient
from sessions_app.providers.registry import KEYS, is_usable
from sessions_app.providers.scripted_model import ScriptedModel

SUGGESTED = {
    "anthropic": ("anthropic:claude-haiku-4-5", "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-5"),
    "openai": ("openai:gpt-5-mini", "openai:gpt-5", "openai:gpt-4.1"),
}
"""Names to choose from; any other model of these providers may be named as well."""

MAX_WINDOW_DIGITS = 12
"""More are no window: without a bound Python itself refuses to read them, in words of its own."""


class UnusableModel(ValueError):  # noqa: N818  it says what is the matter
    """Nobody answers under this name here. The text says why, and what to do."""


def suggestions() -> tuple[str, ...]:
    """Names of models that can be asked here, `scripted` last."""
    usable = [name for provider, names in SUGGESTED.items() if is_usable(f"{provider}:") for name in names]
    return (*usable, scripted_model.NAME)


def parse_model(name: str) -> tuple[str, str, int | None]:
    """(provider, model, window in tokens where the name gives one) of `scripted`, `anthropic:MODEL` or `openai:MODEL[@WINDOW]`.

    Raises `UnusableModel`.
    """
    bare, _, window = name.partition("@")
    if bare == scripted_model.NAME and (not window or (window.isdecimal() and len(window) <= MAX_WINDOW_DIGITS)):
        return scripted_model.NAME, scripted_model.NAME, int(window) if window else None
    try:
        model, tokens = model_of(name)
    except ValueError as error:
        known = f"{scripted_model.NAME}, anthropic:MODEL and openai:MODEL"
        raise UnusableModel(f"There is no model {name[:60]!r}; models are named {known}, with @TOKENS for another window.") from error
    provider = name.partition(":")[0]
    if not is_usable(name):
        raise UnusableModel(f"No key of {provider} is set here ({KEYS[provider][0]}), so {name[:60]!r} can't be asked.")
    return provider, model, tokens if window else None


def make_client(provider: str, *, window: int, timeout_s: float) -> ModelClient:
    """A client for one request. Raises `ImportError` where the provider's package is not installed."""
    if provider in KEYS:
        return registry.make_client(provider, timeout_s=timeout_s)
    return ScriptedModel(window=window, pause_s=scripted_model.PAUSE_S)
