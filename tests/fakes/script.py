"""What a scripted model is asked, and what it answers: the same for every wire protocol."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """What goes wrong with an answer on its way."""

    CUT = "cut"  # the connection ends in the middle
    HANG = "hang"  # headers come, and then nothing until the client gives up or the server is closed
    SILENT = "silent"  # not even headers come
    ERROR_EVENT = "error_event"  # a stream that begins well tells of an error; without a stream it is that error
    GARBAGE = "garbage"  # status 200 and a body that is no JSON


class Stop(StrEnum):
    """Why a model stopped."""

    END = "end"
    LENGTH = "length"  # the answer is as long as it may be, and unfinished
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Call:
    """A call of a tool that an answer makes."""

    name: str
    arguments: dict[str, Any]
    call_id: str = "call_1"


@dataclass(frozen=True)
class Answer:
    """One answer."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: Stop = Stop.END
    status: int = 200
    message: str = "scripted failure"  # of a status over 399
    code: str = ""  # e.g. context_length_exceeded
    retry_after_s: int | None = None
    fault: Fault | None = None
    input_tokens: int | None = None  # else a quarter of the request's characters
    pieces: int = 4  # that a stream's text comes in
    paced_by: threading.Semaphore | None = None  # each piece takes a permit of it

    @property
    def output_tokens(self) -> int:
        return max(1, len(self.text + self.thinking + json.dumps([call.arguments for call in self.calls])) // 4)

    def in_pieces(self, text: str) -> Iterator[str]:
        """Waits before each for its permit, where the answer is paced."""
        size = max(1, -(-len(text) // self.pieces))
        for start in range(0, len(text), size):
            if self.paced_by is not None:
                self.paced_by.acquire()
            yield text[start : start + size]


def say(text: str, **more: Any) -> Answer:
    return Answer(text=text, **more)


def call(name: str, call_id: str = "call_1", **arguments: Any) -> Answer:
    """An answer that is a call alone."""
    return Answer(calls=(Call(name, arguments, call_id),))


def refuse(status: int, message: str = "scripted failure", **more: Any) -> Answer:
    return Answer(status=status, message=message, **more)


NOTHING = Answer()
"""An answer that ends well and says nothing."""


@dataclass(frozen=True)
class Block:
    """One piece of a request, in its order: who says it, what it is (`text`, `call`, `result` …), and its text or arguments."""

    role: str
    kind: str
    text: str
    call_id: str = ""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    protocol: str  # messages, count_tokens, responses, models
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    blocks: tuple[Block, ...] = ()
    system: str = ""
    tools: tuple[str, ...] = ()
    raw: bytes = field(default=b"", repr=False)

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def texts(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind == "text"]


def text_in(content: Any) -> str:
    """The texts of a content list, or the content itself where it is one."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or [] if isinstance(part, dict))
