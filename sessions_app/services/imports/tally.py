"""What came of the sources of a run, however many: all are counted, some are listed."""

import msgspec

from sessions_app.services.imports.outcomes import SourceOutcome, SourceState

MAX_LISTED = 2_000


class Tally:
    """Counts outcomes, and keeps of them what a run lists: failures before all others, `MAX_LISTED` at most."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.sources = 0
        self.tried = 0
        self.error = ""  # of the first that failed
        self._failed: list[SourceOutcome] = []
        self._others: list[SourceOutcome] = []
        self._states: dict[SourceState, int] = {}

    def add(self, outcome: SourceOutcome) -> None:
        self.sources += 1
        self.tried += outcome.state is not SourceState.SKIPPED
        self._states[outcome.state] = self._states.get(outcome.state, 0) + 1
        kept = self._failed if outcome.state is SourceState.FAILED else self._others
        if len(kept) < MAX_LISTED:
            kept.append(outcome)
        if outcome.state is SourceState.FAILED:
            self.error = self.error or outcome.error
        for name, value in (
            (f"sources_{outcome.state.value}", 1),
            ("sources", 1),
            ("entries", outcome.entries),
            ("bytes", outcome.bytes),
            ("problems", outcome.problems),
        ):
            self.counts[name] = self.counts.get(name, 0) + value

    def count(self, state: SourceState) -> int:
        """How many sources ended so."""
        return self._states.get(state, 0)

    def listed(self) -> list[dict[str, object]]:
        """What a run's row lists."""
        listed: list[dict[str, object]] = msgspec.to_builtins([*self._failed, *self._others][:MAX_LISTED])
        return listed
