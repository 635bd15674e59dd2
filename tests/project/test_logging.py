"""What log lines say, and what they never say."""

import json
import logging

import pytest
import structlog
from celery.app.log import Logging
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from project.celery import celery_app
from project.logging import set_up

SECRET_TEXT = "the transcript says: launch code 4217"


@pytest.fixture(autouse=True)
def _restored():
    before, level = list(logging.getLogger().handlers), logging.getLogger().level
    yield
    structlog.contextvars.clear_contextvars()
    set_up({"format": "console", "level": "WARNING"})
    logging.getLogger().handlers[:] = before
    logging.getLogger().setLevel(level)


def last_line(capsys) -> dict:
    return json.loads(capsys.readouterr().err.strip().splitlines()[-1])


def test_json_lines_carry_event_level_logger_and_request_id(capsys):
    set_up({"format": "json", "level": "INFO"})
    structlog.contextvars.bind_contextvars(request_id="r-12345678")
    structlog.get_logger("sessions_app.live.poke").warning("poke_failed", session="s", seq=4)
    line = last_line(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("poke_failed", "warning", "sessions_app.live.poke")
    assert (line["request_id"], line["session"], line["seq"]) == ("r-12345678", "s", 4)
    assert line["timestamp"].endswith("Z")


def test_lines_of_libraries_come_out_in_the_same_form(capsys):
    set_up({"format": "json", "level": "INFO"})
    logging.getLogger("django.request").warning("Not Found: %s", "/nowhere/")
    assert last_line(capsys)["event"] == "Not Found: /nowhere/"


@pytest.mark.parametrize("name", ["httpx2", "openai", "anthropic"])
def test_requests_to_providers_are_not_told_one_by_one(capsys, name):
    set_up({"format": "json", "level": "INFO"})
    logging.getLogger(name).info("HTTP Request: POST https://api.example/v1/messages")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_show_where_but_no_variables(capsys, form):
    set_up({"format": form, "level": "INFO"})
    transcript = SECRET_TEXT
    try:
        _ = transcript[999_999]
    except IndexError:
        structlog.get_logger("demo").exception("reading_failed")
    output = capsys.readouterr().err
    assert "IndexError" in output
    assert "test_logging.py" in output
    assert SECRET_TEXT not in output


def test_statements_to_the_database_are_not_logged_even_when_everything_is(db, capsys):
    set_up({"format": "json", "level": "DEBUG"})
    from django.contrib.auth.models import User

    assert not User.objects.filter(username=SECRET_TEXT).exists()
    assert SECRET_TEXT not in capsys.readouterr().err


def test_a_worker_logs_as_all_processes_do_whatever_level_celery_is_given(settings, capsys, monkeypatch):
    settings.LOGGING = {"format": "json", "level": "INFO"}
    monkeypatch.setattr(Logging, "_setup", False)  # once in each process
    celery_app.log.setup(loglevel="ERROR", logfile="/nowhere/worker.log")
    structlog.get_logger("project.worker").info("worker_ready", worker="one@here")
    line = last_line(capsys)
    assert (line["event"], line["level"], line["worker"]) == ("worker_ready", "info", "one@here")


@pytest.mark.parametrize("options", [{"format": "xml", "level": "INFO"}, {"format": "json", "level": "LOUD"}])
def test_a_wrong_format_or_level_is_refused(options):
    with pytest.raises(ImproperlyConfigured, match="Nothing was started"):
        set_up(options)


def test_a_given_request_id_stands_on_the_answer_and_a_strange_one_does_not(db):
    assert Client(headers={"X-Request-Id": "abcd-1234"}).get("/healthz")["X-Request-Id"] == "abcd-1234"
    answered = Client(headers={"X-Request-Id": "<script>alert(1)</script>"}).get("/healthz")["X-Request-Id"]
    assert len(answered) == 32
