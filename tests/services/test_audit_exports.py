"""Exports of the audit log: complete, harmless in a spreadsheet, and proof of themselves."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, Event
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import audit
from sessions_app.selectors.audit import AuditFilters
from sessions_app.services.audit import export

pytestmark = pytest.mark.django_db
ADA = Actor(kind=ActorKind.USER, id="1", name="ada", role="admin")
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "admin.md"
HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", '"; =1+1', "a,b\nc", "“é”\u2028", "\x1b[31m"]


@pytest.fixture
def events():
    for number, text in enumerate(HOSTILE):
        payload = {"text": text, "deep": {"b": [1, 2.5, 1e16, -0.0, None, True], "a": text}, "number": number}
        log.append("security", EventType.POLICY_CHANGED, actor=ADA, reason=text, target=("policy", text), payload=payload, before=text)
        log.append(f"session:{number % 3}", EventType.SESSION_IMPORTED, actor=system_actor("up"))


def exported(**filters) -> bytes:
    return b"".join(export(actor=ADA, filters=AuditFilters(**filters), file_format="jsonl"))


def jsonl(**filters) -> list[dict]:
    return [json.loads(line) for line in exported(**filters).split(b"\n")[:-1]]


def test_it_holds_every_event_oldest_first_and_says_that_it_is_complete(events, monkeypatch):
    monkeypatch.setattr(audit, "EXPORTED_AT_ONCE", 3)
    *lines, last = jsonl()
    assert [line["id"] for line in lines] == sorted(Event.objects.exclude(type="audit.exported").values_list("pk", flat=True))
    assert last == {"complete": True, "events": len(lines)}


def test_it_holds_what_the_filters_name_and_is_itself_an_event(events):
    *lines, last = jsonl(stream="security")
    assert {line["stream"] for line in lines} == {"security"}
    said = Event.objects.get(type="audit.exported")
    assert (said.payload["events"], said.payload["filters"], said.actor_name) == (last["events"], {"stream": "security"}, "ada")


def test_events_that_come_while_it_is_written_are_not_in_it(events):
    chunks = export(actor=ADA, filters=AuditFilters(), file_format="jsonl")
    log.append("security", EventType.SIGNED_IN, actor=ADA)
    assert json.loads(b"".join(chunks).splitlines()[-1])["complete"] is True


def test_only_an_admin_may_export(events, support_actor):
    with pytest.raises(ActionRefused):
        export(actor=support_actor, filters=AuditFilters(), file_format="csv")
    assert not Event.objects.filter(type="audit.exported").exists()


def test_no_cell_of_the_table_is_a_formula_and_all_content_is_there(events):
    text = b"".join(export(actor=ADA, filters=AuditFilters(stream="security"), file_format="csv")).decode()
    head, *rows, last = csv.reader(io.StringIO(text, newline=""))
    assert not [cell for row in (head, *rows, last) for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row[head.index("reason")].removeprefix("'") for row in rows] == HOSTILE
    assert [row[head.index("hash")] for row in rows] == [
        bytes(digest).hex() for digest in Event.objects.filter(stream="security").order_by("seq").values_list("hash", flat=True)
    ]
    assert last == ["complete", f"{len(HOSTILE)} events"]


@pytest.fixture
def recipe(tmp_path):
    """The script of the guide, run in another process on a file of lines."""
    script = tmp_path / "check.py"
    script.write_text(re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1])

    def run(lines: list[bytes]) -> tuple[int, str]:
        file = tmp_path / "events.jsonl"
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        done = subprocess.run([sys.executable, str(script), str(file)], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    return run


def test_a_file_proves_itself_elsewhere_by_the_recipe_of_the_guide(events, recipe):
    lines = exported().split(b"\n")[:-1]
    assert recipe(lines) == (0, "")
    assert recipe(lines[:-1]) == (1, "the file was cut\n")
    assert "does not follow" in recipe([*lines[:6], *lines[8:]])[1]
    assert "does not follow" in recipe([lines[2], lines[0], *lines[3:]])[1]
    event = json.loads(lines[4])
    lines[4] = lines[4].replace(b'"policy.changed"', b'"policy.changes"')
    assert recipe(lines) == (1, f"{event['stream']} {event['seq']}: changed\n")


def test_an_export_serves_as_heads_kept_elsewhere(events, tmp_path, capsys):
    from django.core.management import call_command

    kept = tmp_path / "events.jsonl"
    kept.write_bytes(b"".join(export(actor=ADA, filters=AuditFilters(), file_format="jsonl")))
    call_command("verify_events", "--heads", str(kept))
    assert f"{2 * len(HOSTILE)} of {2 * len(HOSTILE)} heads that were kept elsewhere are still in the log" in capsys.readouterr().out
