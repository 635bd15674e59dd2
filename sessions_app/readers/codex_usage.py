"""What Codex's calls cost: differences between the totals that it writes down."""

from typing import Any

from sessions_app.engine.entries import Usage
from sessions_app.readers.base import ParsedEntry, UsageCorrection

_FIELDS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
Counts = tuple[int, int, int, int]


class Billing:
    """Puts each difference of the running total on one entry of the answer that it was counted for.

    Most versions write the count behind an answer and its results; the first ones wrote it before the answer.
    """

    def __init__(self) -> None:
        self.context: int | None = None  # tokens of the last request and its answer
        self.window: int | None = None
        self.late: list[UsageCorrection] = []
        self._total: Counts = (0, 0, 0, 0)
        self._answer: ParsedEntry | None = None
        self._ordinal = 0  # of that entry
        self._is_written = False
        self._is_open = False  # the answer goes on with the next entry of the assistant
        self._is_billed = False
        self._counts_before = False
        self._has_charged = False
        self._ahead: Counts | None = None  # counted, and not on any entry yet

    @property
    def is_waiting(self) -> bool:
        """Whether the last answer's count is still to come: its entries should not be stored yet."""
        return self._answer is not None and not self._is_billed and not self._counts_before

    def note_answer(self, entry: ParsedEntry, ordinal: int) -> None:
        """Takes an entry that the model made."""
        if not self._is_open:
            self._is_open, self._is_billed = True, False
        self._answer, self._ordinal, self._is_written = entry, ordinal, False
        if self._ahead is not None and self._counts_before and not self._is_billed:
            entry.usage, self._ahead, self._is_billed = _usage(self._ahead), None, True

    def end_answer(self) -> None:
        """A result or a message came: what the assistant says next belongs to another answer."""
        self._is_open = False

    def skip_answer(self) -> None:
        """A turn ended or another began: no count is to come for what was said before."""
        self._is_open = False
        self._answer = None

    def note_count(self, info: Any, *, is_inherited: bool) -> None:
        """Takes a `token_count`. One that repeats the total costs nothing. `is_inherited`: another session has paid for it."""
        if not isinstance(info, dict):
            return
        window = info.get("model_context_window")
        self.window = window if isinstance(window, int) and 0 < window < 1 << 40 else self.window
        last, total = _counts(info.get("last_token_usage")), _counts(info.get("total_token_usage"))
        context = info["last_token_usage"].get("total_tokens") if last else None
        if isinstance(context, int) and 0 < context < 1 << 40:
            self.context = context
        if total is None or total == self._total:
            return
        cost: Counts = tuple(now - before for now, before in zip(total, self._total, strict=True))  # type: ignore[assignment]
        self._total = total
        if min(cost) < 0:  # counted anew from nothing
            cost = last or total
        if not is_inherited:
            self._charge(cost)
        elif self._answer is not None:
            self._is_billed = True

    def _charge(self, cost: Counts) -> None:
        if not self._has_charged:
            self._has_charged, self._counts_before = True, self._answer is None
        if self._answer is not None and not self._is_billed:
            usage, self._ahead, self._is_billed = _usage(_sum(cost, self._ahead)), None, True
            self._answer.usage = usage
            if self._is_written:
                self.late.append(UsageCorrection(ordinal=self._ordinal, usage=usage))
        else:
            self._ahead = _sum(cost, self._ahead)

    def mark_written(self) -> None:
        """The last answer is stored: what is counted for it from now on has to be corrected there."""
        self._is_written = True

    def settle(self, entry: ParsedEntry) -> None:
        """Puts what no answer carries (a summary that the provider made by itself) on a boundary's entry."""
        if self._ahead is not None and not self._counts_before:
            entry.usage, self._ahead = _usage(self._ahead), None


def _counts(told: Any) -> Counts | None:
    if not isinstance(told, dict):
        return None
    numbers = [told.get(name) for name in _FIELDS]
    first, *rest = (number if isinstance(number, int) and 0 <= number < 1 << 50 else 0 for number in numbers)
    return (first, rest[0], rest[1], rest[2])


def _sum(cost: Counts, more: Counts | None) -> Counts:
    return cost if more is None else tuple(map(sum, zip(cost, more, strict=True)))  # type: ignore[return-value]


def _usage(cost: Counts) -> Usage:
    """`input_tokens` includes what came from a cache and what was written to one."""
    prompt, read, write, output = cost
    return Usage(input=max(0, prompt - read - write), cache_read=read, cache_write=write, output=output)
