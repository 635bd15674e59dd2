"""What a model provider's refusal means: a request that is too long, or something that only sounds like it.

The table holds what public interfaces answer (Anthropic, OpenAI and those that copy it, Gemini, Bedrock, Mistral, Cohere,
xAI, Groq, vLLM, llama.cpp, Ollama). A rate limit that speaks of tokens is no overflow: compacting would not help.
"""

import re
from enum import StrEnum


class Refusal(StrEnum):
    """Why a provider did not answer."""

    OVERFLOW = "overflow"  # the request is longer than the model reads: compact, then try again
    RATE_LIMITED = "rate_limited"  # try again later, as it is
    OVERLOADED = "overloaded"  # likewise
    UNAUTHORISED = "unauthorised"  # the key is wrong or missing: trying again is no use
    INVALID = "invalid"  # the request is malformed, or asks for what the model cannot do
    UNAVAILABLE = "unavailable"  # no answer, or a broken one

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self in (Refusal.RATE_LIMITED, Refusal.OVERLOADED, Refusal.UNAVAILABLE)


_CODES = {
    "context_length_exceeded": Refusal.OVERFLOW,
    "model_context_window_exceeded": Refusal.OVERFLOW,
    "request_too_large": Refusal.OVERFLOW,
    "string_above_max_length": Refusal.OVERFLOW,
    "exceed_context_size_error": Refusal.OVERFLOW,
    "rate_limit_error": Refusal.RATE_LIMITED,
    "rate_limit_exceeded": Refusal.RATE_LIMITED,
    "insufficient_quota": Refusal.RATE_LIMITED,
    "throttlingexception": Refusal.RATE_LIMITED,
    "resource_exhausted": Refusal.RATE_LIMITED,
    "overloaded_error": Refusal.OVERLOADED,
    "authentication_error": Refusal.UNAUTHORISED,
    "permission_error": Refusal.UNAUTHORISED,
    "invalid_api_key": Refusal.UNAUTHORISED,
}
_STATUSES = {
    401: Refusal.UNAUTHORISED,
    403: Refusal.UNAUTHORISED,
    408: Refusal.UNAVAILABLE,
    413: Refusal.OVERFLOW,
    429: Refusal.RATE_LIMITED,
    503: Refusal.OVERLOADED,
    529: Refusal.OVERLOADED,
}
_RATE = re.compile(
    r"rate.?limit|too many requests|tokens per (?:min|day)|\bTPM\b|\bquota\b|throttl|please wait before|try again in \d",
    re.IGNORECASE,
)
_ANSWER_TOO_LONG = re.compile(r"max_(?:completion_|output_)?tokens\W+(?:is |value )?(?:too large|exceeds|must be)", re.IGNORECASE)
"""The answer that was asked for is longer than the model gives: an error of the request, whatever its history."""

_OVERFLOW = re.compile(
    r"""
    context[ _]length[ _]exceeded
    | maximum\ (?:context|model|prompt)\ length
    | (?:prompt|input|request|conversation|message|payload)s?\ (?:is|are|was|were)\ too\ (?:long|large)
    | exceeds?\ (?:the\ )?(?:available\ |maximum\ |model's\ )*context\ (?:size|window|limit|length)
    | exceeds?\ the\ maximum\ (?:allowed\ )?(?:number\ of\ )?(?:input\ )?tokens
    | context[ ](?:window|size|limit)[ ](?:is[ ])?(?:exceeded|full|overflow)
    | (?:exceed|over|beyond|outside)\w*\ (?:the\ |its\ )?(?:model'?s?\ )?context\ (?:window|limit)
    | input\ length\ and\ .?max_tokens.?\ exceed
    | input\ length\ exceeds
    | longer\ than\ the\ maximum\ model\ length
    | too\ many\ (?:input\ )?tokens:\ total
    | reduce\ the\ length\ of\ (?:the\ |your\ )?(?:messages|prompt|input)
    | total\ number\ of\ tokens\ in\ the\ prompt\ cannot\ exceed
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_MESSAGE = 4_000


def classify(*, status: int | None = None, code: str = "", message: str = "") -> Refusal:
    """What a refusal means, by the provider's own code, then its HTTP status, then its words.

    `status` is None where there was no answer at all. Anything that is not recognised is `invalid` for a 4xx status and
    `unavailable` for the rest.
    """
    words = message[:_LONGEST_MESSAGE]
    known = _CODES.get(code.strip().lower())
    if known is not None:
        return known
    if status in (429, 503, 529) or _RATE.search(words):
        return _STATUSES.get(status or 0, Refusal.RATE_LIMITED)
    if _ANSWER_TOO_LONG.search(words) and "exceed context" not in words.lower():
        return Refusal.INVALID
    if _OVERFLOW.search(words):
        return Refusal.OVERFLOW
    if status is not None and status in _STATUSES:
        return _STATUSES[status]
    return Refusal.INVALID if status is not None and 400 <= status < 500 else Refusal.UNAVAILABLE
