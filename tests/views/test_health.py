"""The answer for monitors."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError
from django.test import Client

from sessions_app.models import Compaction, ImportRun
from sessions_app.selectors import health


def test_without_sign_in_it_says_that_all_is_well(client: Client, db):
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "database": "ok", "worker": "ok"}


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
    assert response.json() == {"status": "failing", "database": "failing", "worker": "unknown"}


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_it_can_only_be_read(client: Client, db, method):
    assert getattr(client, method)("/healthz").status_code == 405
