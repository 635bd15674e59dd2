"""The model that needs no key: the same answer to the same request, in pieces, measured, and no request longer than its window."""

import asyncio

import pytest

from sessions_app.engine.overflow import Refusal
from sessions_app.providers.base import ModelAnswer, ModelRefused, ModelRequest
from sessions_app.providers.scripted_model import ScriptedModel, prompt_tokens


def ask(*texts: str, window: int = 8_000, system: str = "") -> tuple[ModelAnswer, list[str]]:
    """Of a conversation whose messages alternate, the user's first."""
    roles = ("user", "assistant")
    messages = tuple({"role": roles[place % 2], "content": text} for place, text in enumerate(texts))
    pieces: list[str] = []
    request = ModelRequest(model="scripted", system=system, messages=messages)
    answer = asyncio.run(ScriptedModel(window=window, pause_s=0).ask(request, pieces.append))
    assert answer.usage.input == prompt_tokens(request)
    return answer, pieces


def test_the_same_request_gets_the_same_answer_and_another_one_another():
    assert ask("Plan it.") == ask("Plan it.")
    assert ask("Plan it.")[0].text != ask("Plan it at once.")[0].text


def test_the_pieces_make_up_the_answer():
    answer, pieces = ask("Plan it.")
    assert len(pieces) > 10
    assert "".join(pieces) == answer.text


def test_it_says_what_it_was_sent():
    assert "the whole conversation: 3 messages" in ask("One", "Two", "Three")[0].text
    block = "<compacted-history>\nEarlier things.\n</compacted-history>"
    assert "a summary of what came before, and 2 messages word for word" in ask(block, "Two", "Three")[0].text
    merged = ask(f"{block}\nAnd now?")[0].text
    assert "1 message word for word" in merged
    assert merged.startswith("You ask: “And now?”")


def test_the_system_prompt_counts():
    assert ask("One", system="word " * 100)[0].usage.input > ask("One")[0].usage.input + 50


def test_a_request_longer_than_its_window_is_refused_as_an_overflow():
    with pytest.raises(ModelRefused) as refused:
        ask("word " * 4_000, window=1_000)
    assert refused.value.refusal is Refusal.OVERFLOW
