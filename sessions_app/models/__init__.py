"""All tables. One noun a module; no writes to other nouns."""

from sessions_app.models.access_token import AccessToken
from sessions_app.models.account import OneTimePassword
from sessions_app.models.compaction import ClearedResult, Compaction, Lease, ViewSegment
from sessions_app.models.draft import Draft, SummaryVersion
from sessions_app.models.entry import Blob, Entry, Record, RecordFrame, SourceFile
from sessions_app.models.event import ActorKind, Event, EventResult, EventStream
from sessions_app.models.heartbeat import WorkerHeartbeat
from sessions_app.models.idempotency_key import IdempotencyKey
from sessions_app.models.ids import new_id, short
from sessions_app.models.import_run import ImportRun, ImportState
from sessions_app.models.memory import MemoryFact, MemoryFlush
from sessions_app.models.override import Override, OverrideKind
from sessions_app.models.policy import PolicyRevision, PolicyScope, PolicyValue
from sessions_app.models.runner import Runner
from sessions_app.models.search import SearchBlock
from sessions_app.models.session import BUSY_STATUSES, Project, Session, SessionKind, SessionRelation, SessionStatus
from sessions_app.models.turn import OPEN_TURNS, Turn, TurnStatus

__all__ = [
    "BUSY_STATUSES",
    "OPEN_TURNS",
    "AccessToken",
    "ActorKind",
    "Blob",
    "ClearedResult",
    "Compaction",
    "Draft",
    "Entry",
    "Event",
    "EventResult",
    "EventStream",
    "IdempotencyKey",
    "ImportRun",
    "ImportState",
    "Lease",
    "MemoryFact",
    "MemoryFlush",
    "OneTimePassword",
    "Override",
    "OverrideKind",
    "PolicyRevision",
    "PolicyScope",
    "PolicyValue",
    "Project",
    "Record",
    "RecordFrame",
    "Runner",
    "SearchBlock",
    "Session",
    "SessionKind",
    "SessionRelation",
    "SessionStatus",
    "SourceFile",
    "SummaryVersion",
    "Turn",
    "TurnStatus",
    "ViewSegment",
    "WorkerHeartbeat",
    "new_id",
    "short",
]
