"""Every error of the API in one shape: `{"error": {"code", "message", "field"?, "retryable", "request_id"}}`."""

from collections.abc import Mapping
from typing import Any

import structlog
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from sessions_app.api.wire import json_response
from sessions_app.engine.policy import PolicyError
from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.selectors.item_ids import UnknownItem
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.plans import BrokenPlan
from sessions_app.services.compactions.automatic import NotOurs
from sessions_app.services.compactions.cancel import UnknownCompaction
from sessions_app.services.compactions.drafts import DraftBlocked, DraftChanged, InvalidSummary, NotADraft
from sessions_app.services.compactions.request import InvalidRequest, SessionBusy, Undecided
from sessions_app.services.compactions.revert import CompactionUnderWay, UnknownGeneration
from sessions_app.services.external import InvalidReport
from sessions_app.services.goals import InvalidGoal
from sessions_app.services.idempotency import KeyConflict
from sessions_app.services.items import InvalidItem
from sessions_app.services.model_choice import InvalidChoice
from sessions_app.services.runners.binding import InvalidBinding
from sessions_app.services.runners.table import InvalidRunner
from sessions_app.services.sessions import InvalidEdit
from sessions_app.services.tokens import TooManyFailures, Unauthorized
from sessions_app.services.turns.send import InvalidMessage, KeyReused, TurnRefused, UnknownTurn
from sessions_app.services.turns.sessions import InvalidSession
from sessions_app.writers.base import CannotContinue

logger = structlog.get_logger(__name__)

STATUS_BY_CODE = {
    "invalid_input": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "payload_too_large": 413,
    "rate_limited": 429,
    "internal_error": 500,
    "runner_unavailable": 503,
}
CODE_BY_STATUS = {status: code for code, status in STATUS_BY_CODE.items()} | {415: "invalid_input", 422: "invalid_input"}
RETRYABLE = frozenset({"conflict", "rate_limited", "runner_unavailable"})
"""Codes after which the same request may succeed later, unless its error says otherwise."""

SENTENCES = {
    400: "The request holds something that is not understood. Nothing was changed.",
    401: "This needs a token (Authorization: Bearer …), or a browser that is signed in. Nothing was changed.",
    403: "This is not allowed. Nothing was changed.",
    404: "There is nothing at this address.",
    405: "This address does not take that method. Nothing was changed.",
    413: "What was sent is larger than this address takes. Nothing was changed.",
    429: "Too many requests came from there. Wait a moment, then send it again.",
    500: "Something went wrong on the server. It is in the server's log under the request's id.",
    503: "The server cannot do this at the moment. Try again in a moment.",
}
DATABASE = "The server's database could not be used, so this was not done. Try again in a moment."
RETRY_S = 10


class ApiError(Exception):
    """An error as it is answered. `status` is the code's own unless given; `retry_s` becomes `Retry-After`."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str = "",
        status: int = 0,
        retryable: bool | None = None,
        retry_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.status = status or STATUS_BY_CODE[code]
        self.retryable = code in RETRYABLE if retryable is None else retryable
        self.headers = dict(headers or {}) | ({"Retry-After": str(retry_s)} if retry_s is not None else {})


CODES: dict[type[Exception], str] = {
    NoAccess: "not_found",
    ActionRefused: "forbidden",
    Unauthorized: "unauthorized",
    TooManyFailures: "rate_limited",
    UnknownCompaction: "not_found",
    UnknownGeneration: "not_found",
    UnknownTurn: "not_found",
    InvalidRequest: "invalid_input",  # CompactUnavailable is one
    InvalidSession: "invalid_input",
    InvalidEdit: "invalid_input",
    InvalidGoal: "invalid_input",
    InvalidItem: "invalid_input",
    InvalidChoice: "invalid_input",
    InvalidMessage: "invalid_input",
    InvalidSummary: "invalid_input",
    CursorError: "invalid_input",
    UnknownItem: "invalid_input",
    BadRequest: "invalid_input",
    NotOurs: "invalid_input",
    SessionBusy: "conflict",
    Undecided: "conflict",
    InvalidBinding: "invalid_input",
    InvalidReport: "invalid_input",
    InvalidRunner: "invalid_input",
    CompactionUnderWay: "conflict",
    TurnRefused: "conflict",
    NotADraft: "conflict",
    DraftChanged: "conflict",
    DraftBlocked: "conflict",
    KeyConflict: "conflict",
    KeyReused: "conflict",
    BrokenPlan: "conflict",
    CannotContinue: "conflict",
    PolicyError: "conflict",
    MultiPartParserError: "invalid_input",
    UnreadablePostError: "invalid_input",
    SuspiciousOperation: "invalid_input",
    RequestDataTooBig: "payload_too_large",
    TooManyFilesSent: "payload_too_large",
}
"""The code of each error that a layer below tells in its own words; its subclasses have the same one."""

FINAL = frozenset({Undecided, KeyConflict, KeyReused, NotADraft, DraftBlocked, BrokenPlan, CannotContinue, PolicyError})
"""Conflicts that waiting does not end."""


def as_api_error(error: Exception) -> ApiError | None:
    """What is answered when this was raised; None for what nobody foresaw."""
    match error:
        case ApiError():
            return error
        case ValidationError():
            return _invalid(error.errors)
        case AuthenticationError():
            return ApiError("unauthorized", SENTENCES[401])
        case HttpError():
            return _of_status(error.status_code)
        case Http404():
            return ApiError("not_found", SENTENCES[404])
        case OperationalError() | InterfaceError():
            return ApiError("internal_error", DATABASE, status=503, retryable=True, retry_s=RETRY_S)
    kind = next((kind for kind in type(error).__mro__ if kind in CODES), None)
    if kind is None:
        return None
    retryable = None if kind not in FINAL else False
    return ApiError(
        CODES[kind], str(error), field=getattr(error, "field", "") or "", retryable=retryable, retry_s=getattr(error, "retry_s", None)
    )


def error_response(request: HttpRequest, error: ApiError) -> HttpResponse:
    """The error as JSON, with its status and headers. Asks neither the database nor the session."""
    told: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.field:
        told["field"] = error.field
    told |= {"retryable": error.retryable, "request_id": getattr(request, "request_id", "")}
    response = json_response({"error": told}, error.status, error.headers)
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def answer_error(request: HttpRequest, error: Any) -> HttpResponse:
    """The answer to whatever a call raised."""
    known = as_api_error(error)
    if known is None:
        known = ApiError("internal_error", SENTENCES[500])
    if known.status >= 500:
        logger.error("A call of the API failed.", path=request.path, exc_info=error)
    return error_response(request, known)


def answer_status(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The answer of another part of the server, which knows no JSON, in the shape of the API; its headers stay."""
    error = _of_status(response.status_code)
    made = error_response(request, error)
    for name in ("Allow", "Retry-After", "WWW-Authenticate"):
        if name in response:
            made[name] = response[name]
    return made


def handle_errors(api: NinjaAPI) -> None:
    """Every error of the API's calls goes through `answer_error`, also those that the library answers by itself."""
    for kind in (Exception, Http404, HttpError, ValidationError):
        api.add_exception_handler(kind, answer_error)


def _of_status(status: int) -> ApiError:
    code = CODE_BY_STATUS.get(status) or ("internal_error" if status >= 500 else "invalid_input")
    sentence = SENTENCES.get(status) or (SENTENCES[500] if status >= 500 else SENTENCES[400])
    return ApiError(code, sentence, status=400 if status == 422 else status)


def _invalid(errors: list[dict[str, Any]]) -> ApiError:
    """The first of what does not fit, with the place where it stands: `labels.0`, `limit`."""
    first = errors[0] if errors else {"loc": (), "msg": ""}
    field = ".".join(str(step) for step in first["loc"][1:])
    says = str(first["msg"]).removeprefix("Value error, ").strip().rstrip(".")
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return ApiError("invalid_input", f"{field or 'The body'}: {says}{more}. Nothing was changed.", field=field)
