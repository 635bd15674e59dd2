"""What every client of a model provider is: one request, one answer, one kind of refusal."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from sessions_app.engine.entries import Usage
from sessions_app.engine.overflow import Refusal


class StopReason(StrEnum):
    """Why a model stopped."""

    END = "end"
    LENGTH = "length"  # it ran into the limit of its answer
    CALLS = "calls"  # it wants tools called
    FILTERED = "filtered"  # its provider held the answer back
    OVERFLOW = "overflow"  # its window is full


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model made. `arguments` is the JSON text as the model wrote it."""

    call_id: str
    name: str
    arguments: str


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent: `messages` in the provider's own shape, without the system text."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    system: str = ""
    max_tokens: int = 4_096


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `model` is the name that the provider gives; `usage` is None where it measured nothing."""

    text: str
    stop: StopReason
    model: str = ""
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()


class ModelRefused(Exception):  # noqa: N818  it says what happened
    """The provider did not answer. The text is for people; it never quotes the request. `is_late`: it took longer than it may."""

    def __init__(
        self, refusal: Refusal, words: str, *, status: int | None = None, retry_after_s: float | None = None, is_late: bool = False
    ) -> None:
        self.refusal = refusal
        self.is_late = is_late
        self.status = status
        self.retry_after_s = retry_after_s
        super().__init__(words)


NO_KEY = "none"
"""What a server of one's own is given where no key is set: the clients insist on one."""

MOST_TOKENS = 2**53
"""More has no provider counted; what says so does not count."""

MAX_ANSWER_CHARS = 4_000_000
"""A provider that goes on beyond this does not mind what was asked of it."""


def measured(**counts: object) -> Usage | None:
    """What a provider says that a call used, by the names of `Usage`; None where any of it can't be so: then nothing was measured."""
    told = {name: 0 if count is None else count for name, count in counts.items()}
    if any(not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_TOKENS for count in told.values()):
        return None
    return Usage(**told)  # type: ignore[arg-type]


def named(model: object) -> str:
    """The name that a provider gives its model, as any store takes it."""
    return "".join(character for character in str(model or "")[:200] if character.isprintable())


OnText = Callable[[str], None]
"""Is called with each piece of the answer's text as it comes."""


class ModelClient(Protocol):
    """A client of one provider. It is used within one event loop, and closed there."""

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelAnswer:
        """Sends one request, without trying again. Raises `ModelRefused`. Cancelling it closes the connection."""

    async def close(self) -> None: ...


_WORDS = {
    Refusal.OVERFLOW: "the request is longer than the model reads",
    Refusal.RATE_LIMITED: "the provider allows no more requests for now",
    Refusal.OVERLOADED: "the provider is overloaded",
    Refusal.UNAUTHORISED: "the provider does not accept the key",
    Refusal.INVALID: "the provider calls the request invalid",
    Refusal.UNAVAILABLE: "the provider gave no answer",
}


def refused(refusal: Refusal, *, status: int | None = None, retry_after_s: float | None = None, is_late: bool = False) -> ModelRefused:
    """The refusal in our own words: a provider's message may quote what was sent."""
    told = f" (HTTP {status})" if status is not None else " in time" if is_late else ""
    return ModelRefused(refusal, f"{_WORDS[refusal]}{told}", status=status, retry_after_s=retry_after_s, is_late=is_late)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider wants to be left alone for, at most a minute; None where it does not say."""
    try:
        return min(60.0, max(0.0, float(headers.get("retry-after", ""))))
    except ValueError:
        return None
