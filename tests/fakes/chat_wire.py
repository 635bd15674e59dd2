"""OpenAI's chat completions protocol, as its many copies speak it: requests as blocks; answers and errors."""

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.script import Answer, Block, Stop, text_in

PROTOCOL = "chat"
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 413: "invalid_request_error", 429: "rate_limit_error"}
_STOPS = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSAL: "content_filter"}


def blocks(body: dict[str, Any]) -> Iterator[Block]:
    for message in body.get("messages", []):
        role = message["role"]
        if role == "tool":
            yield Block("user", "result", text_in(message.get("content")), message["tool_call_id"])
        elif role != "system":
            if message.get("content"):
                yield Block(role, "text", text_in(message["content"]))
            for made in message.get("tool_calls") or []:
                yield Block(role, "call", made["function"]["arguments"], made["id"])


def system(body: dict[str, Any]) -> str:
    return "\n".join(text_in(message.get("content")) for message in body.get("messages", []) if message["role"] == "system")


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(tool["function"]["name"] for tool in body.get("tools") or [])


def error(answer: Answer) -> dict[str, Any]:
    return {"error": {"type": _TYPES.get(answer.status, "server_error"), "message": answer.message, "code": answer.code or None}}


def document(answer: Answer, model: str, input_tokens: int, key: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text or None, "tool_calls": _calls(answer)}
    return {
        **_head(model, key, "chat.completion"),
        "choices": [_choice(message, "message", _stop(answer))],
        "usage": _usage(answer, input_tokens),
    }


def events(answer: Answer, model: str, input_tokens: int, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    head = _head(model, key, "chat.completion.chunk")
    yield "", {**head, "choices": [_choice({"role": "assistant", "content": ""}, "delta", None)]}
    for piece in answer.in_pieces(answer.text):
        yield "", {**head, "choices": [_choice({"content": piece}, "delta", None)]}
    for index, made in enumerate(_calls(answer) or []):
        yield "", {**head, "choices": [_choice({"tool_calls": [{"index": index, **made}]}, "delta", None)]}
    yield "", {**head, "choices": [_choice({}, "delta", _stop(answer))]}
    yield "", {**head, "choices": [], "usage": _usage(answer, input_tokens)}
    yield "[DONE]", {}


def error_event(answer: Answer) -> tuple[str, dict[str, Any]]:
    return "", error(answer)


def frame(name: str, fields: dict[str, Any]) -> bytes:
    """One event of the stream, which has no names."""
    return f"data: {name or json.dumps(fields)}\n\n".encode()


def _head(model: str, key: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{key}", "object": kind, "created": 1, "model": model}


def _choice(said: dict[str, Any], field: str, stop: str | None) -> dict[str, Any]:
    return {"index": 0, field: said, "finish_reason": stop}


def _stop(answer: Answer) -> str:
    return "tool_calls" if answer.calls else _STOPS[answer.stop]


def _calls(answer: Answer) -> list[dict[str, Any]] | None:
    made = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in answer.calls
    ]
    return made or None


def _usage(answer: Answer, input_tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": input_tokens, "completion_tokens": answer.output_tokens, "total_tokens": input_tokens + answer.output_tokens}
