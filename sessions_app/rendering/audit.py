"""An event of the audit log in words: its line in the table, and what it holds when it is opened."""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from sessions_app.events.types import label_of
from sessions_app.models import ActorKind, Event, EventResult
from sessions_app.rendering.ledger import facts_of
from sessions_app.rendering.plain import first_line
from sessions_app.selectors.audit_event import AuditEvent, Targets

MAX_VALUE_CHARS = 2_000
MAX_PAYLOAD_CHARS = 50_000
_NOBODY = "nobody signed in"
_ICONS: dict[str, str] = {
    ActorKind.USER: "user",
    ActorKind.TOKEN: "key",
    ActorKind.RUNNER: "cpu",
    ActorKind.SYSTEM: "gear",
    ActorKind.CLI: "term",
    ActorKind.ANONYMOUS: "globe",
}
_TONES: dict[str, str] = {EventResult.ALLOWED: "good", EventResult.REFUSED: "warn", EventResult.FAILED: "bad"}
_SESSION = "session:"


@dataclass(frozen=True)
class Target:
    """What an event is about. `page` is where that is shown (`session`, `compaction`, `import` or `project`), or empty."""

    words: str
    page: str = ""
    id: str = ""
    session_id: str = ""


@dataclass(frozen=True)
class AuditLine:
    """One row of the table."""

    id: int
    at: str
    icon: str
    kind: str
    actor: str
    role: str
    label: str
    type: str
    target: Target
    facts: str
    result: str
    tone: str
    gesture: str
    request: str
    address: str
    stream: str
    seq: int


@dataclass(frozen=True)
class Change:
    """One field that an event changed, as text; None where it had no value."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class OpenedEvent:
    """An event in full. Hashes are hexadecimal; `payload` is JSON with a line for each value."""

    line: AuditLine
    changes: tuple[Change, ...]
    reason: str
    payload: str
    hash: str
    previous_hash: str
    place: AuditEvent
    same_gesture: tuple[AuditLine, ...]
    same_request: tuple[AuditLine, ...]


def audit_lines(events: Iterable[Event], targets: Targets) -> tuple[AuditLine, ...]:
    """A row for each event."""
    return tuple(_line(event, targets) for event in events)


def opened_event(opened: AuditEvent, targets: Targets) -> OpenedEvent:
    """The event in full."""
    event = opened.event
    return OpenedEvent(
        line=_line(event, targets),
        changes=changes_of(event.before, event.after),
        reason=event.reason,
        payload=_json(event.payload)[:MAX_PAYLOAD_CHARS] if event.payload else "",
        hash=bytes(event.hash).hex(),
        previous_hash=bytes(event.previous_hash).hex(),
        place=opened,
        same_gesture=audit_lines(opened.same_gesture, targets),
        same_request=audit_lines(opened.same_request, targets),
    )


def changes_of(before: object, after: object, *, indent: bool = True) -> tuple[Change, ...]:
    """What differs, field by field; a value that is no object counts as one field. `indent`: nested values on several lines."""
    if before is None and after is None:
        return ()
    if not all(isinstance(value, dict | None) for value in (before, after)):
        return (Change("value", _text(before, indent), _text(after, indent)),)
    old: dict[str, object] = before if isinstance(before, dict) else {}
    new: dict[str, object] = after if isinstance(after, dict) else {}
    fields = [*old, *(field for field in new if field not in old)]
    return tuple(
        Change(field, _text(old.get(field), indent), _text(new.get(field), indent))
        for field in fields
        if field not in old or field not in new or old[field] != new[field]
    )


def _line(event: Event, targets: Targets) -> AuditLine:
    return AuditLine(
        id=event.pk,
        at=event.at,
        icon=_ICONS.get(event.actor_kind, "user"),
        kind=event.actor_kind,
        actor=_actor(event, targets),
        role=event.actor_role,
        label=label_of(event.type),
        type=event.type,
        target=_target(event, targets),
        facts=first_line(_facts(event), 300),
        result=event.result,
        tone=_TONES.get(event.result, ""),
        gesture=event.gesture_id,
        request=event.request_id,
        address=event.address,
        stream=event.stream,
        seq=event.seq,
    )


def _actor(event: Event, targets: Targets) -> str:
    """Who acted; with a token, whose it is and which."""
    if event.actor_kind == ActorKind.TOKEN and event.actor_id in targets.tokens:
        return f"{event.actor_name} by token {targets.tokens[event.actor_id]}"
    return event.actor_name or (_NOBODY if event.actor_kind == ActorKind.ANONYMOUS else event.actor_id or event.actor_kind)


def _facts(event: Event) -> str:
    changes = [
        f"{change.field.replace('_', ' ')} {change.before or 'none'} → {change.after or 'none'}"
        for change in changes_of(event.before, event.after, indent=False)[:3]
    ]
    return " · ".join(filter(None, [event.reason, *changes, facts_of(event)]))


def _target(event: Event, targets: Targets) -> Target:
    kind, identifier = event.target_kind, event.target_id
    session_id = event.stream.removeprefix(_SESSION) if event.stream.startswith(_SESSION) else ""
    if event.compaction_id and session_id in targets.sessions:
        return Target(f"compaction in {targets.sessions[session_id]}", "compaction", str(event.compaction_id), session_id)
    if kind == "session" or (not kind and session_id):
        return _session(identifier or session_id, targets)
    if kind == "import":
        name = targets.imports.get(identifier)
        return Target(f"import {name}", "import", identifier) if name else Target(f"import {identifier[:8]}")
    if kind == "project":
        name = targets.projects.get(identifier)
        return Target(f"project {name}", "project", identifier) if name else Target(f"project {identifier[:8]}, not here")
    if kind == "token" and identifier in targets.tokens:
        return Target(f"token {targets.tokens[identifier]}")
    if kind == "user":
        return Target(f"user {targets.users.get(identifier) or identifier or 'unknown'}")
    if session_id in targets.sessions and kind != "session":
        return Target(f"{kind} {identifier[:40]} in {targets.sessions[session_id]}", "session", session_id, session_id)
    return Target(f"{kind.replace('_', ' ')} {identifier}".strip())


def _session(identifier: str, targets: Targets) -> Target:
    title = targets.sessions.get(identifier)
    return (
        Target(f"session {title}", "session", identifier, identifier)
        if title is not None
        else Target(f"session {identifier[:8]}, not here")
    )


def _text(value: object, indent: bool) -> str | None:  # noqa: FBT001  handed on
    if value is None:
        return None
    text = value if isinstance(value, str) else _json(value, indent=indent)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]} … ({len(text):,} characters)"


def _json(value: object, *, indent: bool = True) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
