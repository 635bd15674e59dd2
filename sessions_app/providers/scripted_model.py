"""A model that needs no key: it answers by a script, streams, and measures its requests as a real one does.

What it says depends on nothing but the request, so that a demonstration is the same everywhere. It tells what it was sent,
which is the point of looking at a model view.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.engine.counting import ENTRY_OVERHEAD, estimate_text
from sessions_app.engine.entries import Usage
from sessions_app.engine.overflow import Refusal
from sessions_app.providers.base import ModelAnswer, ModelRequest, OnText, StopReason, refused

NAME = "scripted"
PAUSE_S = 0.08
"""Between two pieces: somewhat faster than a person reads."""

PIECE_WORDS = 2
_BLOCK = "<compacted-history>"
_STEPS = (
    "First I would write down what must not change, so that we notice when it does.",
    "Then the smallest change that can be tried on its own, with a test that fails today.",
    "After that the places that depend on it, one commit each.",
    "Last the words: what a reader of the change needs to know, and nothing else.",
    "I would measure before and after, on the same machine, and keep both numbers.",
    "The risk is in the middle: while both ways exist, something may read the old one.",
    "If it has to be taken back, one switch is enough, as long as nothing was deleted yet.",
    "I would ask one person who uses it every day, before the second step and not after it.",
)


class ScriptedModel:
    """One client. A request that is longer than `window` tokens is refused, as real models refuse it."""

    def __init__(self, *, window: int, pause_s: float) -> None:
        self._window = window
        self._pause_s = pause_s

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelAnswer:
        prompt = prompt_tokens(request)
        if prompt > self._window:
            raise refused(Refusal.OVERFLOW, status=400)
        text = answer_to(request)
        for piece in _pieces(text):
            if self._pause_s:
                await asyncio.sleep(self._pause_s)
            on_text(piece)
        return ModelAnswer(text=text, stop=StopReason.END, model=NAME, usage=Usage(input=prompt, output=estimate_text(text)))

    async def close(self) -> None:
        """There is no connection."""


def prompt_tokens(request: ModelRequest) -> int:
    """What it measures of a request: every message as it would read it."""
    said = [request.system, *(_text(message) for message in request.messages)]
    return sum(estimate_text(text) + ENTRY_OVERHEAD for text in said if text)


def answer_to(request: ModelRequest) -> str:
    """The answer: what it was asked, a few steps, and what it was sent to work with."""
    texts = [_text(message) for message in request.messages]
    asked = next((_text(message) for message in reversed(request.messages) if message["role"] == "user"), "")
    asked = _after_block(asked) or asked
    number = sum(message["role"] == "assistant" for message in request.messages) + len(asked)
    chosen = [_STEPS[(number + place) % len(_STEPS)] for place in range(4)]
    steps = "\n".join(f"{place}. {step}" for place, step in enumerate(chosen, 1))
    return f"You ask: “{_first_words(asked)}”\n\n{steps}\n\n{_sight(texts, prompt_tokens(request))}"


def _sight(texts: list[str], tokens: int) -> str:
    """What stood in the request, as the model saw it."""
    if any(_BLOCK in text for text in texts):
        # A block may stand in one message with what follows it.
        whole = sum(_BLOCK not in text or bool(_after_block(text)) for text in texts)
        return f"I see a summary of what came before, and {_messages(whole)} word for word: {tokens:,} tokens in all."
    return f"I see the whole conversation: {_messages(len(texts))}, {tokens:,} tokens."


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def _after_block(text: str) -> str:
    return text.rpartition(_BLOCK.replace("<", "</"))[2].strip()


def _first_words(text: str, limit: int = 160) -> str:
    line = " ".join(text.partition("\n")[0].split())
    return line if len(line) <= limit else f"{line[:limit].rpartition(' ')[0]} …"


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = "\n\n".join(part.get("text") or "" for part in content or ())
    calls = message.get("tool_calls")
    return f"{parts}\n\n{json.dumps(calls)}" if calls else parts


def _pieces(text: str) -> Iterator[str]:
    words = text.split(" ")
    for start in range(0, len(words), PIECE_WORDS):
        piece = " ".join(words[start : start + PIECE_WORDS])
        yield piece if start + PIECE_WORDS >= len(words) else f"{piece} "
