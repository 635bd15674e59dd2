"""Anthropic's Messages protocol: requests as blocks; answers and errors as documents and as event streams."""

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.script import Answer, Block, Stop, text_in

PROTOCOL = "messages"
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip
_STOPS = {Stop.END: "end_turn", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}


def blocks(body: dict[str, Any]) -> Iterator[Block]:
    for message in body.get("messages", []):
        role, content = message["role"], message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "tool_use":
                yield Block(role, "call", json.dumps(part["input"]), part["id"])
            elif part["type"] == "tool_result":
                yield Block(role, "result", text_in(part.get("content")), part["tool_use_id"])
            else:
                yield Block(role, part["type"], str(part.get("text") or part.get("thinking") or ""))


def system(body: dict[str, Any]) -> str:
    return text_in(body.get("system"))


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(tool.get("name", "") for tool in body.get("tools") or [])


def error(answer: Answer) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _ERRORS.get(answer.status, "api_error"), "message": answer.message}, "request_id": "req_1"}


def document(answer: Answer, model: str, input_tokens: int, key: str) -> dict[str, Any]:
    return {
        **_head(model, key),
        "content": _content(answer),
        "stop_reason": _stop(answer),
        "usage": {"input_tokens": input_tokens, "output_tokens": answer.output_tokens},
    }


def events(answer: Answer, model: str, input_tokens: int, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": input_tokens, "output_tokens": 1}
    yield "message_start", {"message": {**_head(model, key), "content": [], "stop_reason": None, "usage": usage}}
    for index, part in enumerate(_content(answer)):
        field, kind = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}.get(
            part["type"], ("partial_json", "input_json_delta")
        )
        empty: dict[str, Any] = {"input": {}} if part["type"] == "tool_use" else {field: ""}
        yield "content_block_start", {"index": index, "content_block": part | empty}
        whole = json.dumps(part["input"]) if part["type"] == "tool_use" else part[field]
        for piece in answer.in_pieces(whole):
            yield "content_block_delta", {"index": index, "delta": {"type": kind, field: piece}}
        yield "content_block_stop", {"index": index}
    yield (
        "message_delta",
        {
            "delta": {"stop_reason": _stop(answer), "stop_sequence": None},
            "usage": {"input_tokens": input_tokens, "output_tokens": answer.output_tokens},
        },
    )
    yield "message_stop", {}


def error_event(answer: Answer) -> tuple[str, dict[str, Any]]:
    return "error", {"error": {"type": "overloaded_error", "message": answer.message}}


def _head(model: str, key: str) -> dict[str, Any]:
    return {"id": f"msg_{key}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}


def _content(answer: Answer) -> list[dict[str, Any]]:
    return [
        *([{"type": "thinking", "thinking": answer.thinking, "signature": "c2NyaXB0ZWQ="}] if answer.thinking else []),
        *([{"type": "text", "text": answer.text}] if answer.text else []),
        *({"type": "tool_use", "id": made.call_id, "name": made.name, "input": made.arguments} for made in answer.calls),
    ]


def _stop(answer: Answer) -> str:
    return "tool_use" if answer.calls and answer.stop is Stop.END else _STOPS[answer.stop]
