"""Forks: a session of its own that begins with a copy of another one's history, at one of its generations.

Entries, plans and decisions are copied; blobs are shared, and records stay with the origin. What the copied entries cost is
counted there too.

It is copied in short transactions, hidden until all of it is there. What a process that was killed left of one is removed by
the sweep, which knows it by its silence.
"""

import uuid
from contextlib import suppress
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Now

from sessions_app.engine.terms import Lineage, Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import (
    ClearedResult,
    Compaction,
    Entry,
    EventResult,
    Override,
    PolicyScope,
    PolicyValue,
    Session,
    SessionKind,
    SessionRelation,
    ViewSegment,
    new_id,
)
from sessions_app.providers.turn_models import UnusableModel, parse_model
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.revert import UnknownGeneration
from sessions_app.services.turns.sessions import AGENT, WINDOWS

CHUNK = 5_000
"""Entries that one transaction copies: no other writer waits longer than that takes."""

SILENT_S = 300
"""A fork that was not written to for so long is nobody's any more."""

WORKER_LOST = "worker_lost"
_UNDER_WAY, _LEFT = "fork:", "left:"
"""How the key of a fork begins; and that of one which is being removed, so that whoever copied it can't go on."""

_LEFT_WITH_ORIGIN = {"id", "session", "usage"}
_SESSION_COLUMNS = (
    *("project_id", "agent", "agent_version", "model", "provider", "window_override", "window_reported"),
    *("working_directory", "branch", "goal", "labels", "started_at", "last_activity_at"),
)


class InvalidFork(Exception):  # noqa: N818  it says what is the matter
    """A session can't be forked so; nothing was made. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was made.")


def fork(
    *, actor: Actor, session: Session, generation: int | None = None, as_it_was: bool = False, model: str = "", title: str = ""
) -> Session:
    """A new session whose history is a copy of this one's, with a checkpoint of it in force.

    `generation`: which checkpoint; 0 for none of this console; None for what is in force now. `as_it_was`: the history ends
    where it did when that checkpoint was committed, else with the newest entry. `model` (as `parse_model` takes it) makes it a
    session that is held here and goes on with that model; a session that is held here is forked into one in any case, any
    other into a copy that can be compacted and exported. Raises `UnknownGeneration` and `InvalidFork`.
    """
    if not session.is_complete:
        raise InvalidFork("session", "This session is still being taken in; fork it when it is whole.")
    chosen = _checkpoint(session, generation)
    end = session.entry_count
    if as_it_was:
        if chosen is None or chosen.divider_index is None:
            raise InvalidFork("as_it_was", "The whole history has no moment at which it was committed; fork it as it is now.")
        end = chosen.divider_index
    if not end:
        raise InvalidFork("session", "This session has no entries to copy.")
    copy = _begin(session, chosen, model, title, end)
    try:
        for first in range(0, end, CHUNK):
            with transaction.atomic():
                _hold(copy.pk)
                _copy_entries(session.pk, copy.pk, first, min(first + CHUNK, end))
        with transaction.atomic():
            return _finish(actor, session, copy, chosen, end, as_it_was=as_it_was)
    except BaseException:
        with suppress(DatabaseError, InterfaceError):  # the sweep removes it then
            _remove(copy.pk)
        raise


def _hold(copy: uuid.UUID, **columns: object) -> None:
    """A sign of life of an unfinished fork. Raises `InvalidFork` when the sweep took it for one that nobody works on."""
    if not _unfinished(_UNDER_WAY).filter(pk=copy).update(changed_at=Now(), **columns):
        raise InvalidFork("session", "The fork stood still for so long that it was given up. Try again.")


def _unfinished(key: str) -> QuerySet[Session]:
    return Session.objects.filter(source_key__startswith=key, is_complete=False)


def is_fork(session: Session) -> bool:
    """Whether a session that is not whole is a fork that was begun."""
    return session.source_key.startswith((_UNDER_WAY, _LEFT))


def is_left(session: Session) -> bool:
    """Whether nobody works on an unfinished fork any more, for all that can be known."""
    return _silent().filter(pk=session.pk).exists() or _unfinished(_LEFT).filter(pk=session.pk).exists()


def remove_left(*, actor: Actor, only: uuid.UUID | None = None) -> int:
    """Removes the forks whose process is gone, or one of them, and tells their origins. Returns how many."""
    left = Q() if only is None else Q(pk=only)
    for copy in _silent().filter(left).values_list("pk", flat=True):
        _silent().filter(pk=copy).update(source_key=f"{_LEFT}{copy}")
    return sum(_remove(copy, actor) for copy in list(_unfinished(_LEFT).filter(left).values_list("pk", flat=True)))


def _silent() -> QuerySet[Session]:
    return _unfinished(_UNDER_WAY).filter(changed_at__lte=Now() - timedelta(seconds=SILENT_S))


def _remove(copy: uuid.UUID, actor: Actor | None = None) -> bool:
    """Removes what there is of a fork, a part at a time: no other writer waits longer for that than for the copying."""
    for first in range(0, (Entry.objects.filter(session_id=copy).aggregate(last=Max("index"))["last"] or 0) + 1, CHUNK):
        Entry.objects.filter(session_id=copy, index__gte=first, index__lt=first + CHUNK).delete()
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",), no_key=True).filter(pk=copy, is_complete=False).first()
        if session is None:
            return False
        origin = session.parent_id
        session.delete()
        if actor is not None and origin is not None:
            facts: dict[str, object] = {"fork": str(copy)}
            _tell(actor, origin, facts, result=EventResult.FAILED, reason=WORKER_LOST)
    return True


def _checkpoint(session: Session, generation: int | None) -> Compaction | None:
    """The checkpoint that is to be in force: an agent's own where this console's is asked for and there is none."""
    if generation is None:
        return session.active_console or session.active_agent
    if generation == 0:
        return session.active_agent
    found = Compaction.objects.filter(session_id=session.pk, generation=generation, status=Status.COMPLETED).first()
    if found is None:
        raise UnknownGeneration(f"This session has no checkpoint #{generation}. Nothing was changed.")
    return found


def _begin(session: Session, chosen: Compaction | None, model: str, title: str, end: int) -> Session:
    """The row of the fork, which no list shows before it is whole."""
    columns = {name: getattr(session, name) for name in _SESSION_COLUMNS}
    kind = SessionKind.INLINE if session.kind == SessionKind.INLINE else SessionKind.IMPORTED
    if model:
        try:
            columns["provider"], columns["model"], window = parse_model(model.strip())
        except UnusableModel as error:
            raise InvalidFork("model", str(error)) from error
        if window is not None and not WINDOWS[0] <= window <= WINDOWS[1]:
            raise InvalidFork("model", f"A window has {WINDOWS[0]:,} to {WINDOWS[1]:,} tokens, not {window:,}.")
        kind = SessionKind.INLINE
        columns |= {"agent": AGENT, "agent_version": "", "window_override": window or session.window_override, "window_reported": None}
    identifier = new_id()
    where = f"#{chosen.generation}" if chosen else f"entry {end - 1:,}"
    return Session.objects.create(
        pk=identifier,
        title=(" ".join(title.split()) or f"{session.title} (fork at {where})")[:300],
        title_source="person" if title.strip() else "",
        kind=kind,
        parent=session,
        relation=SessionRelation.FORK,
        copied_from=session.source_key,
        source_key=f"{_UNDER_WAY}{identifier}",
        inherited_count=end,
        is_complete=False,
        **columns,
    )


def _copy_entries(origin: uuid.UUID, copy: uuid.UUID, first: int, end: int) -> None:
    """Copies entries from `first` to before `end` inside the database: no row passes through this process."""
    fields = [field for field in Entry._meta.concrete_fields if field.name not in _LEFT_WITH_ORIGIN]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    key = Entry._meta.get_field("session")
    ids = [key.get_db_prep_value(value, connection) for value in (copy, origin)]
    table, session_column, index = quote(Entry._meta.db_table), quote(str(key.column)), quote("index")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({session_column}, {columns}) "  # noqa: S608  names of our own columns
            f"SELECT %s, {columns} FROM {table} WHERE {session_column} = %s AND {index} >= %s AND {index} < %s ORDER BY {index}",
            [*ids, first, end],
        )


def _finish(actor: Actor, session: Session, copy: Session, chosen: Compaction | None, end: int, *, as_it_was: bool) -> Session:
    """Plans, decisions, sums and events; then it is whole."""
    # The origin's row first, as everything else that writes to both an attempt and its session.
    origin = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
    copied = _copy_checkpoints(copy, chosen, end)
    _copy_overrides(origin, copy, chosen if as_it_was else None, end)
    _copy_policy(origin, copy, actor)
    last = Entry.objects.filter(session_id=copy.pk).order_by("-index").values("index", "prefix_tokens", "tokens", "role", "prefix_hash")[0]
    by_lineage = {lineage: next((one for one in reversed(copied) if one.lineage == lineage), None) for lineage in Lineage}
    _hold(
        copy.pk,
        entry_count=last["index"] + 1,
        tokens_total=last["prefix_tokens"] + (0 if last["role"] == "notice" else last["tokens"]),
        head_hash=last["prefix_hash"],
        failure_count=Entry.objects.filter(session_id=copy.pk, is_error=True).count(),
        compaction_count=len(copied),
        # Dividers of the copied history name their numbers, also of checkpoints that were not copied.
        last_generation=origin.last_generation,
        last_attempt=max((one.attempt for one in copied), default=0),
        active_agent=by_lineage[Lineage.AGENT],
        active_console=by_lineage[Lineage.CONSOLE],
        is_complete=True,
    )
    facts: dict[str, object] = {"generation": chosen.generation if chosen else 0, "entries": end, "as_it_was": as_it_was}
    _tell(actor, origin.pk, facts | {"fork": str(copy.pk)})
    _tell(actor, copy.pk, facts | {"origin": str(origin.pk)})
    signals.refresh(copy.pk)
    copy.refresh_from_db()
    return copy


def _copy_checkpoints(copy: Session, chosen: Compaction | None, end: int) -> list[Compaction]:
    """The checkpoints that lead up to the chosen one, oldest first, as checkpoints of the copy."""
    chain: list[Compaction] = []
    at = chosen
    while at is not None and at.pk not in {one.pk for one in chain}:
        chain.append(at)
        at = at.parent
    made: dict[uuid.UUID, Compaction] = {}
    for one in reversed(chain):
        columns = {field.attname: getattr(one, field.attname) for field in Compaction._meta.concrete_fields}
        parent = made.get(one.parent_id) if one.parent_id else None
        divider = one.divider_index if one.divider_index is not None and one.divider_index < end else None
        columns |= {"id": new_id(), "session_id": copy.pk, "parent_id": parent.pk if parent else None, "divider_index": divider}
        made[one.pk] = Compaction.objects.create(**(columns | {"turn_id": None, "lease_token": None, "step": 0}))
    _copy_plans(made)
    return list(made.values())


def _copy_plans(made: dict[uuid.UUID, Compaction]) -> None:
    """The segments and cleared results of checkpoints, origin's id → copy, for the copies."""
    segments = ViewSegment.objects.filter(compaction_id__in=made).values(
        "compaction_id", "position", "kind", "first_index", "last_index", "payload", "tokens"
    )
    ViewSegment.objects.bulk_create(
        (ViewSegment(**(row | {"compaction_id": made[row["compaction_id"]].pk})) for row in segments), batch_size=500
    )
    cleared = ClearedResult.objects.filter(compaction_id__in=made).values("compaction_id", "entry_index", "reason")
    ClearedResult.objects.bulk_create(
        (ClearedResult(**(row | {"compaction_id": made[row["compaction_id"]].pk})) for row in cleared), batch_size=500
    )


def _copy_overrides(origin: Session, copy: Session, then: Compaction | None, end: int) -> None:
    """Pins and exclusions with how they came about: all of them, or those as of a checkpoint."""
    rows = Override.objects.filter(Q(session_id=origin.pk) & Q(entry_index__lt=end))
    held = plans.overrides_of(origin)
    if then is not None:
        rows = rows.filter(version__lte=then.override_version)
        held = plans.overrides_then(origin.pk, version=then.override_version)
    names = ("version", "entry_index", "kind", "is_on", "entry_count", "actor_name")
    Override.objects.bulk_create((Override(session=copy, **row) for row in rows.order_by("id").values(*names)), batch_size=500)
    if held.version:
        pinned, excluded = (sorted(index for index in indexes if index < end) for indexes in (held.pinned, held.excluded))
        stored = {"version": held.version, "pinned": pinned, "excluded": excluded, "since": min(held.since, end)}
        Session.objects.filter(pk=copy.pk).update(overrides=stored)


def _copy_policy(origin: Session, copy: Session, actor: Actor) -> None:
    values = PolicyValue.objects.filter(scope=PolicyScope.SESSION, scope_id=str(origin.pk)).values("field", "value")
    PolicyValue.objects.bulk_create(
        PolicyValue(scope=PolicyScope.SESSION, scope_id=str(copy.pk), author=actor.name, **value) for value in values
    )


def _tell(
    actor: Actor, session_id: uuid.UUID, payload: dict[str, object], *, result: EventResult = EventResult.ALLOWED, reason: str = ""
) -> None:
    log.append(
        log.session_stream(session_id),
        EventType.SESSION_FORKED,
        actor=actor,
        result=result,
        target=("session", str(session_id)),
        reason=reason,
        payload=payload,
    )
