"""What the audit log can be filtered by, and what each filter offers."""

from dataclasses import dataclass

from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, EventResult
from sessions_app.selectors.audit import FAMILIES, AuditFilters
from sessions_app.selectors.session_filters import Choice, FilterChoices

_ROLES = ("operator", "support", "admin")
_FAMILY_WORDS = {
    "session": "sessions",
    "security": "security: accounts and policies",
    "access": "access: reads and exports",
    "imports": "imports",
    "project": "projects",
}


@dataclass(frozen=True)
class TextFilter:
    """A filter that is typed: its name in the address, what it is about, what it holds, and the type of its field."""

    name: str
    label: str
    value: str
    type: str = "text"


def choices(filters: AuditFilters) -> tuple[FilterChoices, ...]:
    """The filters that are chosen from a list."""
    actions = sorted((Choice(str(event_type), event_type.label) for event_type in EventType), key=lambda choice: choice.label)
    offered = (
        FilterChoices("action", "Action", tuple(actions)),
        FilterChoices("family", "Streams", tuple(Choice(family, _FAMILY_WORDS[family]) for family in FAMILIES)),
        FilterChoices("kind", "Kind of actor", tuple(Choice(kind.value, kind.value) for kind in ActorKind)),
        FilterChoices("role", "Role then", tuple(Choice(role, role) for role in _ROLES)),
    )
    return tuple(choice.choosing(filters.value_of(choice.name), filters.value_of(choice.name)) for choice in offered)


def texts(filters: AuditFilters) -> tuple[TextFilter, ...]:
    """The filters that are typed in full."""
    typed = (
        ("actor", "Actor", "text"),
        ("session", "Session, by id", "text"),
        ("target", "Target, by id", "text"),
        ("compaction", "Compaction, by id", "text"),
        ("request", "Request", "text"),
        ("gesture", "Gesture", "text"),
        ("stream", "Stream", "text"),
        ("address", "Address", "text"),
        ("since", "Since, UTC", "datetime-local"),
        ("until", "Until, UTC", "datetime-local"),
    )
    return tuple(TextFilter(name, label, filters.value_of(name), kind) for name, label, kind in typed)


RESULTS = tuple(EventResult.values)
