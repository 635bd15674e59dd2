"""Sessions that began as copies of others: ties them to where they are from, and counts what was copied once.

A fork's source begins with the rows of the session that it was made from, and so may that of a session that was
resumed. Copied entries stay in the history, since the model sees them; what they cost stays with the session in
which it was spent.
"""

from collections.abc import Mapping
from datetime import timedelta

from sessions_app import prepared
from sessions_app.models import Entry, Session, SessionRelation
from sessions_app.readers.base import SessionFacts, SourceIdentity
from sessions_app.services import signals
from sessions_app.services.imports.identity import session_key
from sessions_app.services.imports.lanes import Lane

RESUMED_WITHIN = timedelta(minutes=10)
"""So soon after a session's last entry another one goes on with its summary, where nothing names the first one."""


def settle(lanes: Mapping[str, Lane], facts: SessionFacts, *, is_sub_agent: bool) -> None:
    """Ties a session that was just read to its origin, and those to it that wait for it. Call when all of it is stored."""
    main = lanes[""]
    session = main.session
    if not is_sub_agent:
        origin = _origin(session, facts)
        if origin is not None:
            copied = facts.inherited.get("", 0) or (_common_entries(origin, session) if main.was_empty else session.inherited_count)
            _tie(session, origin, copied, is_fork=facts.is_fork)
            _settle_side_chains(lanes, facts)
        elif facts.inherited:
            prepared.save(session, inherited_count=facts.inherited.get("", 0))
    elif facts.inherited.get(""):
        prepared.save(session, inherited_count=facts.inherited[""])
    if main.was_empty and prepared.exists(Session, copied_from=session.source_key):
        copies = Session.objects.filter(copied_from=session.source_key, parent=None).exclude(copied_from="")  # in the words of its index
        for copy in copies.exclude(pk=session.pk):
            _tie(copy, session, copy.inherited_count or _common_entries(session, copy), is_fork=copy.relation == SessionRelation.FORK)


def _origin(session: Session, facts: SessionFacts) -> Session | None:
    """The session that this one was made from, if it is stored; notes its key for the case that it comes later."""
    if session.relation == SessionRelation.SUB_AGENT:
        return None
    if session.parent_id is not None:
        return session.parent
    if facts.copied_from:
        key = session_key(session.agent, SourceIdentity(session_id=facts.copied_from))
        relation = SessionRelation.FORK if facts.is_fork else SessionRelation.CONTINUATION
        prepared.save(session, copied_from=key, relation=relation)
        return Session.objects.filter(source_key=key).exclude(pk=session.pk).first()
    if facts.first_source_id and not session.first_source_id:
        twin = _twin(session, facts.first_source_id)
        prepared.save(session, first_source_id=facts.first_source_id)
        if twin is not None:
            return twin
    return _went_before(session) if facts.is_continued else None


def _twin(session: Session, first_source_id: str) -> Session | None:
    """The session that this one is a copy of, by its first entry. Where it is the other way round, that one is tied to this."""
    if not prepared.exists(Session, first_source_id=first_source_id):
        return None
    others = Session.objects.filter(first_source_id=first_source_id, agent=session.agent, is_complete=True)
    others = others.exclude(first_source_id="")  # else its index, which holds no empty ones, would not be used
    for other in others.exclude(pk=session.pk).exclude(relation=SessionRelation.SUB_AGENT).order_by("created_at")[:50]:
        common = _common_entries(other, session)
        if _goes_on_earlier(session, other, common):
            if other.parent_id is None:
                _tie(other, session, common, is_fork=False)
            continue
        return other
    return None


def _goes_on_earlier(one: Session, other: Session, common: int) -> bool:
    """Whether the first entry that only `one` has is older than the first that only `other` has."""
    mine, theirs = (
        Entry.objects.filter(session=session, index=common).values_list("timestamp", flat=True).first() for session in (one, other)
    )
    return theirs is not None and (mine is None or mine < theirs)


def _went_before(session: Session) -> Session | None:
    """The only session of the same folder that ended just before this one began with a summary."""
    if session.project_id is None or session.started_at is None:
        return None
    began = session.started_at
    near = Session.objects.filter(project=session.project_id, agent=session.agent, last_activity_at__range=(began - RESUMED_WITHIN, began))
    found = list(near.exclude(pk=session.pk).exclude(relation=SessionRelation.SUB_AGENT)[:2])
    return found[0] if len(found) == 1 else None


def _tie(session: Session, origin: Session, copied: int, *, is_fork: bool) -> None:
    """Makes a session the child of its origin; the cost of the first `copied` entries is left to that one."""
    if origin.pk == session.pk or _is_below(origin, session):
        return
    forked = is_fork or (bool(copied) and _goes_on(origin, copied))
    prepared.save(
        session,
        parent_id=origin.pk,
        relation=SessionRelation.FORK if forked else SessionRelation.CONTINUATION,
        copied_from=origin.source_key,
        inherited_count=copied,
    )
    _leave_cost(session, copied)


def _settle_side_chains(lanes: Mapping[str, Lane], facts: SessionFacts) -> None:
    for key, copied in facts.inherited.items():
        if key and key in lanes:
            prepared.save(lanes[key].session, inherited_count=copied)
            _leave_cost(lanes[key].session, copied)


def _leave_cost(session: Session, copied: int) -> None:
    if copied and Entry.objects.filter(session=session, index__lt=copied, usage__isnull=False).update(usage=None):
        signals.refresh(session.pk)


def _goes_on(origin: Session, common: int) -> bool:
    """Whether somebody spoke in the origin after what both have."""
    return Entry.objects.filter(session=origin, index__gte=common, role__in=("user", "assistant")).exists()


def _is_below(session: Session, other: Session) -> bool:
    """Whether `session` hangs on `other`: nothing may be its own ancestor."""
    seen = {session.pk}
    parent = session.parent
    while parent is not None and parent.pk not in seen:
        if parent.pk == other.pk:
            return True
        seen.add(parent.pk)
        parent = parent.parent
    return False


def _common_entries(one: Session, other: Session) -> int:
    """How many entries two sessions begin with in common. Their rolling hashes tell: a few reads, whatever their length."""
    low, high = 0, min(one.entry_count, other.entry_count)
    while low < high:
        middle = (low + high + 1) // 2
        hashes = Entry.objects.filter(session__in=(one.pk, other.pk), index=middle - 1).values_list("prefix_hash", flat=True)
        told = [bytes(value) for value in hashes]
        if len(told) == 2 and told[0] == told[1]:
            low = middle
        else:
            high = middle - 1
    return low
