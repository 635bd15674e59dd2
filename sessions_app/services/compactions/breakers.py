"""The breaker of a session, and the guard against refilling: counted where an attempt ends, set back by a success or a person."""

import uuid
from datetime import UTC, datetime

from django.db import transaction

from sessions_app.engine.breaker import REFILL_TURNS, REFILLS, SUCCESSES, Breaker, is_refilling
from sessions_app.engine.terms import Kind, Outcome, Role, Trigger
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Entry, Session
from sessions_app.services.compactions.lease import database_time

_MOST_NAMED = 3
_FILL_WORDS = {"block": "the compacted block", "results": "tool results", "calls": "tool calls", "system": "the system prompt"}


def breaker_of(session: Session) -> Breaker:
    """The breaker as the session's row keeps it; its times are seconds of the database's clock."""
    failed_at = session.breaker_failed_at
    return Breaker(failures=session.breaker_failures, failed_at=failed_at.timestamp() if failed_at else 0.0)


def is_open(session: Session) -> bool:
    """Whether automatic compaction rests. A query only where something failed."""
    return bool(session.breaker_failures) and not breaker_of(session).lets_through(database_time().timestamp())


def count(compaction_id: uuid.UUID, outcome: Outcome) -> None:
    """Counts how an attempt ended. Call in the transaction that ends it and holds its session's row.

    Any success closes the breaker; only what ran by itself can open it: a person who tries again sees what fails.
    """
    compaction = Compaction.objects.only("trigger", "session_id").get(pk=compaction_id)
    if compaction.trigger == Trigger.MANUAL and outcome not in SUCCESSES:
        return
    session = Session.objects.only("breaker_failures", "breaker_failed_at").get(pk=compaction.session_id)
    before = breaker_of(session)
    after = before.after(outcome, database_time().timestamp())
    if after != before:
        _store(session.pk, after)


def reset(*, actor: Actor, session: Session) -> Session:
    """Lets automatic compactions start again at once, and takes the warning of refilling away. Nothing happens where neither stands."""
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        if not current.breaker_failures and not current.refill_warning:
            return current
        _store(current.pk, Breaker())
        Session.objects.filter(pk=current.pk).update(refill_warning="")
        log.append(
            log.session_stream(current.pk),
            EventType.BREAKER_RESET,
            actor=actor,
            target=("session", str(current.pk)),
            before={"failures": current.breaker_failures, "warning": current.refill_warning},
            after={"failures": 0, "warning": ""},
        )
        current.refresh_from_db()
    return current


def refill_warning(session: Session, trigger: str) -> str:
    """What is to be said when an attempt that ran by itself is about to be committed: empty unless it makes no headway.

    `session` as it was before the attempt changed it: what its view held then is what fills it again and again.
    """
    if trigger == Trigger.MANUAL:
        return session.refill_warning
    earlier = Compaction.objects.filter(session_id=session.pk, generation__isnull=False, turn_id__isnull=False).order_by("-generation")
    dividers = list(earlier.values_list("divider_index", flat=True)[: REFILLS - 1])[::-1]
    if len(dividers) < REFILLS - 1:
        return ""
    if not is_refilling([*(-_turns_since(session, divider or 0) for divider in dividers), 0], 0):
        return ""
    total = sum(session.composition.values()) or 1
    biggest = sorted(session.composition.items(), key=lambda part: -part[1])[:_MOST_NAMED]
    named = ", ".join(f"{_FILL_WORDS.get(name, name)} {tokens:,} ({tokens / total:.0%})" for name, tokens in biggest)
    return (
        f"{REFILLS} compactions within {REFILL_TURNS} turns make no headway. What fills the window: {named}. "
        "Make these shorter, leave them out of the view, or choose a model with a larger window."
    )


def _turns_since(session: Session, index: int) -> int:
    """How many messages people sent since an entry; no more than the guard can tell apart."""
    sent = Entry.objects.filter(session_id=session.pk, index__gt=index, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    return len(sent.order_by("index").values_list("index")[: REFILL_TURNS + 1])


def _store(session_id: uuid.UUID, breaker: Breaker) -> None:
    failed_at = datetime.fromtimestamp(breaker.failed_at, UTC) if breaker.failures else None
    Session.objects.filter(pk=session_id).update(breaker_failures=breaker.failures, breaker_failed_at=failed_at)
