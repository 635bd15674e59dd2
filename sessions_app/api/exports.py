"""`GET /v1/sessions/{id}/export`."""

import uuid
from pathlib import PurePath

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.wire import file_answer
from sessions_app.permissions import Action, access_session
from sessions_app.rendering.streams import download
from sessions_app.services.exports import ExportKind, export_continuation, export_entries, export_original, name_of

router = Router()


class ExportQuery(Schema):
    """`original`: the source, byte for byte; `continuation`: a new session that the agent goes on with."""

    format: ExportKind = ExportKind.ORIGINAL


@router.get("/{uuid:session_id}/export", openapi_extra=file_answer("The file"))
def export_session(request: HttpRequest, session_id: uuid.UUID, asked: Query[ExportQuery]) -> HttpResponseBase:
    """A session as a file."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.EXPORT)
    if asked.format is ExportKind.CONTINUATION:
        written = export_continuation(actor=actor, session=session)
        return download(request, written.place.name, written.chunks(), size=written.size)
    if asked.format is not ExportKind.ORIGINAL:
        return download(request, name_of(session, asked.format), export_entries(actor=actor, session=session, kind=asked.format))
    exported = export_original(actor=actor, session=session)
    if exported is None:
        raise ApiError("not_found", "This session came from no file. Choose another format.")
    source, chunks = exported
    return download(request, PurePath(source.path).name or "session", chunks, size=source.size)
