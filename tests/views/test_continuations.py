"""The page of exports, and what it gives."""

import json

import pytest
from django.urls import reverse

from sessions_app.models import Event, Session
from tests.readers.rows import encode
from tests.services.import_scenes import take, write
from tests.services.test_continuations import compacted, conversation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(tmp_path) -> Session:
    return Session.objects.get(pk=take(write(tmp_path, encode(conversation(8)))).session_id)


@pytest.fixture
def page(client, operator):
    client.force_login(operator)
    return client


def url(name: str, session: Session) -> str:
    return reverse(name, args=[session.pk])


def test_the_page_says_which_generation_where_the_file_goes_and_what_to_run(page, session):
    compacted(session)
    shown = page.get(url("session-exports", session)).content.decode()
    assert "generation #1" in shown
    assert "~/.claude/projects/-home-dev-shop/" in shown
    assert "claude --resume NEW-ID" in shown
    assert f"export {session.pk} --format continuation --install" in shown


def test_without_a_compaction_the_button_is_off_and_says_what_to_do(page, session):
    shown = page.get(url("session-exports", session)).content.decode()
    assert "Compact the session first" in shown
    assert "disabled" in shown
    refused = page.post(url("session-continuation", session))
    assert (refused.status_code, "Nothing was exported" in refused.content.decode()) == (409, True)
    assert not Event.objects.filter(type="session.exported").exists()


def test_the_continuation_is_a_download_of_a_new_session(page, session):
    compacted(session)
    answer = page.post(url("session-continuation", session))
    data = answer.getvalue()
    rows = [json.loads(line) for line in data.splitlines()]
    [new] = {row["sessionId"] for row in rows}
    assert answer["Content-Disposition"] == f'attachment; filename="{new}.jsonl"'
    assert int(answer["Content-Length"]) == len(data)
    assert sum(row.get("subtype") == "compact_boundary" for row in rows) == 1
    assert page.get(url("session-continuation", session)).status_code == 405


@pytest.mark.parametrize(("form", "ending", "begins"), [("jsonl", "jsonl", b'{"index":0'), ("markdown", "md", b"# ")])
def test_the_entries_are_downloads_too(page, session, form, ending, begins):
    answer = page.get(url("session-export", session), {"format": form})
    assert answer["Content-Disposition"].endswith(f'.{ending}"')
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer.getvalue().startswith(begins)
    assert Event.objects.get(type="session.exported").payload == {"kind": form}


def test_a_format_that_is_none_is_refused(page, session):
    assert page.get(url("session-export", session), {"format": "exe"}).status_code == 400


def test_the_result_and_the_ledger_lead_to_it(page, session):
    compacted(session)
    address = f"{url('session-exports', session)}#continuation"
    assert address in page.get(url("session-detail", session)).content.decode()
    assert address in page.get(url("compaction-list", session)).content.decode()


@pytest.mark.parametrize("name", ["session-exports", "session-export", "session-continuation"])
def test_who_is_in_no_group_finds_nothing(client, outsider, session, name):
    client.force_login(outsider)
    send = client.post if name == "session-continuation" else client.get
    assert send(url(name, session)).status_code == 404
