"""What a session's measurements say of its estimates: a factor for what entries hold, and a constant for what they do not.

What a policy allows (trigger, target, what is kept) is tokens of requests, as a provider measures them; what a plan adds up is
estimates of entries. They are compared through a calibration, and where there is none as they are.

A provider's vocabulary is not the estimator's, and every request holds what no entry does: system prompt and tools. So a
prompt is taken to be `overhead + factor × estimate`. The factor comes from how much prompts grew against how much their
estimates did, where the constant cancels out; it alone is a comparison of like with like. Nothing here changes what is
stored with an entry: a calibration is applied when numbers are read.
"""

from collections.abc import Iterable, Sequence

import msgspec

FACTORS = (0.5, 2.0)
"""A factor beyond these tells of something else: a context that was cut, a picture that was counted as text."""

PROMPTS_LOOKED_AT = 40
LEAST_PAIRS = 3
LEAST_GROWTH = 200
"""Tokens: below it, what the frame of a message costs is more than what it holds."""

_APART = 4  # how far two prompts of a pair may lie apart: reasoning comes and goes between neighbours
_PROMPTS_OF_OVERHEAD = 8  # the latest: tools and system prompts change on the way


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One measured request. `estimate` counts all entries before it, or all since some fixed place: only differences matter."""

    measured: int
    estimate: int
    context: int = 0  # number of the checkpoint in force: prompts of two contexts are never compared


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """`prompts`: how many measured ones stand behind it; 0: none, and estimates are taken as they are, of the view alone."""

    factor: float = 1.0
    overhead: int = 0
    prompts: int = 0

    def tokens(self, estimate: int) -> int:
        """What entries with this estimate take of a request."""
        return round(self.factor * estimate)

    def request(self, view_estimate: int) -> int:
        """What a whole request with this view would measure."""
        return self.overhead + self.tokens(view_estimate)

    def estimate(self, tokens: int) -> int:
        """The estimate of entries that take so many tokens of a request: the inverse of `tokens`."""
        return int(tokens / self.factor)

    def view_within(self, tokens: int) -> int:
        """The largest estimate of a view whose whole request stays within so many tokens; 0 where no view does."""
        return max(0, self.estimate(tokens - self.overhead))

    def after(self, signal_tokens: int, before: int, after: int) -> int:
        """What a request would measure once a view's estimate has gone from `before` to `after`.

        A signal may hold what no entry does, known or not: it stays, and only what leaves the view goes.
        """
        return max(self.request(after), signal_tokens - self.tokens(before - after))


NONE = Calibration()


def calibrate(prompts: Sequence[Prompt], *, base: int | None, known: Calibration = NONE) -> Calibration:
    """The calibration by measured prompts, oldest first.

    `base` is what makes of an `estimate` in the last prompt's context the estimate of its whole view; `None` where that is not
    known. What these prompts can't tell stays as `known`.
    """
    looked_at = prompts[-PROMPTS_LOOKED_AT:]
    if not looked_at:
        return known
    factor = _factor(looked_at)
    if factor is None:
        if not known.prompts:
            return NONE  # a large view that was measured once would pass for overhead
        factor = known.factor
    overhead = known.overhead
    context = looked_at[-1].context
    if base is not None:
        latest = [prompt for prompt in looked_at if prompt.context == context][-_PROMPTS_OF_OVERHEAD:]
        overhead = max(0, round(_median(prompt.measured - factor * (base + prompt.estimate) for prompt in latest)))
    elif not known.prompts:
        return NONE  # a factor alone would make an estimate look like a whole request
    return Calibration(factor=factor, overhead=overhead, prompts=len(looked_at))


def _factor(prompts: Sequence[Prompt]) -> float | None:
    """The median of growth measured to growth estimated, weighted by the latter: no single odd request moves it."""
    ratios = []
    for place, earlier in enumerate(prompts):
        for later in prompts[place + 1 : place + 1 + _APART]:
            grown = later.estimate - earlier.estimate
            if later.context == earlier.context and grown >= LEAST_GROWTH and later.measured > earlier.measured:
                ratios.append(((later.measured - earlier.measured) / grown, grown))
    if len(ratios) < LEAST_PAIRS:
        return None
    ratios.sort()
    half, weight = sum(grown for _, grown in ratios) / 2, 0
    for ratio, grown in ratios:
        weight += grown
        if weight >= half:
            return round(min(FACTORS[1], max(FACTORS[0], ratio)), 4)
    raise AssertionError("a sum reaches its half")


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
