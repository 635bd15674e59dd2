"""How a session's row tells of its context: computed from facts alone, whether they were stored or have just been read."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from sessions_app.engine import boundary, calibration, signal
from sessions_app.engine.boundary import Boundary
from sessions_app.engine.calibration import NONE, Calibration, Prompt
from sessions_app.engine.entries import Usage
from sessions_app.engine.plan import LEAST_BLOCK_TOKENS, block_budget
from sessions_app.engine.policy import Policy, ResolvedPolicy
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role, SkipReason

MEASUREMENTS_TRIED = 20
MOST_KNOWN = 400
"""Entries of the longest history that is kept in memory; it is cut in one look, as the store's tails of this length are."""

_FILLS: Mapping[str, str] = {
    Kind.RESULT: "results",
    Kind.CALL: "calls",
    Kind.THINKING: "thinking",
    Kind.REMINDER: "reminders",
    Kind.ATTACHMENT: "attachments",
}


class Fold(NamedTuple):
    """About how many tokens a manual compaction would leave, or why there is nothing to fold."""

    tokens: int | None = None
    reason: str = ""


def fills(tokens: Iterable[tuple[Role | str, Kind | str, int]]) -> dict[str, int]:
    """Tokens by what fills a view, of (role, kind, tokens) of what stands in it."""
    filled: dict[str, int] = {}
    for role, kind, count in tokens:
        name = "system" if role == Role.SYSTEM else _FILLS.get(kind, "text")
        filled[name] = filled.get(name, 0) + count
    return filled


def fold(
    chosen: Boundary | SkipReason,
    system_tokens: int,
    view_tokens: int,
    now: signal.Signal,
    policy: Policy,
    window: int,
    known: Calibration = NONE,
) -> Fold:
    """What a cut would leave of a view of `view_tokens`, of which `system_tokens` are never folded."""
    if isinstance(chosen, SkipReason):
        return Fold(reason=chosen)
    kept = chosen.kept_tokens + system_tokens
    replaced = view_tokens - kept
    block = block_budget(policy, window, replaced, kept, manual=True, calibration=known)
    if block >= replaced:
        return Fold(reason=SkipReason.WOULD_NOT_SHRINK)
    # A measured signal holds what no entry does (tools, system prompt): it stays, only what is folded goes.
    return Fold(tokens=known.after(now.tokens, view_tokens, kept + block))


def columns(
    now: signal.Signal, window: int, resolved: ResolvedPolicy, composition: dict[str, int], left: Fold, known: Calibration
) -> dict[str, object]:
    """The columns of the session's row."""
    policy = resolved.policy
    return {
        "signal_tokens": now.tokens,
        "signal_origin": now.origin,
        "signal_scope": now.scope,
        "signal_measured": now.measured,
        "signal_measured_at": now.measured_at,
        "signal_appended": now.appended,
        "window": window,
        "trigger_tokens": policy.trigger_tokens(window),
        "trigger_source": resolved.sources.get(policy.trigger_field(window), "default"),
        "calibration_factor": known.factor,
        "calibration_overhead": known.overhead,
        "calibration_prompts": known.prompts,
        "pressure": now.tokens / window,
        "composition": composition,
        "foldable_to": left.tokens,
        "unfoldable_reason": left.reason,
        "changed_at": datetime.now(UTC),
    }


class Known:
    """A short history without checkpoints as its import has just read it: nothing has to be asked of the store."""

    def __init__(self) -> None:
        self.off_branch: Collection[int] = ()
        self._shapes: list[EntryShape] = []
        self._measured: dict[int, tuple[int, str]] = {}  # index → (tokens of the prompt, time) of the rows that carry usage

    def add(self, shape: EntryShape) -> bool:
        """Takes the next entry. False: there are too many."""
        self._shapes.append(shape)
        return len(self._shapes) <= MOST_KNOWN

    def measure(self, index: int, usage: Usage | None, at: str) -> None:
        """What a provider measured at an entry; `None` takes it back."""
        self._measured.pop(index, None)
        if usage is not None:
            self._measured[index] = (usage.prompt, at)

    def columns(self, resolved: ResolvedPolicy, window: int) -> dict[str, object]:
        """The columns of the session's row."""
        policy = resolved.policy
        off = self.off_branch
        shapes = [msgspec.structs.replace(shape, off_branch=True) if shape.index in off else shape for shape in self._shapes]
        sent = [shape for shape in shapes if shape.is_sent]
        filled = fills((shape.role, shape.kind, shape.tokens) for shape in sent)
        composition = {name: tokens for name, tokens in filled.items() if tokens}
        view_tokens = sum(composition.values())
        measurement = self._measurement(sent)
        known = calibration.calibrate(self._prompts(sent), base=0) if measurement else NONE
        now = signal.derive(measurement=measurement, view_tokens=view_tokens, calibration=known)
        after_system = next((shape.index for shape in shapes if shape.role not in (Role.SYSTEM, Role.NOTICE)), 0)
        chosen = boundary.choose(
            shapes[after_system:],
            keep_tokens=boundary.keep_budget(policy, window, now.tokens, manual=True, calibration=known),
            floor_tokens=LEAST_BLOCK_TOKENS,
            protected_messages=policy.protected_messages,
        )
        system_tokens = sum(shape.tokens for shape in sent if shape.index < after_system)
        left = fold(chosen, system_tokens, view_tokens, now, policy, window, known)
        return columns(now, window, resolved, composition, left, known)

    def _prompts(self, sent: list[EntryShape]) -> list[Prompt]:
        """As `selectors.measurements` finds them in the store."""
        before: dict[int, int] = {}
        before_message: dict[str, int] = {}
        passed = 0
        for shape in sent:
            before[shape.index] = passed
            before_message.setdefault(shape.message_key, passed)
            passed += shape.tokens
        found: list[Prompt] = []
        seen = set()
        latest = [index for index in sorted(self._measured) if index in before][-calibration.PROMPTS_LOOKED_AT :]
        for index in latest:
            key, prompt = self._shapes[index].message_key, self._measured[index][0]
            if prompt and not (key and key in seen):
                seen.add(key)
                found.append(Prompt(measured=prompt, estimate=before_message[key] if key else before[index]))
        return found

    def _measurement(self, sent: list[EntryShape]) -> signal.Measurement | None:
        """As `signals` finds it in the store."""
        live = [index for index in sorted(self._measured, reverse=True) if index not in self.off_branch]
        for index in live[:MEASUREMENTS_TRIED]:
            prompt, at = self._measured[index]
            if prompt:
                key = self._shapes[index].message_key
                first = next((shape.index for shape in self._shapes if key and shape.message_key == key), index)
                appended = sum(shape.tokens for shape in sent if shape.index >= first)
                return signal.Measurement(prompt_tokens=prompt, appended_tokens=appended, at=at)
        return None
