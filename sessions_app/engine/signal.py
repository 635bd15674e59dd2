"""How full a context is believed to be, and where that belief comes from."""

import msgspec

from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.terms import Origin, Scope


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider counted for the last request: its whole prompt, and the estimate of all that came after it."""

    prompt_tokens: int
    appended_tokens: int  # estimated: the answer to that very request, and every later entry of the view
    at: str = ""  # time of the request, as the source gave it


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that a view occupies. `measured` and `appended` stand apart, so that nobody takes an estimate for a count."""

    tokens: int
    origin: Origin
    scope: Scope
    measured: int | None = None
    measured_at: str = ""
    appended: int = 0


def derive(*, measurement: Measurement | None, view_tokens: int, calibration: Calibration = NONE) -> Signal:
    """The signal of a view: a measurement made after its checkpoint and what was appended since, else its estimate.

    `view_tokens` is the estimate of the whole view. A measurement that is older than the checkpoint counts a context
    that is gone: the caller leaves it out. With a `calibration`, an estimate is of the whole request as a provider would
    measure it; without one it stays what it is, and its scope says so.
    """
    if measurement is None:
        if not calibration.prompts:
            return Signal(tokens=view_tokens, origin=Origin.ESTIMATED, scope=Scope.VIEW)
        return Signal(tokens=calibration.request(view_tokens), origin=Origin.ESTIMATED, scope=Scope.WHOLE_REQUEST)
    appended = calibration.tokens(measurement.appended_tokens)
    return Signal(
        tokens=measurement.prompt_tokens + appended,
        origin=Origin.MEASURED,
        scope=Scope.WHOLE_REQUEST,
        measured=measurement.prompt_tokens,
        measured_at=measurement.at,
        appended=appended,
    )
