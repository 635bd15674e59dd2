"""An attempt that counts its view by a vocabulary, and that nobody else loads one."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from sessions_app.engine.bpe import BpeCounter
from sessions_app.engine.terms import Status
from sessions_app.selectors import plans
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.management.commands import run
from tests.services.compaction_scenes import long_session, set_policy

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def test_a_policy_has_the_view_counted_by_a_vocabulary_and_the_row_says_so(support_actor):
    session = long_session(40)
    set_policy(session, estimator="bpe")
    attempt = request(actor=support_actor, session=session).compaction
    run_compaction(attempt.pk)
    attempt.refresh_from_db()
    count = BpeCounter(settings.DATA_DIR / "vocabulary").count
    texts = (part.text for entry in plans.load_entries(session.pk, 0, session.entry_count - 1) for part in entry.parts)
    assert (attempt.status, attempt.estimator) == (Status.COMPLETED, "bpe")
    assert attempt.tokens_before >= sum(map(count, texts)) > attempt.tokens_after
    assert attempt.tokens_before != plans.view_tokens(session, None)
    assert "counted by: bpe\n" in run("compactions", session.pk, "--generation", 1)[0]


def test_without_its_vocabulary_an_attempt_counts_by_characters(support_actor, monkeypatch, tmp_path):
    (tmp_path / "taken").write_text("no folder")
    monkeypatch.setattr(settings, "DATA_DIR", tmp_path / "taken")
    session = long_session(40)
    set_policy(session, estimator="bpe")
    attempt = request(actor=support_actor, session=session).compaction
    run_compaction(attempt.pk)
    attempt.refresh_from_db()
    assert (attempt.status, attempt.estimator) == (Status.COMPLETED, "chars")


def test_serving_loads_no_vocabulary():
    code = (
        "import sys, django; django.setup();"
        "import project.application, sessions_app.urls, sessions_app.tasks, sessions_app.selectors.compact_preview;"
        "print('tiktoken' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", f"import project; {code}"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout.strip() == "False"
