"""The answer for monitors."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError
from django.db.models.functions import Now
from django.test import Client

from project.celery import celery_app
from sessions_app.models import Compaction, ImportRun, WorkerHeartbeat
from sessions_app.selectors import health
from sessions_app.services import heartbeats
from tests.services.compaction_scenes import PATIENCE_S


@pytest.fixture(autouse=True)
def fresh_answers(monkeypatch) -> None:
    """Services that are well may take their time to say so."""
    monkeypatch.setattr(health, "ANSWER_S", PATIENCE_S)
    health.forget()


@pytest.fixture
def worker(db) -> None:
    heartbeats.beat("one@here", ["compactions", "imports", "turns"])


WELL = {"status": "ok", "database": "ok", "layer": "ok", "broker": "ok", "worker": "ok", "unserved": []}


def test_without_sign_in_it_says_that_all_is_well(client: Client, worker):
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == WELL


def test_without_a_worker_it_fails_and_the_web_process_is_ready_all_the_same(client: Client, db):
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == WELL | {"status": "failing", "worker": "missing", "unserved": ["compactions", "imports", "turns"]}
    assert client.get("/readyz").status_code == client.get("/livez").status_code == 200


def test_queues_that_no_worker_takes_from_are_named(client: Client, db):
    heartbeats.beat("one@here", ["imports"])
    heartbeats.beat("two@here", ["compactions"])
    assert client.get("/healthz").json() == WELL | {"status": "failing", "worker": "missing", "unserved": ["turns"]}


def test_a_worker_that_ends_or_falls_silent_is_missing_and_is_there_again_with_its_next_sign(client: Client, worker):
    WorkerHeartbeat.objects.update(at=Now() - health.SILENT_AFTER)
    assert client.get("/healthz").json()["worker"] == "missing"
    heartbeats.beat("one@here", ["compactions", "imports", "turns"])
    health.forget()
    assert client.get("/healthz").json() == WELL
    heartbeats.end("one@here")
    health.forget()
    assert client.get("/healthz").json()["worker"] == "missing"


def test_an_answer_is_given_again_for_a_moment(client: Client, worker, django_assert_num_queries):
    client.get("/healthz")
    client.get("/readyz")
    with django_assert_num_queries(0):
        assert client.get("/healthz").json() == WELL
        assert client.get("/readyz").json() == {"status": "ok"}


def test_that_a_process_lives_is_said_without_a_look_at_anything(client: Client):
    assert client.get("/livez").json() == {"status": "ok"}


def test_a_compaction_that_no_worker_took_makes_it_fail(client: Client, make_session, worker):
    old = datetime.now(UTC) - timedelta(minutes=2)
    Compaction.objects.create(session=make_session(), attempt=1, lineage="console", trigger="manual", status="requested", requested_at=old)
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json()["worker"] == "stalled"


def test_an_import_that_just_came_is_no_failure(client: Client, worker):
    ImportRun.objects.create(name="a.jsonl")
    assert client.get("/healthz").status_code == 200


def test_a_database_that_does_not_answer_is_said_so(client: Client, monkeypatch, db):
    class Broken:
        @staticmethod
        def filter(**_: object):
            raise DatabaseError

    monkeypatch.setattr(health.WorkerHeartbeat, "objects", Broken)
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == WELL | {"status": "failing", "database": "failing", "worker": "unknown"}
    assert client.get("/readyz").status_code == 503
    assert client.get("/livez").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_it_can_only_be_read(client: Client, db, method, path):
    assert getattr(client, method)(path).status_code == 405


def test_a_layer_that_loses_its_messages_is_told_apart(client: Client, worker, monkeypatch):
    monkeypatch.setattr(health, "ANSWER_S", 0.2)

    class Deaf:
        async def new_channel(self, prefix: str) -> str:
            return prefix

        async def send(self, channel: str, message: dict) -> None: ...

        async def receive(self, channel: str) -> dict:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("sessions_app.live.poke.get_channel_layer", Deaf)
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == WELL | {"status": "failing", "layer": "failing"}


def test_a_broker_that_does_not_answer_is_told_apart(client: Client, worker, monkeypatch):
    monkeypatch.setattr(celery_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == WELL | {"status": "failing", "broker": "failing"}
