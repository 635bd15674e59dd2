"""Forged forms: an option that no page offers is refused with a sentence, and starts nothing."""

from datetime import UTC, datetime

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from sessions_app.demo import other_stories, stories
from sessions_app.models import Compaction, Event, ImportRun
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.importing import ACTOR, imported


@pytest.fixture
def session(db):
    return imported(stories.rewound())


@pytest.mark.parametrize(
    "form",
    [
        {"profile": "emperor"},
        {"boundary": "-1"},
        {"boundary": "1; DROP TABLE"},
        {"boundary": "99999999999999999999"},
        {"instructions": "x" * 2_001},
    ],
    ids=lambda form: next(iter(form)),
)
def test_a_forged_option_starts_nothing_and_says_so(support, client, session, form):
    client.force_login(support)
    answer = client.post(reverse("compaction-create", args=[session.pk]), form)
    assert answer.status_code in {400, 422}
    assert not Compaction.objects.filter(session=session, lineage="console").exists()


@pytest.mark.parametrize("name", ["compaction-create", "compaction-revert"])
def test_an_operator_is_refused_with_the_groups_that_may_and_an_event(operator, client, session, name):
    client.force_login(operator)
    answer = client.post(reverse(name, args=[session.pk]), {})
    assert answer.status_code == 403
    assert "support" in answer.content.decode()
    event = Event.objects.filter(result="refused").latest("id")
    assert (event.type, event.actor_name, event.actor_role, event.stream) == ("access.refused", "olga", "operator", f"session:{session.pk}")
    assert not Compaction.objects.filter(session=session, lineage="console").exists()


@pytest.mark.parametrize("generation", ["7", "-3", "none", "' OR 1"])
def test_a_generation_that_does_not_exist_changes_nothing(support, client, generation):
    session = imported(stories.two_checkpoints(), window=36_000)
    run_compaction(request(actor=ACTOR, session=session).compaction.pk)
    client.force_login(support)
    answer = client.post(reverse("compaction-revert", args=[session.pk]), {"generation": generation})
    assert "Nothing was changed" in answer.content.decode()
    session.refresh_from_db()
    assert session.active_console is not None
    assert not Event.objects.filter(type="compaction.reverted").exists()


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..\\..\\evil.jsonl", "/etc/cron.d/x.jsonl", "a\x00b.jsonl", "<script>.jsonl", "x" * 400 + ".jsonl", ".jsonl"],
)
def test_the_name_of_an_upload_never_becomes_a_path_or_markup(operator, client, name, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    client.force_login(operator)
    body = other_stories.release_notes().render(datetime.now(UTC))
    answer = client.post("/imports/", {"transcripts": SimpleUploadedFile(name, body)})
    assert answer.status_code in {200, 302, 400, 422}
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and settings.DATA_DIR not in path.parents]
    assert outside == []
    for run in ImportRun.objects.all():
        assert ".." not in run.staged_path
        assert "<script>" not in client.get("/imports/").content.decode().replace("&lt;script&gt;", "")


def test_an_outsider_can_do_nothing_with_a_session_whatever_the_address(outsider, client, session):
    client.force_login(outsider)
    for name in (
        "session-detail",
        "session-entries",
        "compaction-create",
        "compaction-list",
        "session-events",
        "session-raw",
        "session-export",
    ):
        assert client.get(reverse(name, args=[session.pk])).status_code == 404
    assert client.post(reverse("compaction-create", args=[session.pk])).status_code == 404
