"""OpenAI's Responses protocol: requests as blocks; answers and errors as documents and as event streams."""

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.script import Answer, Block, Stop, text_in

PROTOCOL = "responses"
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "invalid_request_error", 429: "rate_limit_error",
}  # fmt: skip


def blocks(body: dict[str, Any]) -> Iterator[Block]:
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "message":
            content = item["content"]
            for part in [{"text": content}] if isinstance(content, str) else content:
                yield Block(item["role"], "text" if "text" in part else part.get("type", ""), str(part.get("text", "")))
        elif kind.endswith("_output"):
            yield Block("user", "result", text_in(item.get("output")), item.get("call_id", ""))
        elif kind.endswith("_call"):
            arguments = item.get("arguments") or item.get("input") or json.dumps(item.get("action"))
            yield Block("assistant", "call", arguments, item.get("call_id", ""))
        else:
            yield Block("assistant", kind, json.dumps(item))


def system(body: dict[str, Any]) -> str:
    return str(body.get("instructions") or "")


def tools(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(tool.get("name") or tool.get("type", "") for tool in body.get("tools") or [])


def error(answer: Answer) -> dict[str, Any]:
    kind = _ERRORS.get(answer.status, "server_error")
    return {"error": {"message": answer.message, "type": kind, "param": None, "code": answer.code or None}}


def document(answer: Answer, model: str, input_tokens: int, key: str) -> dict[str, Any]:
    is_whole = answer.stop is not Stop.LENGTH
    return {
        **_head(model, "completed" if is_whole else "incomplete", key),
        "output": _items(answer, key),
        "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
        "usage": {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + answer.output_tokens,
        },
    }


def events(answer: Answer, model: str, input_tokens: int, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.created", {"response": {**_head(model, "in_progress", key), "output": [], "usage": None}}
    for index, item in enumerate(_items(answer, key)):
        place: dict[str, Any] = {"item_id": item["id"], "output_index": index}
        empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield "response.output_item.added", {"output_index": index, "item": item | empty | {"status": "in_progress"}}
        if item["type"] == "function_call":
            for piece in answer.in_pieces(item["arguments"]):
                yield "response.function_call_arguments.delta", place | {"delta": piece}
            yield "response.function_call_arguments.done", place | {"arguments": item["arguments"]}
        else:
            place |= {"content_index": 0}
            yield "response.content_part.added", place | {"part": {"type": "output_text", "text": "", "annotations": []}}
            for piece in answer.in_pieces(answer.text):
                yield "response.output_text.delta", place | {"delta": piece}
            yield "response.output_text.done", place | {"text": answer.text}
            yield "response.content_part.done", place | {"part": item["content"][0]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    end = "response.completed" if answer.stop is not Stop.LENGTH else "response.incomplete"
    yield end, {"response": document(answer, model, input_tokens, key)}


def error_event(answer: Answer) -> tuple[str, dict[str, Any]]:
    told = {"code": answer.code or "server_error", "message": answer.message}
    return "response.failed", {"response": {**_head("scripted", "failed", "0"), "output": [], "error": told}}


def _head(model: str, status: str, key: str) -> dict[str, Any]:
    return {
        "id": f"resp_{key}", "object": "response", "created_at": 1_800_000_000, "status": status, "model": model,
        "error": None, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def _items(answer: Answer, key: str) -> list[dict[str, Any]]:
    said = {"type": "output_text", "text": answer.text, "annotations": []}
    message = {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [said]}
    return [
        *([message] if answer.text else []),
        *(
            {
                "type": "function_call", "id": f"fc_{made.call_id}", "call_id": made.call_id, "name": made.name,
                "arguments": json.dumps(made.arguments), "status": "completed",
            }
            for made in answer.calls
        ),
    ]  # fmt: skip
