"""A summariser that asks a model."""

from collections.abc import Callable

import msgspec

from sessions_app.engine import prompts
from sessions_app.engine.overflow import Refusal
from sessions_app.engine.steps import ShouldStop, SummariserFailed, SummaryAnswer, SummaryRequest
from sessions_app.engine.terms import SummarySource
from sessions_app.providers.base import ModelClient, ModelRefused, ModelRequest, StopReason
from sessions_app.providers.calls import call, pause
from sessions_app.providers.limits import answer_limit
from sessions_app.providers.prices import prices_of_summariser

FIRST_PAUSE_S = 2.0
"""Before a second attempt, where the provider does not say how long to leave it alone."""


FILLED, FILLED_AGAIN = 0.9, 0.5
"""How much of a window is used by estimate; and how much after its provider found that too long: then it is another window."""

BUSY = frozenset({Refusal.RATE_LIMITED, Refusal.OVERLOADED})


class ModelSummariser:
    """One model of one provider. The window is the model's, in tokens; `timeout_s` says how long a call of so many chunks may take.

    It keeps nothing from one call to the next, so that calls may be made side by side.
    """

    is_model = True

    def __init__(
        self, name: str, *, model: str, window: int, make_client: Callable[[float], ModelClient], timeout_s: Callable[[int], float]
    ) -> None:
        self.name = name
        self.window = window
        self._model = model
        self._make_client = make_client
        self._timeout_s = timeout_s

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        """Asks once. Raises `SummariserFailed` and `Stopped`; the pause that the request wants is taken here."""
        pause(min(request.after_s, self._timeout_s(request.chunk_count)), should_stop)
        timeout_s = self._timeout_s(request.chunk_count)
        if not timeout_s:
            raise SummariserFailed("no time is left for it.", is_final=True)
        request = msgspec.structs.replace(request, max_tokens=min(request.max_tokens, answer_limit(self._model) or request.max_tokens))
        filled = FILLED_AGAIN if request.is_shortened else FILLED
        prompt = prompts.fitting(request, int(self.window * filled) - request.max_tokens)
        if prompt is None:
            raise SummariserFailed("what it would have to read is longer than its window.", is_final=True, is_of_request=True)
        wanted = ModelRequest(
            model=self._model,
            system=prompts.system_prompt(request),
            messages=({"role": "user", "content": prompt},),
            max_tokens=request.max_tokens,
        )
        try:
            answer = call(lambda: self._make_client(timeout_s), wanted, should_stop=should_stop, timeout_s=timeout_s)
        except ModelRefused as refused:
            is_overflow = refused.refusal is Refusal.OVERFLOW
            raise SummariserFailed(
                f"{refused}.",
                # To wait as long once more is what the next one's time is for.
                is_final=refused.refusal in _FINAL or refused.is_late or (is_overflow and request.is_shortened),
                is_of_request=is_overflow,
                is_busy=refused.refusal in BUSY,
                retry_after_s=refused.retry_after_s or (FIRST_PAUSE_S if refused.refusal.may_pass else 0.0),
            ) from refused
        except ImportError as error:
            raise SummariserFailed("its client is not installed (requirements-models.lock).", is_final=True) from error
        if answer.stop is StopReason.FILTERED:
            raise SummariserFailed("its provider held the answer back.", is_final=True, is_of_request=True)
        return SummaryAnswer(
            text=answer.text,
            source=SummarySource.LLM,
            truncated=answer.stop in (StopReason.LENGTH, StopReason.OVERFLOW),
            model=answer.model or self._model,
            usage=answer.usage,
            cost_usd=prices.cost(answer.usage) if answer.usage and (prices := prices_of_summariser(self.name)) else None,
        )


_FINAL = frozenset({Refusal.UNAUTHORISED, Refusal.INVALID})
"""The same request would be refused again."""
