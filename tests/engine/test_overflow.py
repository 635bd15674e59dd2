"""A refusal of a provider: what is an overflow, and what only sounds like one (C45)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.overflow import Refusal, classify

OVERFLOWS = [
    (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. You sent 140321.",
    ),
    (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    (400, "", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens`"),
    (413, "request_too_large", "Request exceeds the maximum size"),
    (413, "", "Payload Too Large"),
    (200, "model_context_window_exceeded", ""),
    (400, "", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "ValidationException", "Input is too long for requested model."),
    (400, "", "This endpoint's maximum context length is 32768 tokens."),
    (400, "", "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    (400, "", "Please reduce the length of the messages or completion."),
    (400, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
    (500, "", "the request exceeds the available context size. try increasing the context size or enable context shift"),
    (400, "", "The decoder prompt (length 40000) is longer than the maximum model length of 32768."),
    (400, "", "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    (400, "", "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (None, "", "context window exceeded"),
]
OTHERS = [
    (
        429,
        "rate_limit_error",
        "This would exceed your rate limit of 40,000 input tokens per minute.",
        Refusal.RATE_LIMITED,
    ),
    (429, "", "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000.", Refusal.RATE_LIMITED),
    (400, "ThrottlingException", "Too many tokens, please wait before trying again.", Refusal.RATE_LIMITED),
    (None, "", "Too many tokens, please wait before trying again.", Refusal.RATE_LIMITED),
    (429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", Refusal.RATE_LIMITED),
    (529, "overloaded_error", "Overloaded", Refusal.OVERLOADED),
    (503, "", "The model is overloaded. Please try again later.", Refusal.OVERLOADED),
    (401, "authentication_error", "invalid x-api-key", Refusal.UNAUTHORISED),
    (403, "", "Forbidden", Refusal.UNAUTHORISED),
    (400, "", "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.", Refusal.INVALID),
    (400, "", "messages.3: tool_use ids were found without tool_result blocks", Refusal.INVALID),
    (404, "not_found_error", "model: no-such-model", Refusal.INVALID),
    (500, "api_error", "Internal server error", Refusal.UNAVAILABLE),
    (None, "", "Connection reset by peer", Refusal.UNAVAILABLE),
    (None, "", "", Refusal.UNAVAILABLE),
]


@pytest.mark.parametrize(("status", "code", "message"), OVERFLOWS)
def test_a_request_that_is_too_long_is_an_overflow(status, code, message):
    assert classify(status=status, code=code, message=message) is Refusal.OVERFLOW


@pytest.mark.parametrize(("status", "code", "message", "meaning"), OTHERS)
def test_what_only_speaks_of_tokens_is_none(status, code, message, meaning):
    assert classify(status=status, code=code, message=message) is meaning


def test_only_what_may_pass_is_worth_trying_again():
    assert {refusal for refusal in Refusal if refusal.may_pass} == {Refusal.RATE_LIMITED, Refusal.OVERLOADED, Refusal.UNAVAILABLE}


@given(st.none() | st.integers(100, 599), st.text(max_size=30), st.text(max_size=300))
def test_every_refusal_means_something(status, code, message):
    assert classify(status=status, code=code, message=message) in Refusal
