"""How long an answer may be: what models give at most, under which name it is asked for, and what a refusal says of either.

A request whose parameters a model does not take is refused at once and costs nothing, so the refusal itself is read: what
it says holds for the request, which is sent once more, and for what this process asks of that model from then on.
"""

import re

import msgspec

_ANSWERS: tuple[tuple[str, int], ...] = (
    ("claude-3-7", 64_000),
    ("claude-3-5", 8_192),
    ("claude-3", 4_096),
    ("claude-2", 4_096),
    ("claude-instant", 4_096),
    ("claude-opus-4-5", 64_000),
    ("claude-opus-4", 32_000),
    ("claude-sonnet-4", 64_000),
    ("claude-haiku-4", 64_000),
    ("claude", 32_000),
    ("gpt-3.5", 4_096),
    ("gpt-4.1", 32_768),
    ("gpt-4.5", 16_384),
    ("gpt-4o", 16_384),
    ("gpt-4-", 4_096),
    ("gpt-4", 8_192),
    ("gpt-5-chat", 16_384),
    ("gpt-5", 128_000),
    ("codex-mini", 100_000),
    ("o1-mini", 65_536),
    ("o1-preview", 32_768),
    ("o1", 100_000),
    ("o3", 100_000),
    ("o4-mini", 100_000),
    ("deepseek-chat", 8_192),
    ("deepseek-reasoner", 64_000),
    ("gemini-1", 8_192),
    ("gemini-2.0", 8_192),
    ("gemini", 65_536),
)
"""Tokens that one answer may have, by the start of the model's name. First match wins."""

_REASONING = ("o1", "o3", "o4", "gpt-5", "codex-mini")
_NOT_REASONING = ("gpt-5-chat",)
REASONING_TOKENS = 8_000
"""What a model that reasons may use for that, on top of the answer: this interface counts both as one."""

SAFE_TOKENS = 4_096
"""What nearly every model gives: asked for where a refusal speaks of the limit and names none."""

LEAST_TOKENS = 1_000
"""Where a window leaves less for the answer, what is asked is too long, and not the answer."""

MOST_REPAIRS = 3
_LONGEST_MESSAGE = 4_000

OLD_NAME, NEW_NAME = "max_tokens", "max_completion_tokens"
_USAGE_NAME = "stream_options"

_NAME = r"max_(?:completion_|output_)?tokens"
_SPEAKS_OF_IT = re.compile(rf"{_NAME}|(?:output|completion) tokens|maximum tokens you requested", re.IGNORECASE)
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NAME}\W{{1,4}}\d+ > (?P<most>\d+)(?!\s*[-\d])",
        r"supports at most (?P<most>\d+)",
        rf"range of {_NAME} is \[\d+, ?(?P<most>\d+)\]",
        r"(?:less than or equal to|must be at most|must be no more than|must be <=|must be ≤)\W{1,3}(?P<most>\d+)",
        r"(?:model|output) limit of (?P<most>\d+)",
        r"maximum (?:allowed )?(?:number of )?(?:output|completion) tokens\D{1,40}(?P<most>\d+)",
    )
)
_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\(\d+ > (?P<window>\d+) - (?P<prompt>\d+)\)",
        r"exceed context limit: (?P<prompt>\d+) \+ \d+ > (?P<window>\d+)",
        r"maximum context length is (?P<window>\d+) tokens.{1,80}\((?P<prompt>\d+) in the messages, \d+ in the completion\)",
    )
)
_IS_TOO_LONG = re.compile(r"context length|exceed context|context limit", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra_forbidden|additional properties",
    re.IGNORECASE,
)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What refusals said of a model at an address; None and True where they said nothing."""

    most: int | None = None  # tokens of an answer
    name: str = ""  # under which the limit is asked for
    takes_usage: bool = True  # whether a stream may be asked for what it used


_known: dict[tuple[str, str], Known] = {}


def answer_limit(model: str) -> int | None:
    """Tokens that one answer of a model may have at most; None where the table does not know it. A provider's prefix is skipped."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((most for mark, most in _ANSWERS if name.startswith(mark) or f".{mark}" in name), None)


def reasons(model: str) -> bool:
    """Whether a model of OpenAI's reasons before it answers: its limit counts both, and goes by the new name alone."""
    name = model.lower().rsplit("/", 1)[-1]
    return name.startswith(_REASONING) and not name.startswith(_NOT_REASONING)


class Parameters:
    """What a request asks for beside its messages. `address` tells servers apart that know a model by the same name."""

    def __init__(self, model: str, max_tokens: int, *, address: str = "", name: str = OLD_NAME) -> None:
        self._key = (address, model)
        known = _known.get(self._key, Known())
        limits = [limit for limit in (answer_limit(model), known.most) if limit is not None]
        self.tokens = min([max_tokens, *limits])
        self.name = known.name or name
        self.takes_usage = known.takes_usage
        self._has_swapped = False

    def repair(self, message: str) -> bool:
        """Whether a refusal with these words is about these parameters, and they are other ones now."""
        words = message[:_LONGEST_MESSAGE]
        return self._rename(words) or self._shorten(words)

    def _rename(self, words: str) -> bool:
        if not _UNKNOWN.search(words):
            return False
        if _USAGE_NAME in words and self.takes_usage:
            self.takes_usage = False
            self._remember(takes_usage=False)
            return True
        if self.name in words and not self._has_swapped:
            self._has_swapped = True
            self.name = OLD_NAME if self.name == NEW_NAME else NEW_NAME
            self._remember(name=self.name)
            return True
        return False

    def _shorten(self, words: str) -> bool:
        for pattern in _WINDOWS:
            if (found := pattern.search(words)) and (left := int(found["window"]) - int(found["prompt"])) >= LEAST_TOKENS:
                return self._take(left)  # of this request alone
        if not _SPEAKS_OF_IT.search(words) or _IS_TOO_LONG.search(words):
            return False
        most = next((int(found["most"]) for pattern in _LIMITS if (found := pattern.search(words))), SAFE_TOKENS)
        if not self._take(most):
            return False
        self._remember(most=most)
        return True

    def _take(self, tokens: int) -> bool:
        is_less = 0 < tokens < self.tokens
        self.tokens = tokens if is_less else self.tokens
        return is_less

    def _remember(self, **told: object) -> None:
        _known[self._key] = msgspec.structs.replace(_known.get(self._key, Known()), **told)


def forget() -> None:
    """Forgets what refusals said."""
    _known.clear()
