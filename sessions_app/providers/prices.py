"""What calls of models cost by their providers' list prices: a table that a library ships, and nothing is fetched."""

import os
from functools import lru_cache

import msgspec

from sessions_app.engine.entries import Usage
from sessions_app.engine.policy import model_of

ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""Variables that lead to another server, which has prices of its own or none."""
MAX_NAME_CHARS = 200


class ModelPrices(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars of a request of a model, by what its tokens are. A list price: no discount, no subscription."""

    provider: str
    model: str

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; None where the table has no price for what it used."""
        return _cost(self.provider, self.model, usage)


def prices_of_summariser(name: str) -> ModelPrices | None:
    """The prices of a summariser by its name in a policy, as `anthropic:claude-haiku-4-5`; None for one that is no model or unknown."""
    provider = name.partition(":")[0]
    if provider not in ADDRESSES or os.environ.get(ADDRESSES[provider]):
        return None
    return _known(provider, model_of(name)[0])


def prices_of_model(model: str) -> ModelPrices | None:
    """The prices of the model that a transcript names; None where the table does not know it."""
    return _known("", model)


def _known(provider: str, model: str) -> ModelPrices | None:
    prices = ModelPrices(provider=provider, model=model)
    return prices if model and len(model) <= MAX_NAME_CHARS and prices.cost(Usage(input=1, output=1)) is not None else None


@lru_cache(maxsize=1_000)
def _cost(provider: str, model: str, usage: Usage) -> float | None:
    from genai_prices import Usage as Measured  # noqa: PLC0415  a quarter of a second of import, not before somebody asks
    from genai_prices import calc_price  # noqa: PLC0415

    measured = Measured(
        input_tokens=usage.prompt, cache_read_tokens=usage.cache_read, cache_write_tokens=usage.cache_write, output_tokens=usage.output
    )
    try:
        return float(calc_price(measured, model_ref=model, provider_id=provider or None).total_price)
    except (LookupError, ValueError):
        return None
