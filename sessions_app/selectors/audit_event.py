"""One event of the audit log, opened: its place in its chain, and what happened in the same press or request."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.contrib.auth.models import User

from sessions_app.events.log import SESSION_PREFIX, event_hash
from sessions_app.models import AccessToken, ActorKind, Event, EventStream, ImportRun, Project, Session
from sessions_app.selectors.audit import equals

NEIGHBOURS = 20


@dataclass(frozen=True)
class AuditEvent:
    """An event with what surrounds it. `is_intact`: its hash is that of its content; `follows`: it names the hash before it."""

    event: Event
    last_seq: int
    is_intact: bool
    follows: bool
    previous: int | None
    next: int | None
    same_gesture: tuple[Event, ...] = ()
    same_request: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Targets:
    """Names of what events are about, by id; what is missing here does not exist, or not any more."""

    sessions: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)  # also those by which somebody acted


def audit_event(event_id: int) -> AuditEvent | None:
    """The event with its surroundings, None when there is none. At most five queries."""
    event = Event.objects.filter(pk=event_id).first()
    if event is None:
        return None
    beside = Event.objects.filter(stream=event.stream, seq__in=(event.seq - 1, event.seq + 1)).values_list("pk", "seq", "hash")
    around = {seq: (pk, bytes(digest)) for pk, seq, digest in beside}
    before, after = around.get(event.seq - 1), around.get(event.seq + 1)
    return AuditEvent(
        event=event,
        last_seq=EventStream.objects.filter(name=event.stream).values_list("last_seq", flat=True).first() or 0,
        is_intact=event_hash(event) == bytes(event.hash),
        follows=bytes(event.previous_hash) == (before[1] if before else b""),
        previous=before and before[0],
        next=after and after[0],
        same_gesture=_same(event, "gesture_id"),
        same_request=_same(event, "request_id"),
    )


def _same(event: Event, name: str) -> tuple[Event, ...]:
    value = getattr(event, name)
    return tuple(Event.objects.filter(equals(name, value)).exclude(pk=event.pk).order_by("at", "pk")[:NEIGHBOURS]) if value else ()


def targets_of(events: Iterable[Event]) -> Targets:
    """The names of what these events are about, and of the tokens that were used. Five queries at most."""
    ids: dict[str, set[str]] = {"session": set(), "user": set(), "import": set(), "project": set(), "token": set()}
    for event in events:
        if event.actor_kind == ActorKind.TOKEN:
            ids["token"].add(event.actor_id)
        if event.target_kind in ids and event.target_id:
            ids[event.target_kind].add(event.target_id)
        if event.stream.startswith(SESSION_PREFIX):
            ids["session"].add(event.stream.removeprefix(SESSION_PREFIX))
    numbers = [int(number) for number in ids["user"] if number.isdecimal()]
    sessions = [one for one in ids["session"] if _is_uuid(one)]
    imports = [one for one in ids["import"] if _is_uuid(one)]
    projects = [one for one in ids["project"] if _is_uuid(one)]
    tokens = [one for one in ids["token"] if _is_uuid(one)]
    return Targets(
        sessions={str(pk): title for pk, title in Session.objects.filter(pk__in=sessions).values_list("pk", "title")} if sessions else {},
        users={str(pk): name for pk, name in User.objects.filter(pk__in=numbers).values_list("pk", "username")} if numbers else {},
        imports={str(pk): name for pk, name in ImportRun.objects.filter(pk__in=imports).values_list("pk", "name")} if imports else {},
        projects={str(pk): name for pk, name in Project.objects.filter(pk__in=projects).values_list("pk", "name")} if projects else {},
        tokens={str(pk): name for pk, name in AccessToken.objects.filter(pk__in=tokens).values_list("pk", "name")} if tokens else {},
    )


def _is_uuid(text: str) -> bool:
    return len(text) == 36 and text.count("-") == 4 and all(letter in "0123456789abcdef-" for letter in text)
