"""The extractive summariser at the pace of a model, for demonstrations and for trying out progress and cancelling."""

import time

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.steps import ShouldStop, Stopped, SummaryAnswer, SummaryRequest

SLICE_S = 0.1  # so that a stop takes effect well within a second


class ScriptedSummariser:
    """Waits `delay_s` before each answer. The waiting ends at once, with `Stopped`, when it should."""

    name = "scripted"
    is_model = False
    window = 16_000  # small, so that a session of the usual size takes several calls and shows progress

    def __init__(self, *, delay_s: float) -> None:
        self._delay_s = delay_s
        self._extractive = ExtractiveSummariser()

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        ends = time.monotonic() + self._delay_s
        while (left := ends - time.monotonic()) > 0:
            if (stop := should_stop()) is not None:
                raise Stopped(stop)
            time.sleep(min(SLICE_S, left))
        return self._extractive.summarise(request, should_stop)
