"""The registry of event types: five steps of a compaction, and the actions of people, agents and the system."""

from enum import StrEnum


class EventType(StrEnum):
    # The five steps of an attempt; the exact names are part of the product's contract.
    COMPACTION_TRIGGERED = "compaction.triggered"
    COMPACTION_CHUNK_SUMMARIZED = "compaction.chunk_summarized"
    COMPACTION_SUMMARY_VERIFIED = "compaction.summary_verified"
    COMPACTION_PERSISTED = "compaction.persisted"
    COMPACTION_REPLAYED = "compaction.replayed"
    # Actions.
    COMPACTION_REQUESTED = "compaction.requested"
    COMPACTION_JOINED = "compaction.joined"
    COMPACTION_HEARTBEAT = "compaction.heartbeat"
    COMPACTION_CANCEL_REQUESTED = "compaction.cancel_requested"
    COMPACTION_REVERTED = "compaction.reverted"
    ENTRIES_APPENDED = "entries.appended"
    SESSION_IMPORTED = "session.imported"
    SESSION_STATUS_CHANGED = "session.status_changed"
    SESSION_VIEWED = "session.viewed"
    SESSION_EXPORTED = "session.exported"
    IMPORT_REQUESTED = "import.requested"
    IMPORT_FINISHED = "import.finished"
    IMPORT_CANCELLED = "import.cancelled"
    ACCESS_REFUSED = "access.refused"
    SIGNED_IN = "user.signed_in"
    SIGN_IN_FAILED = "user.sign_in_failed"
    SIGNED_OUT = "user.signed_out"
    USER_CREATED = "user.created"
    POLICY_CHANGED = "policy.changed"


FIVE_STEPS = frozenset(
    {
        EventType.COMPACTION_TRIGGERED,
        EventType.COMPACTION_CHUNK_SUMMARIZED,
        EventType.COMPACTION_SUMMARY_VERIFIED,
        EventType.COMPACTION_PERSISTED,
        EventType.COMPACTION_REPLAYED,
    },
)
