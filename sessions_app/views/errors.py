"""Refusals and failures: one page, or one fragment for the toast area, with the status that is true."""

import errno
import sys

from django.core.exceptions import BadRequest
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import requires_csrf_token

from sessions_app.engine.policy import PolicyError
from sessions_app.events.deferred import NotRecorded
from sessions_app.middleware import EitherWay
from sessions_app.permissions import ActionRefused, NoAccess, actor_of
from sessions_app.selectors.plans import BrokenPlan
from sessions_app.services.access import record_refusal
from sessions_app.views.pages import render_page, wants_fragment

TEMPLATE = "errors/error.html"
BAD_REQUEST = "The address or the form holds something that this page does not understand. Nothing was changed."
NOT_FOUND = "There is nothing at this address. It may have been mistyped, or what it named is gone."
FORBIDDEN = "This is not allowed. Nothing was changed."
CSRF = "The form was too old, or did not come from this site, so nothing was changed. Open its page again and send it from there."
SERVER_ERROR = "Something went wrong on the server. It is in the server's log under the number below. Reload to see what was stored."
POLICY_BROKEN = "That value is stored in a policy which holds here, so nothing was done. An admin can set it anew, or take it away."
DISK_FULL = "There is no space left on the server's disk, so this was not stored. Free some space there, then send it again."

DATABASE_BUSY = "Another program holds the server's database, so this was not done. Wait a moment, then send it again."
DATABASE_READ_ONLY = "The server may read its database but not write it, so this was not done. An admin has to give it the right again."
DATABASE_GONE = (
    "The server's database does not answer, or is not there, so nothing was done. What was stored is not touched by this. "
    "Try again in a moment; if it lasts, an admin has to look after the database."
)
NOT_RECORDED = "Whatever is read here is written down first, and that is not possible now, so nothing is shown."
RETRY_S = 10


def error_page(request: HttpRequest, status: int, title: str, sentence: str, *, back: str = "") -> HttpResponse:
    """The sentence as a page, or as a toast when htmx asked for a part (marked by `X-Fragment`). `back`: an address to go on at."""
    context = _context(request, status, title, sentence) | {"back": back}
    response = render_page(request, TEMPLATE, context, partial="toast", status=status)
    return _marked(request, response)


def _context(request: HttpRequest, status: int, title: str, sentence: str) -> dict[str, object]:
    return {"status": status, "title": title, "sentence": sentence, "request_id": getattr(request, "request_id", "")}


def _marked(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if wants_fragment(request):
        response["X-Fragment"] = "toast"
    return response


class Refusals(EitherWay):
    """Middleware that answers what the gates raise: `NoAccess` with 404, `ActionRefused` with 403, bad input with 400."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        match exception:
            case NoAccess():
                return error_page(request, 404, "Nothing to see here", str(exception))
            case ActionRefused():
                return error_page(request, 403, "Not allowed", str(exception))
            case BadRequest():
                return error_page(request, 400, "Not understood", str(exception) or BAD_REQUEST)
            case PolicyError():  # stored by another version, or by hand: what was asked for would run under rules that nobody set
                return error_page(request, 409, "The policy cannot be read", f"{exception} {POLICY_BROKEN}")
            case BrokenPlan():
                return error_page(request, 409, "The view can't be built", str(exception))
            case _:
                return None


refusals = Refusals


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's signature
    return error_page(request, 400, "Not understood", BAD_REQUEST)


@requires_csrf_token
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's signature
    _record(request, "not allowed")
    return error_page(request, 403, "Not allowed", FORBIDDEN)


@requires_csrf_token
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's signature
    if request.resolver_match is not None and request.user.is_authenticated:  # a page of ours, and what it should show is not there
        _record(request, "nothing there")
    return error_page(request, 404, "Not found", NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """The last resort, so it asks neither the database nor the session: the page does not know who looks."""
    template = f"{TEMPLATE}#toast" if wants_fragment(request) else TEMPLATE
    error = sys.exc_info()[1]
    status, title, sentence = _what_is_wrong(error)
    if isinstance(error, NotRecorded):
        sentence = f"{NOT_RECORDED} {sentence}"
    body = render_to_string(template, _context(request, status, title, sentence))
    response = HttpResponse(body, status=status)
    if status == 503:
        response["Retry-After"] = str(RETRY_S)
    return _marked(request, response)


def _what_is_wrong(error: BaseException | None) -> tuple[int, str, str]:
    """(status, title, sentence) of what stopped the page. Databases say it in words alone."""
    said = str(error).lower()
    match error:
        case OSError(errno=errno.ENOSPC):
            return 507, "No space left", DISK_FULL
        case DatabaseError() if "disk is full" in said or "no space left" in said:
            return 507, "No space left", DISK_FULL
        case DatabaseError() if "locked" in said or "lock timeout" in said:
            return 503, "The database is busy", DATABASE_BUSY
        case DatabaseError() if "readonly" in said or "read-only" in said:
            return 503, "The database can't be written", DATABASE_READ_ONLY
        case InterfaceError() | OperationalError():
            return 503, "The database can't be used", DATABASE_GONE
        case DatabaseError() if "malformed" in said or "not a database" in said:
            return 503, "The database can't be used", DATABASE_GONE
        case _:
            return 500, "Something went wrong", SERVER_ERROR


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  Django's signature
    _record(request, "the form did not come from this site, or was too old")
    came_from = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure())
    return error_page(request, 403, "Not sent", CSRF, back=came_from if is_ours else "")


def _record(request: HttpRequest, reason: str) -> None:
    """Writes the refusal down, with the page that was asked for. The user is missing where an early middleware refused."""
    if hasattr(request, "user"):
        record_refusal(actor=actor_of(request), reason=reason, target=("page", request.path[:64]))
