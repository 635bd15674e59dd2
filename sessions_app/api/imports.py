"""`/v1/imports`: files in, how far they are, and what came of each."""

import hashlib
import uuid
from typing import Annotated, Any, BinaryIO, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Field, File, Query, Router, Schema
from ninja.files import UploadedFile

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.idempotency import create_once, created
from sessions_app.api.pagination import ListOut, list_of
from sessions_app.permissions import Action, access_session, require, unknown
from sessions_app.selectors import imports_page
from sessions_app.selectors.imports_page import ImportedFile, ImportPage, ImportRow
from sessions_app.selectors.raw_page import parse_report
from sessions_app.services import imports
from sessions_app.services.idempotency import Answer
from sessions_app.shapes import Shape, iso

router = Router()


@router.post("", response={202: dict[str, Any]})
def begin_import(request: HttpRequest, file: File[UploadedFile]) -> HttpResponse:
    """Takes a file or an archive (multipart, field `file`) and imports it in the background."""
    actor = actor_of(request)
    require(actor, Action.IMPORT)
    size = file.size or 0
    if not size:
        raise ApiError("invalid_input", "The file is empty. Nothing was imported.", field="file")
    if size > settings.UPLOAD_MAX_BYTES:
        raise ApiError(
            "payload_too_large", f"A file may have {settings.UPLOAD_MAX_BYTES // 1_000_000} MB. Nothing was imported.", field="file"
        )

    def create() -> Answer:
        run = imports.request_upload(actor=actor, upload=cast("BinaryIO", file))
        page = imports_page.run_page(run.pk)
        assert page is not None
        return created(_shape(page.row), status=202, location=f"/v1/imports/{run.pk}")

    return create_once(request, create, body=_fingerprint(file))


def _fingerprint(file: UploadedFile) -> bytes:
    digest = hashlib.sha256((file.name or "").encode("utf-8", "surrogatepass"))
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return digest.digest()


@router.get("", response=ListOut)
def list_imports(request: HttpRequest) -> dict[str, Any]:
    """The newest runs, the latest first."""
    require(actor_of(request), Action.IMPORT)
    return list_of(map(_shape, imports_page.runs()), has_more=False)


class ReportQuery(Schema):
    """`report`: the id of a session of this run, for what reading its file found, with line numbers."""

    report: Annotated[str, Field(max_length=40)] = ""


@router.get("/{uuid:run_id}", response=dict[str, Any])
def read_import(request: HttpRequest, run_id: uuid.UUID, asked: Query[ReportQuery]) -> Shape:
    """One run with what came of each of its files, failures first."""
    page = _page(request, run_id)
    shape = _shape(page.row) | {"files": [_file(file) for file in page.files], "unlisted": page.unlisted}
    return shape | ({"report": _report(request, page, asked.report)} if asked.report else {})


@router.post("/{uuid:run_id}/cancel", response=dict[str, Any])
def cancel_import(request: HttpRequest, run_id: uuid.UUID) -> Shape:
    """Stops a run after the file that it reads. One that has ended is answered as it is."""
    _page(request, run_id)
    imports.cancel_import(actor=actor_of(request), run_id=run_id)
    return _shape(_page(request, run_id).row)


def _page(request: HttpRequest, run_id: uuid.UUID) -> ImportPage:
    actor = actor_of(request)
    require(actor, Action.IMPORT)  # before the look: whether there is such a run is not for everybody
    page = imports_page.run_page(run_id)
    if page is None:
        raise unknown(actor, "import", run_id, Action.IMPORT)
    return page


def _shape(row: ImportRow) -> Shape:
    run = row.run
    return {
        "object": "import",
        "id": run.pk,
        "name": run.name,
        "state": run.state,
        "words": row.words,
        "percent": row.percent,
        "counts": run.counts,
        "error": run.error or None,
        "requested_by": run.requested_by,
        "requested_at": iso(run.requested_at),
        "finished_at": iso(run.finished_at),
    }


def _file(file: ImportedFile) -> Shape:
    counts = {"entries": file.entries, "problems": file.problems, "checkpoints": file.checkpoints, "children": file.children}
    told = {"name": file.name, "state": file.state, "session_id": file.session_id or None, "title": file.title}
    return told | counts | {"error": file.error or None, "notes": list(file.notes)}


def _report(request: HttpRequest, page: ImportPage, session_id: str) -> Shape:
    """What reading one of the run's files found; only sessions of this run are looked up."""
    if session_id not in {file.session_id for file in page.files}:
        raise ApiError("invalid_input", "The report is of a session of this run. Nothing was read.", field="report")
    found = parse_report(access_session(actor_of(request), session_id, Action.READ))
    if found is None:
        raise ApiError("not_found", "There is no report any more.")
    counts = {"records": found.records, "entries": found.entries, "duplicates": found.duplicates}
    problems = {"problems": list(found.problems), "problem_counts": dict(found.problem_counts), "kinds": dict(found.kinds)}
    return (
        {"session_id": session_id, "path": found.source.path, "versions": found.versions} | counts | problems | {"notes": list(found.notes)}
    )
