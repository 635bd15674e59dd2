"""Pinning and excluding single entries, and taking it back. The history stays as it is; views follow at once."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from sessions_app import permissions
from sessions_app.engine.overrides import MAX_OVERRIDES, Overrides, Together, together
from sessions_app.engine.terms import Kind, Role
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Entry, Override, OverrideKind, Session
from sessions_app.permissions import Action
from sessions_app.selectors import cuts, plans
from sessions_app.services import signals

REACH = 400
"""Entries on either side in which partners of a call are looked for first; then four times as many, at last in all."""


class CannotOverride(Exception):
    """The entry can't be pinned or excluded. The text says why, and that nothing was changed."""


@dataclass(frozen=True)
class OverrideAnswer:
    """`indexes`: the entries that changed, the asked one and what goes with it; none when it was so already."""

    session: Session
    indexes: tuple[int, ...]
    sentence: str


def pin(*, actor: Actor, session: Session, index: int) -> OverrideAnswer:
    """Lets an entry stand word for word in every view from now on, with the results of its calls or the call that it answers.

    Raises `CannotOverride`.
    """
    permissions.require(actor, Action.PIN, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    return _decide(actor, session, index, EventType.ENTRY_PINNED, _PIN)


def unpin(*, actor: Actor, session: Session, index: int) -> OverrideAnswer:
    """Takes a pin back. What stood word for word because of it stays until the next compaction folds it.

    Raises `CannotOverride` for an entry that there is not.
    """
    permissions.require(actor, Action.PIN, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    return _decide(actor, session, index, EventType.ENTRY_UNPINNED, _UNPIN)


def exclude(*, actor: Actor, session: Session, index: int) -> OverrideAnswer:
    """Lets an entry never be sent again, folded or summarised, with the results of its calls or the call that it answers.

    What an earlier summary says of it stays there. Raises `CannotOverride`.
    """
    permissions.require(actor, Action.EXCLUDE, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    return _decide(actor, session, index, EventType.ENTRY_EXCLUDED, _EXCLUDE)


def include(*, actor: Actor, session: Session, index: int) -> OverrideAnswer:
    """Takes an exclusion back: the entry stands in the view again, unless a summary stood for it before.

    Raises `CannotOverride` for an entry that there is not.
    """
    permissions.require(actor, Action.EXCLUDE, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    return _decide(actor, session, index, EventType.ENTRY_INCLUDED, _INCLUDE)


def restore(*, actor: Actor, session: Session, version: int) -> Session:
    """Sets pins and exclusions to what they were as of a version: new decisions, which can be taken back like any.

    Call it in the transaction that locked the session's row; the caller refreshes its signals.
    """
    before, then = plans.overrides_of(session), plans.overrides_then(session.pk, version=version)
    if (before.pinned, before.excluded) == (then.pinned, then.excluded):
        return session
    after = _store(actor, session, before, then.pinned, then.excluded)
    log.append(
        log.session_stream(session.pk),
        EventType.OVERRIDES_RESTORED,
        actor=actor,
        target=("session", str(session.pk)),
        before=_told(before),
        after=_told(after),
        payload={"version": after.version, "as_of": version},
    )
    return session


# What a decision makes of (pinned, excluded) for the entries that it is about.
_Sets = tuple[frozenset[int], frozenset[int]]
_Change = Callable[[frozenset[int], frozenset[int], frozenset[int]], _Sets]
_PIN: _Change = lambda pinned, excluded, some: (pinned | some, excluded - some)
_UNPIN: _Change = lambda pinned, excluded, some: (pinned - some, excluded)
_EXCLUDE: _Change = lambda pinned, excluded, some: (pinned - some, excluded | some)
_INCLUDE: _Change = lambda pinned, excluded, some: (pinned, excluded - some)

_DONE = {
    EventType.ENTRY_PINNED: "stays word for word in every view",
    EventType.ENTRY_UNPINNED: "is no longer pinned; where it stood because of that, it stays until the next compaction",
    EventType.ENTRY_EXCLUDED: "is not sent any more",
    EventType.ENTRY_INCLUDED: "is no longer excluded",
}


def _decide(actor: Actor, session: Session, index: int, event: EventType, change: _Change) -> OverrideAnswer:
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        before = plans.overrides_of(current)
        group = _checked(current, index, event)
        some = group.indexes
        pinned, excluded = change(before.pinned, before.excluded, some)
        if (pinned, excluded) == (before.pinned, before.excluded):
            return OverrideAnswer(current, (), f"Entry {index:,} was like that already. Nothing was changed.")
        if len(pinned) + len(excluded) > max(MAX_OVERRIDES, len(before.pinned) + len(before.excluded)):
            raise CannotOverride(
                f"A session may have {MAX_OVERRIDES} pinned and excluded entries, and this would be more: with entry {index:,} go"
                f" {len(some) - 1}. Nothing was changed. Take something back first."
            )
        after = _store(actor, current, before, pinned, excluded)
        changed = tuple(sorted(some & ((before.pinned ^ pinned) | (before.excluded ^ excluded))))
        log.append(
            log.session_stream(current.pk),
            event,
            actor=actor,
            target=("entry", str(index)),
            before=_told(before),
            after=_told(after),
            payload={"entries": list(changed), "version": after.version},
        )
        signals.refresh(current.pk)
        current.refresh_from_db()
    return OverrideAnswer(current, changed, _sentence(index, changed, event))


def _store(actor: Actor, session: Session, before: Overrides, pinned: frozenset[int], excluded: frozenset[int]) -> Overrides:
    """Writes the next version: its rows, and what holds now on the session's row."""
    version = before.version + 1
    changes = [
        *((OverrideKind.PINNED, index, index in pinned) for index in sorted(before.pinned ^ pinned)),
        *((OverrideKind.EXCLUDED, index, index in excluded) for index in sorted(before.excluded ^ excluded)),
    ]
    Override.objects.bulk_create(
        Override(
            session=session,
            version=version,
            entry_index=index,
            kind=kind,
            is_on=is_on,
            entry_count=session.entry_count,
            actor_name=actor.name,
        )
        for kind, index, is_on in changes
    )
    since = session.entry_count if before.excluded != excluded else before.since
    after = Overrides(pinned=pinned, excluded=excluded, version=version, since=since)
    stored = {"version": version, "pinned": sorted(pinned), "excluded": sorted(excluded), "since": since}
    Session.objects.filter(pk=session.pk).update(overrides=stored)
    session.overrides = stored
    return after


def _told(overrides: Overrides) -> dict[str, int]:
    """What an event says of all overrides; which entries changed stands in its payload."""
    return {"pinned": len(overrides.pinned), "excluded": len(overrides.excluded)}


def _checked(session: Session, index: int, event: EventType) -> Together:
    """What has to be decided together with the entry. Raises `CannotOverride` where it can't be decided."""
    row = Entry.objects.filter(session_id=session.pk, index=index).values_list("role", "kind", "off_branch").first()
    if row is None:
        raise CannotOverride(f"This session has no entry {index:,}; it has {session.entry_count:,}, counted from 0. Nothing was changed.")
    role, kind, off_branch = row
    takes_back = event in (EventType.ENTRY_UNPINNED, EventType.ENTRY_INCLUDED)
    verb = "excluded" if event is EventType.ENTRY_EXCLUDED else "pinned"
    if not takes_back:
        if role == Role.NOTICE:
            raise CannotOverride(f"Entry {index:,} is a notice, which no model ever sees: it can't be {verb}. Nothing was changed.")
        if off_branch:
            raise CannotOverride(
                f"Entry {index:,} lies on a branch that was left, so it is in no view: it can't be {verb}. Nothing was changed."
            )
        if index < cuts.after_system(session.pk):
            raise CannotOverride(
                f"Entry {index:,} belongs to the system prompt, which is always sent: it can't be {verb}. Nothing was changed."
            )
    group = _group(session.pk, index) if kind in (Kind.CALL, Kind.RESULT) else Together(indexes=frozenset({index}))
    if takes_back:
        return group
    if group.unanswered and not _asked_since(session.pk, max(call for call, _ in group.unanswered)):
        call, call_id = group.unanswered[0]
        raise CannotOverride(
            f"The call {call_id} (entry {call:,}) has no result yet, and a call goes with its result: it can be {verb} when it has one."
            " Nothing was changed."
        )
    if event is EventType.ENTRY_EXCLUDED and _is_open_request(session.pk, index, role, kind):
        raise CannotOverride(f"Entry {index:,} is the latest request and has no answer yet: it has to be sent. Nothing was changed.")
    return group


def _group(session_id: uuid.UUID, index: int) -> Together:
    """The entry with its partners, looked for in a stretch that grows until it holds them all or is the whole history."""
    reach = REACH
    while True:
        first = max(0, index - reach)
        shapes = plans.load_shapes(session_id, first, index + reach)
        group = together(shapes, index)
        is_whole = first == 0 and (not shapes or shapes[-1].index < index + reach)
        if is_whole or not (group.unanswered or group.orphans):
            return group
        reach *= 4


def _asked_since(session_id: uuid.UUID, index: int) -> bool:
    """Whether a person has written since: a call that has no result then will not get one."""
    later = Entry.objects.filter(session_id=session_id, index__gt=index, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    return later.exists()


def _is_open_request(session_id: uuid.UUID, index: int, role: str, kind: str) -> bool:
    if role != Role.USER or kind != Kind.MESSAGE or _asked_since(session_id, index):
        return False
    answers = Entry.objects.filter(session_id=session_id, index__gt=index, role=Role.ASSISTANT, kind=Kind.MESSAGE, off_branch=False)
    return not answers.exists()


def _sentence(index: int, changed: tuple[int, ...], event: EventType) -> str:
    others = [other for other in changed if other != index]
    if not others:
        return f"Entry {index:,} {_DONE[event]}."
    named = ", ".join(f"{other:,}" for other in others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return f"Entry {index:,} {_DONE[event]}. The same goes for {named}: a call and its results stay together."
