"""The answer for monitors."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError
from django.test import Client

from project.celery import celery_app
from sessions_app.models import Compaction, ImportRun
from sessions_app.selectors import health
from tests.services.compaction_scenes import PATIENCE_S


@pytest.fixture(autouse=True)
def fresh_answers(monkeypatch) -> None:
    """Services that are well may take their time to say so."""
    monkeypatch.setattr(health, "ANSWER_S", PATIENCE_S)
    health._services.forget()


def test_without_sign_in_it_says_that_all_is_well(client: Client, db):
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "database": "ok", "layer": "ok", "broker": "ok", "worker": "ok"}


def test_a_compaction_that_no_worker_took_makes_it_fail(client: Client, make_session):
    old = datetime.now(UTC) - timedelta(minutes=2)
    Compaction.objects.create(session=make_session(), attempt=1, lineage="console", trigger="manual", status="requested", requested_at=old)
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json()["worker"] == "stalled"


def test_an_import_that_just_came_is_no_failure(client: Client, db):
    ImportRun.objects.create(name="a.jsonl")
    assert client.get("/healthz").status_code == 200


def test_a_database_that_does_not_answer_is_said_so(client: Client, monkeypatch, db):
    class Broken:
        @staticmethod
        def filter(**_: object):
            raise DatabaseError

    monkeypatch.setattr(health.Compaction, "objects", Broken)
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == {"status": "failing", "database": "failing", "layer": "ok", "broker": "ok", "worker": "unknown"}


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_it_can_only_be_read(client: Client, db, method):
    assert getattr(client, method)("/healthz").status_code == 405


def test_a_layer_that_loses_its_messages_is_told_apart(client: Client, db, settings, monkeypatch):
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
    assert response.json() == {"status": "failing", "database": "ok", "layer": "failing", "broker": "ok", "worker": "ok"}


def test_a_broker_that_does_not_answer_is_told_apart(client: Client, db, monkeypatch):
    monkeypatch.setattr(celery_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == {"status": "failing", "database": "ok", "layer": "ok", "broker": "failing", "worker": "ok"}
