"""Anthropic's Messages interface, by its official client."""

import json
from typing import TYPE_CHECKING, Any

from sessions_app.engine.overflow import Refusal, classify
from sessions_app.engine.texts import storable
from sessions_app.providers.base import (
    MAX_ANSWER_CHARS,
    NO_KEY,
    ModelAnswer,
    ModelRefused,
    ModelRequest,
    OnText,
    StopReason,
    ToolCall,
    measured,
    named,
    refused,
    retry_after,
)
from sessions_app.providers.limits import MOST_REPAIRS, Parameters

if TYPE_CHECKING:
    import anthropic

_STOPS = {
    "max_tokens": StopReason.LENGTH,
    "tool_use": StopReason.CALLS,
    "refusal": StopReason.FILTERED,
    "model_context_window_exceeded": StopReason.OVERFLOW,
}


class AnthropicClient:
    """Streams, so that a long answer is no reason for a time-out. Key and address come from the environment.

    Raises `ImportError` where the extra `models` is not installed.
    """

    def __init__(self, *, timeout_s: float, has_key: bool = True) -> None:
        import anthropic  # noqa: PLC0415  a second of import, which only workers that call it pay

        self._sdk = anthropic
        self._client: anthropic.AsyncAnthropic = anthropic.AsyncAnthropic(
            timeout=timeout_s, max_retries=0, api_key=None if has_key else NO_KEY
        )

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelAnswer:
        parameters = Parameters(request.model, request.max_tokens, address=str(self._client.base_url))
        for _ in range(MOST_REPAIRS):
            try:
                return await self._ask(request, parameters, on_text)
            except self._sdk.BadRequestError as error:
                if not parameters.repair(str(error.message)):
                    raise self._refused(error) from error
        raise refused(Refusal.INVALID)

    async def _ask(self, request: ModelRequest, parameters: Parameters, on_text: OnText) -> ModelAnswer:
        """Raises the client's `BadRequestError` as it is: the parameters may be to blame."""
        sdk = self._sdk
        wanted: dict[str, Any] = {"model": request.model, "max_tokens": parameters.tokens, "messages": list(request.messages)}
        if request.system:
            wanted["system"] = request.system
        try:
            async with self._client.messages.stream(**wanted) as stream:
                left = MAX_ANSWER_CHARS
                async for piece in stream.text_stream:
                    if (left := left - len(piece)) < 0:
                        raise refused(Refusal.UNAVAILABLE)
                    on_text(piece)
                message = await stream.get_final_message()
        except (sdk.BadRequestError, ModelRefused):
            raise
        except sdk.APIStatusError as error:
            raise self._refused(error) from error
        except sdk.APITimeoutError as error:
            raise refused(Refusal.UNAVAILABLE, is_late=True) from error
        except Exception as error:
            raise refused(_refusal_of(error)) from error
        if message.stop_reason is None:
            raise refused(Refusal.UNAVAILABLE)  # the connection ended in the middle
        return _answer(message)

    async def close(self) -> None:
        await self._client.close()

    def _refused(self, error: "anthropic.APIStatusError") -> Exception:
        refusal = classify(status=error.status_code, code=_code_of(error.body), message=str(error.message))
        return refused(refusal, status=error.status_code, retry_after_s=retry_after(error.response.headers))


def _refusal_of(error: Exception) -> Refusal:
    body = getattr(error, "body", None)
    refusal = classify(code=_code_of(body), message=str(error)) if body else Refusal.UNAVAILABLE
    return Refusal.UNAVAILABLE if refusal is Refusal.INVALID else refusal


def _code_of(body: object) -> str:
    inner = body.get("error") if isinstance(body, dict) else None
    return str(inner.get("type", "")) if isinstance(inner, dict) else ""


def _answer(message: Any) -> ModelAnswer:
    used = message.usage
    return ModelAnswer(
        text=storable("".join(block.text for block in message.content if block.type == "text")),
        stop=_STOPS.get(message.stop_reason or "", StopReason.END),
        model=named(message.model),
        usage=measured(
            input=used.input_tokens,
            cache_read=used.cache_read_input_tokens,
            cache_write=used.cache_creation_input_tokens,
            output=used.output_tokens,
        ),
        calls=tuple(_call(block) for block in message.content if block.type == "tool_use"),
    )


def _call(block: Any) -> ToolCall:
    return ToolCall(call_id=block.id, name=block.name, arguments=json.dumps(block.input))
