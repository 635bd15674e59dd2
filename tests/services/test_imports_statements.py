"""What an import asks of the database: nothing that takes longer the more is stored already."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app import prepared
from sessions_app.models import Session
from tests.readers.rows import SESSION, answer, encode, prompt
from tests.services.import_scenes import take, write

ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans what is small by choice")


def _places(statements: list[str], table: str) -> list[int]:
    return [place for place, statement in enumerate(statements) if f'INSERT INTO "{table}"' in statement]


@pytest.mark.django_db
def test_rows_come_behind_what_they_hang_on(tmp_path):
    """The other way round SQLite would look through all entries there are, for those that waited for the source."""
    with CaptureQueriesContext(connection) as asked:
        take(write(tmp_path))
    statements = [query["sql"] for query in asked.captured_queries]
    sessions, sources = _places(statements, "sessions_app_session"), _places(statements, "sessions_app_sourcefile")
    hanging = [
        place for table in ("sessions_app_record", "sessions_app_recordframe", "sessions_app_entry") for place in _places(statements, table)
    ]
    assert len(sessions) == 2
    assert len(sources) == 1
    assert max(sessions) < sources[0] < min(hanging)


@ON_SQLITE
@pytest.mark.django_db
def test_an_import_reads_no_table_from_end_to_end(tmp_path):
    take(write(tmp_path))
    other = SESSION.replace("1", "9")
    rows = [{**row, "sessionId": other} for row in (prompt("v", None, "Hello"), answer("w", "v"))]
    path = write(tmp_path, encode(rows), name=f"{other}.jsonl")
    with CaptureQueriesContext(connection) as asked:
        take(path)
    read = [query["sql"] for query in asked.captured_queries if query["sql"].startswith("SELECT") and " WHERE " in query["sql"]]
    assert len(read) > 5
    with connection.cursor() as cursor:
        for statement in read:
            plan = cursor.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
            assert not [step for *_, step in plan if step.startswith("SCAN")], statement


@pytest.mark.django_db
def test_a_row_is_found_by_a_value_that_is_empty_too():
    now = datetime.now(UTC)
    Session.objects.create(source_key="one", first_source_id="f", last_activity_at=now)
    assert prepared.exists(Session, first_source_id="f")
    assert not prepared.exists(Session, first_source_id="")
    Session.objects.create(source_key="two", last_activity_at=now)
    assert prepared.find(Session, ("source_key",), first_source_id="") == ("two",)
