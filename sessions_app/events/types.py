"""The registry of event types: five steps of a compaction, and the actions of people, agents and the system."""

from enum import StrEnum


def words_for(value: str) -> str:
    """A type that has no words of its own, as words: `entry.pinned` is `Entry pinned`."""
    return value.replace(".", " ").replace("_", " ").capitalize()


class EventType(StrEnum):
    """Each type with the words that people read for it: `NAME = "noun.verb", "What happened"`."""

    label: str

    def __new__(cls, value: str, label: str = "") -> "EventType":
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label or words_for(value)
        return member

    # The five steps of an attempt; the exact names are part of the product's contract.
    COMPACTION_TRIGGERED = "compaction.triggered", "Compaction started or ended early"
    COMPACTION_CHUNK_SUMMARIZED = "compaction.chunk_summarized", "Compaction: chunk summarised"
    COMPACTION_SUMMARY_VERIFIED = "compaction.summary_verified", "Compaction: summary checked"
    COMPACTION_PERSISTED = "compaction.persisted", "Compaction stored"
    COMPACTION_REPLAYED = "compaction.replayed", "Compaction: next request sent with it"
    # Actions.
    COMPACTION_REQUESTED = "compaction.requested", "Compaction asked for"
    COMPACTION_JOINED = "compaction.joined", "Joined a compaction under way"
    COMPACTION_HEARTBEAT = "compaction.heartbeat", "Compaction progress"
    COMPACTION_CANCEL_REQUESTED = "compaction.cancel_requested", "Cancel of a compaction asked for"
    COMPACTION_DRAFTED = "compaction.drafted", "Compaction waits for review"
    DRAFT_EDITED = "draft.edited", "Draft of a summary edited"
    DRAFT_COMMITTED = "draft.committed", "Draft committed"
    DRAFT_DISCARDED = "draft.discarded", "Draft discarded"
    COMPACTION_REPORTED = "compaction.reported", "Compaction reported by the agent"
    COMPACTION_DECIDED = "compaction.decided", "Unknown outcome of a compaction settled"
    COMPACTION_REVERTED = "compaction.reverted", "Reverted to another generation"
    ENTRY_PINNED = "entry.pinned", "Entry pinned"
    ENTRY_UNPINNED = "entry.unpinned", "Entry no longer pinned"
    ENTRY_EXCLUDED = "entry.excluded", "Entry excluded"
    ENTRY_INCLUDED = "entry.included", "Entry no longer excluded"
    OVERRIDES_RESTORED = "overrides.restored", "Pins and exclusions set back"
    MEMORY_FLUSHED = "memory.flushed", "Facts kept in the project's memory"
    MEMORY_FLUSH_FAILED = "memory.flush_failed", "Facts not kept as they should be"
    MEMORY_REPAIR_REQUESTED = "memory.repair_requested", "Repair of kept facts asked for"
    MEMORY_FORGOTTEN = "memory.forgotten", "Fact forgotten"
    MEMORY_VIEWED = "memory.viewed", "Memory of a project read"
    BREAKER_RESET = "breaker.reset", "Automatic compaction let start again"
    ENTRIES_APPENDED = "entries.appended", "Entries added"
    SESSION_IMPORTED = "session.imported", "Session imported"
    SESSION_FORKED = "session.forked", "Session forked"
    SESSION_CREATED = "session.created", "Session begun here"
    TURN_QUEUED = "turn.queued", "Message sent"
    TURN_WITHDRAWN = "turn.withdrawn", "Message taken back"
    TURN_STARTED = "turn.started", "Turn began"
    TURN_CANCEL_REQUESTED = "turn.cancel_requested", "Stop of a turn asked for"
    TURN_COMPLETED = "turn.completed", "Turn answered"
    TURN_FAILED = "turn.failed", "Turn failed"
    TURN_CANCELLED = "turn.cancelled", "Turn stopped"
    SESSION_STATUS_CHANGED = "session.status_changed", "Status of a session changed"
    SESSION_REPAIRED = "session.repaired", "Session repaired"
    SESSION_MODEL_CHANGED = "session.model_changed", "Model or window of a session changed"
    SESSION_GOAL_CHANGED = "session.goal_changed", "Goal of a session changed"
    SESSION_USAGE_REPORTED = "session.usage_reported", "Tokens of a session reported by the agent"
    SESSION_EDITED = "session.edited", "Title, labels or archive of a session changed"
    SESSION_VIEWED = "session.viewed", "Session read"
    SESSION_EXPORTED = "session.exported", "Session exported"
    SEARCH_PERFORMED = "search.performed", "Searched"
    IMPORT_REQUESTED = "import.requested", "Import asked for"
    IMPORT_FINISHED = "import.finished", "Import finished"
    IMPORT_CANCELLED = "import.cancelled", "Import cancelled"
    WATCH_STARTED = "watch.started", "Following of folders began"
    WATCH_STOPPED = "watch.stopped", "Following of folders ended"
    ACCESS_REFUSED = "access.refused", "Access refused"
    SIGNED_IN = "user.signed_in", "Signed in"
    SIGN_IN_FAILED = "user.sign_in_failed", "Sign-in failed"
    SIGN_IN_LOCKED = "user.sign_in_locked", "Sign-in locked"
    SIGN_IN_UNLOCKED = "user.sign_in_unlocked", "Sign-in unlocked"
    SIGNED_OUT = "user.signed_out", "Signed out"
    USER_CREATED = "user.created", "User created"
    PASSWORD_CHANGED = "user.password_changed", "Password changed"
    PASSWORD_RESET = "user.password_reset", "Password reset"
    ROLE_CHANGED = "user.role_changed", "Role changed"
    USER_SWITCHED = "user.switched", "User switched on or off"
    TOKEN_CREATED = "token.created", "Access token made"
    TOKEN_REVOKED = "token.revoked", "Access token revoked"
    RUNNER_ADDED = "runner.added", "Runner added"
    RUNNER_CHANGED = "runner.changed", "Runner changed"
    RUNNER_REMOVED = "runner.removed", "Runner removed"
    RUNNER_TESTED = "runner.tested", "Runner tested"
    RUNNER_BOUND = "runner.bound", "Session bound to a runner"
    RUNNER_UNBOUND = "runner.unbound", "Session no longer bound to a runner"
    RUNNER_FORWARDED = "runner.forwarded", "Forwarded to the runner"
    POLICY_CHANGED = "policy.changed", "Policy changed"
    AUDIT_VIEWED = "audit.viewed", "Audit log read"
    AUDIT_EXPORTED = "audit.exported", "Audit log exported"
    AUDIT_VERIFIED = "audit.verified", "Audit log verified"


FIVE_STEPS = frozenset(
    {
        EventType.COMPACTION_TRIGGERED,
        EventType.COMPACTION_CHUNK_SUMMARIZED,
        EventType.COMPACTION_SUMMARY_VERIFIED,
        EventType.COMPACTION_PERSISTED,
        EventType.COMPACTION_REPLAYED,
    },
)


def label_of(value: str) -> str:
    """What people read for a stored type, also for one that a newer or older version wrote."""
    return _LABELS.get(value) or words_for(value)


_LABELS = {str(event_type): event_type.label for event_type in EventType}
