"""JSON that others wrote: agents, tools, models. Whatever is wrong with it comes as one error."""

import json
import re

import msgspec

_HALF = re.compile(rb"\\u[dD]|\xed")
"""A trace of half a character: escaped, or as its bytes."""


class NotJson(ValueError):  # noqa: N818  it says what a text is
    """A text that can't be read as JSON. Says why."""


def decode(text: str | bytes) -> object:
    """The value of a JSON text. Raises `NotJson`, also for what is nested more deeply than can be read.

    Agents that are written in JavaScript write halves of characters, which nothing stores: they are read as U+FFFD.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        if not _HALF.search(_raw(text)):
            raise NotJson(str(error)) from error
    except UnicodeError:
        pass
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    return _without_halves(_raw(text))


def _without_halves(raw: bytes) -> object:
    try:
        told = json.dumps(json.loads(raw.decode("utf-8", "surrogatepass")), ensure_ascii=False)
        value: object = json.loads(told.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    return value


def _raw(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
