"""The chat completions interface of OpenAI, and of everything that copies it (vLLM, Ollama, llama.cpp …), by the official client."""

from typing import TYPE_CHECKING, Any

import msgspec

from sessions_app.engine.entries import Usage
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
from sessions_app.providers.limits import MOST_REPAIRS, NEW_NAME, OLD_NAME, REASONING_TOKENS, Parameters, reasons

if TYPE_CHECKING:
    import openai

_STOPS = {
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "content_filter": StopReason.FILTERED,
}


class OpenAIClient:
    """Streams, so that a long answer is no reason for a time-out. Key and address come from the environment.

    Raises `ImportError` where the extra `models` is not installed.
    """

    def __init__(self, *, timeout_s: float, has_key: bool = True, is_copy: bool = False) -> None:
        import openai  # noqa: PLC0415  half a second of import, which only workers that call it pay

        self._sdk = openai
        self._is_copy = is_copy
        self._client: openai.AsyncOpenAI = openai.AsyncOpenAI(timeout=timeout_s, max_retries=0, api_key=None if has_key else NO_KEY)

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelAnswer:
        does_reason = reasons(request.model)
        # The new name is known to few of those that copy the interface, and the old one to no model that reasons.
        name = OLD_NAME if self._is_copy and not does_reason else NEW_NAME
        wanted = request.max_tokens + (REASONING_TOKENS if does_reason else 0)
        parameters = Parameters(request.model, wanted, address=str(self._client.base_url), name=name)
        for _ in range(MOST_REPAIRS):
            try:
                return await self._ask(request, parameters, on_text)
            except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
                if not parameters.repair(str(error.message)):
                    raise self._refused(error) from error
        raise refused(Refusal.INVALID)

    async def _ask(self, request: ModelRequest, parameters: Parameters, on_text: OnText) -> ModelAnswer:
        """Raises the client's errors of status 400 and 422 as they are: the parameters may be to blame."""
        sdk = self._sdk
        system = ({"role": "system", "content": request.system},) if request.system else ()
        wanted: dict[str, Any] = {"model": request.model, "messages": [*system, *request.messages], parameters.name: parameters.tokens}
        if parameters.takes_usage:
            wanted["stream_options"] = {"include_usage": True}
        gathered = _Gathered()
        try:
            create: Any = self._client.chat.completions.create  # its messages are the provider's own shapes
            stream = await create(**wanted, stream=True)
            async with stream:
                async for chunk in stream:
                    gathered.add(chunk, on_text)
        except (sdk.BadRequestError, sdk.UnprocessableEntityError, ModelRefused):
            raise
        except sdk.APIStatusError as error:
            raise self._refused(error) from error
        except sdk.APITimeoutError as error:
            raise refused(Refusal.UNAVAILABLE, is_late=True) from error
        except Exception as error:
            raise refused(_refusal_of(error)) from error
        if not gathered.has_ended:
            raise refused(Refusal.UNAVAILABLE)  # the connection ended in the middle
        return gathered.answer()

    async def close(self) -> None:
        await self._client.close()

    def _refused(self, error: "openai.APIStatusError") -> Exception:
        refusal = classify(status=error.status_code, code=str(error.code or error.type or ""), message=str(error.message))
        return refused(refusal, status=error.status_code, retry_after_s=retry_after(error.response.headers))


def _refusal_of(error: Exception) -> Refusal:
    code = str(getattr(error, "code", None) or "")
    refusal = classify(code=code, message=str(error)) if code else Refusal.UNAVAILABLE
    return Refusal.UNAVAILABLE if refusal is Refusal.INVALID else refusal


class _Gathered:
    """An answer, put together from the pieces of its stream."""

    def __init__(self) -> None:
        self.has_ended = False
        self._left = MAX_ANSWER_CHARS
        self._text: list[str] = []
        self._calls: dict[int, list[str]] = {}  # index → id, name, arguments
        self._stop = StopReason.END
        self._model = ""
        self._usage: Usage | None = None

    def add(self, chunk: Any, on_text: OnText) -> None:
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            delta = choice.delta
            if delta is not None and delta.content:
                self._left -= len(delta.content)
                if self._left < 0:
                    raise refused(Refusal.UNAVAILABLE)
                self._text.append(delta.content)
                on_text(delta.content)
            for call in (delta.tool_calls or ()) if delta is not None else ():
                known = self._calls.setdefault(call.index, ["", "", ""])
                known[0] = call.id or known[0]
                if call.function is not None:
                    known[1] += call.function.name or ""
                    known[2] += call.function.arguments or ""
            if choice.finish_reason:
                self.has_ended = True
                self._stop = _STOPS.get(choice.finish_reason, StopReason.END)

    def answer(self) -> ModelAnswer:
        return ModelAnswer(
            text=storable("".join(self._text)),
            stop=self._stop,
            model=named(self._model),
            usage=self._usage,
            calls=tuple(ToolCall(call_id=call_id, name=name, arguments=arguments) for call_id, name, arguments in self._calls.values()),
        )


def _usage(used: Any) -> Usage | None:
    """The prompt without its cached share, which this interface counts within it."""
    cached = getattr(getattr(used, "prompt_tokens_details", None), "cached_tokens", None)
    told = measured(input=used.prompt_tokens, cache_read=cached, output=used.completion_tokens)
    return msgspec.structs.replace(told, input=max(0, told.input - told.cache_read)) if told else None
