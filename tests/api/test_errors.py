"""One shape for every refusal, whoever refuses."""

import pytest
from django.db import OperationalError
from django.test import Client

from sessions_app.api import errors
from sessions_app.api.errors import CODES, STATUS_BY_CODE
from sessions_app.permissions import Action, ActionRefused
from sessions_app.services.compactions.request import InvalidRequest, SessionBusy
from tests.api.conftest import error_of

HERE = "sessions_app.api.sessions.access_session"


def raising(error: Exception):
    def call(*_, **__):
        raise error

    return call


@pytest.mark.parametrize("address", ["/v1/", "/v1/nothing", "/v1/sessions/not-an-id", "/v1/sessions/../../x", "/v1/sessions/%00"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_address_that_is_none_is_not_found_in_the_same_shape(db, address, method):
    answer = Client().generic(method, address)
    assert answer.status_code == 404
    told = {"code": "not_found", "message": "There is nothing at this address.", "retryable": False}
    assert error_of(answer) == told | {"request_id": answer.headers["X-Request-Id"]}


def test_a_method_that_an_address_does_not_take_names_those_that_it_does(as_operator, session):
    answer = as_operator.call("PUT", f"/sessions/{session.pk}", {})
    assert answer.status_code == 405
    assert error_of(answer)["code"] == "method_not_allowed"
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize(
    ("error", "status", "code", "retryable", "field"),
    [
        (ActionRefused(Action.COMPACT, "operator"), 403, "forbidden", False, None),
        (InvalidRequest("boundary", "Not there."), 400, "invalid_input", False, "boundary"),
        (SessionBusy("A turn is open."), 409, "conflict", True, None),
        (errors.PolicyError("what is stored is no policy"), 409, "conflict", False, None),
        (errors.ApiError("runner_unavailable", "The runner does not answer.", retry_s=7), 503, "runner_unavailable", True, None),
        (OperationalError("database is locked"), 503, "internal_error", True, None),
        (RuntimeError("the secret of a transcript"), 500, "internal_error", False, None),
    ],
)
def test_what_a_layer_below_raises_has_its_code(as_operator, session, monkeypatch, error, status, code, retryable, field):
    monkeypatch.setattr(HERE, raising(error))
    answer = as_operator.get(f"/sessions/{session.pk}")
    told = error_of(answer)
    assert (answer.status_code, told["code"], told["retryable"], told.get("field")) == (status, code, retryable, field)
    assert told["request_id"] == answer.headers["X-Request-Id"]
    assert "secret of a transcript" not in answer.content.decode()
    if isinstance(error, errors.ApiError):
        assert answer.headers["Retry-After"] == "7"


def test_what_is_unforeseen_stands_in_the_log_with_its_place(as_operator, session, monkeypatch, caplog):
    monkeypatch.setattr(HERE, raising(RuntimeError("nobody foresaw this")))
    as_operator.get(f"/sessions/{session.pk}")
    assert "nobody foresaw this" in caplog.text


def test_every_code_of_the_table_has_a_status():
    assert set(CODES.values()) <= set(STATUS_BY_CODE)
