"""Every call in the document about the API answers as it stands there."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from sessions_app.api.errors import STATUS_BY_CODE
from sessions_app.models import ImportRun
from tests.api.conftest import ALL_SCOPES, Api, token_of
from tests.api.scenes import DATA, compacted_session, imported_file
from tests.documents import HOW_TO

TEXT = (HOW_TO / "api.md").read_text()
CALLS = [line for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines() if line.startswith("curl ")]


@pytest.fixture
def names(admin) -> dict[str, str]:
    session, compaction = compacted_session()
    imported_file("anthropic_request.json")
    run = ImportRun.objects.latest("requested_at")
    secret = token_of(admin, *ALL_SCOPES)
    return {"TOKEN": secret, "SESSION": str(session.pk), "COMPACTION": str(compaction.pk), "IMPORT": str(run.pk)}


def send(line: str):
    """What curl would send. Options that are not known here fail."""
    words = iter(shlex.split(line)[1:])
    method, address, headers, body, files = "", "", {}, None, {}
    for word in words:
        match word:
            case "-s":
                pass
            case "-o":
                next(words)
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                body = next(words)
            case "-F":
                name, _, path = next(words).partition("=@")
                files[name] = SimpleUploadedFile(Path(path).name, (DATA / "openai_conversations.jsonl").read_bytes())
            case _:
                assert word.startswith("http://127.0.0.1:8000/v1/"), word
                address = word.removeprefix("http://127.0.0.1:8000")
    client = Api().client
    if files:
        return client.post(address, files, headers=headers)
    content_type = headers.pop("Content-Type", "application/x-www-form-urlencoded")
    return client.generic(method or ("POST" if body else "GET"), address, body or "", content_type=content_type, headers=headers)


@pytest.mark.parametrize("line", CALLS, ids=lambda line: urlsplit(line.split("/v1/")[1].split()[0]).path)
def test_a_call_answers(names, line):
    for name, value in names.items():
        line = line.replace(f"${name}", value)
    if line.split("?")[0].split(" -H")[0].endswith("/restore"):
        send(line.replace("/restore", "/revert"))
    answer = send(line)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert answer.status_code in {200, 201, 202}, body
    assert body
    if answer.headers["Content-Type"].startswith("application/json"):
        assert json.loads(body)


def test_every_code_is_told_with_its_status():
    told = dict(re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", TEXT, re.MULTILINE))
    assert {code: int(status.split(",")[0]) for code, status in told.items()} == STATUS_BY_CODE


def test_calls_are_shown_at_all():
    assert len(CALLS) > 14
