"""A model that is asked which facts of a conversation are worth keeping."""

from collections.abc import Callable

from sessions_app.engine.flush_model import ANSWER_TOKENS, ExtractorAnswer
from sessions_app.engine.steps import ShouldStop, SummariserFailed
from sessions_app.providers.base import ModelClient, ModelRefused, ModelRequest, StopReason
from sessions_app.providers.calls import call
from sessions_app.providers.prices import prices_of_summariser


class ModelExtractor:
    """One model of one provider; a call takes at most `timeout_s`. May be asked from several threads."""

    def __init__(self, name: str, *, model: str, make_client: Callable[[], ModelClient], timeout_s: float) -> None:
        self.name = name
        self._model = model
        self._make_client = make_client
        self._timeout_s = timeout_s

    def ask(self, system: str, prompt: str, should_stop: ShouldStop) -> ExtractorAnswer:
        """Asks once. Raises `SummariserFailed` and `Stopped`."""
        wanted = ModelRequest(model=self._model, system=system, messages=({"role": "user", "content": prompt},), max_tokens=ANSWER_TOKENS)
        try:
            answer = call(self._make_client, wanted, should_stop=should_stop, timeout_s=self._timeout_s)
        except ModelRefused as refused:
            raise SummariserFailed(f"{refused}.") from refused
        except ImportError as error:
            raise SummariserFailed("its client is not installed (requirements-models.lock).") from error
        if answer.stop in (StopReason.FILTERED, StopReason.OVERFLOW):
            raise SummariserFailed("its provider held the answer back.")
        prices = prices_of_summariser(self.name)
        return ExtractorAnswer(
            text=answer.text,
            model=answer.model or self._model,
            usage=answer.usage,
            cost_usd=prices.cost(answer.usage) if prices and answer.usage else None,
        )
