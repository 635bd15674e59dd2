"""Choosing another model for a session that is held here, and another window for any session."""

from django.db import transaction

from sessions_app.engine.policy import window_for
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Session, SessionKind
from sessions_app.permissions import Action, require
from sessions_app.providers.registry import summarisers_for
from sessions_app.providers.turn_models import UnusableModel, parse_model
from sessions_app.selectors import plans
from sessions_app.selectors.model_choices import switch_verdict
from sessions_app.services import signals
from sessions_app.services.compactions import automatic
from sessions_app.services.compactions.automatic import Decision, NotOurs
from sessions_app.services.turns.sessions import WINDOWS


class InvalidChoice(Exception):  # noqa: N818  it says what is the matter
    """There is no such model here, or no such window; nothing was changed. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was changed.")


def choose(*, actor: Actor, session: Session, name: str, window: int | None = None, may_wait: bool = True) -> Decision:
    """Takes a session that is held here over to another model, compacted first where its view is too large for it.

    `name` as `parse_model` reads it; `window` in tokens, by default the model's own. Without `may_wait`, what would need a
    summary by a model is refused instead, since that takes minutes. `Decision.refusal` says why nothing was switched.
    Raises `InvalidChoice`, `permissions.ActionRefused`, and what `automatic.switch_model` does.
    """
    require(actor, Action.CHOOSE_MODEL, target=("session", str(session.pk)))
    try:
        provider, model, named_window = parse_model(name.strip())
    except UnusableModel as error:
        raise InvalidChoice("model", str(error)) from error
    window = _checked(window or named_window)
    if not may_wait and session.kind == SessionKind.INLINE:
        policy = plans.effective_policy(session).policy
        verdict = switch_verdict(session, policy, window or window_for(model))
        if verdict.fires and any(summariser.is_model for summariser in summarisers_for(policy)):
            return Decision(
                verdict=verdict,
                refusal=(
                    f"{verdict.explanation} It has to be compacted first, and its policy lets a model write the summary, which takes "
                    "longer than a page waits. Nothing was changed. Compact it, then choose the model."
                ),
            )
    return automatic.switch_model(session=session, actor=actor, model=model, provider=provider, window=window)


def set_window(*, actor: Actor, session: Session, window: int | None) -> bool:
    """Says how many tokens the model of a session takes; None leaves it to the agent's report and the table of models.

    Returns whether that changed anything. Only for sessions whose model is the agent's: of one that is held here the window
    is chosen with the model. Raises `InvalidChoice`, `NotOurs` and `permissions.ActionRefused`.
    """
    require(actor, Action.CHOOSE_MODEL, target=("session", str(session.pk)))
    if session.kind == SessionKind.INLINE:
        raise NotOurs("The window of this session is chosen together with its model. Nothing was changed.")
    _checked(window)
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        if current.window_override == window:
            return False
        Session.objects.filter(pk=session.pk).update(window_override=window)
        signals.refresh(session.pk)
        log.append(
            log.session_stream(session.pk),
            EventType.SESSION_MODEL_CHANGED,
            actor=actor,
            target=("session", str(session.pk)),
            before={"window_override": current.window_override},
            after={"window_override": window},
        )
    session.refresh_from_db()
    return True


def _checked(window: int | None) -> int | None:
    if window is not None and not WINDOWS[0] <= window <= WINDOWS[1]:
        raise InvalidChoice("window", f"A window has {WINDOWS[0]:,} to {WINDOWS[1]:,} tokens, not {window:,}.")
    return window
