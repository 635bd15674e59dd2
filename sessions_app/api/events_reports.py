"""Events by which an agent or its runner tells what happened. They start nothing, and need the scope `ingest`."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from sessions_app.api.events_data import OpenData, read_data
from sessions_app.api.idempotency import created
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.services import external
from sessions_app.services.idempotency import Answer

Report = Callable[[Actor, Session, dict[str, Any]], Answer]
NOT_QUEUED = {"queued": False}


class CompactionStatus(OpenData):
    status: Literal["in_progress", "completed", "failed"]
    operation_id: str = ""


def compaction_status(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    told = read_data("external_compaction_status", CompactionStatus, data)
    external.report_compaction(actor=actor, session=session, status=told.status, operation_id=told.operation_id)
    return created(NOT_QUEUED, status=202)


REPORTS: Mapping[str, Report] = {"external_compaction_status": compaction_status}
