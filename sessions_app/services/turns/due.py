"""Making room for a turn: the compaction that is due before it, and the one that a refusal asks for."""

from sessions_app.engine import triggers
from sessions_app.engine.signal import Signal
from sessions_app.engine.steps import ShouldStop, Stopped
from sessions_app.engine.terms import Origin, Scope
from sessions_app.models import Session
from sessions_app.selectors import plans
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.compactions.step_events import WORKER
from sessions_app.services.turns.claims import TurnClaim


def compact_if_due(held: TurnClaim, should_stop: ShouldStop) -> None:
    """Compacts the session before its turn where the policy says so, in this thread. Raises `Stopped`."""
    session = Session.objects.get(pk=held.session_id)
    policy = plans.effective_policy(session).policy
    signal = Signal(
        tokens=session.signal_tokens or 0,
        origin=Origin(session.signal_origin),
        scope=Scope(session.signal_scope),
        measured=session.signal_measured,
    )
    verdict = triggers.before_turn(signal=signal, policy=policy, window=session.window)
    if not verdict.fires:
        return
    if (stop := should_stop()) is not None:
        raise Stopped(stop)
    run_compaction(request(actor=WORKER, session=session, trigger=verdict.trigger).compaction.pk)


def make_room(held: TurnClaim) -> bool:
    """After a refusal for length: whether the view became smaller, so that the request may be made again."""
    return False
