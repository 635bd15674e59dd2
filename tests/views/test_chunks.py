"""How far a compaction is, told by every place at one moment: the chunk that is under way, of how many."""

from datetime import UTC, datetime

import pytest

from sessions_app.engine.terms import Lineage, Phase, Status, Trigger
from sessions_app.management.commands.compact import _progress
from sessions_app.models import Compaction, Event
from sessions_app.rendering.ledger import facts_of
from sessions_app.selectors.compaction_panel import panel
from sessions_app.selectors.session_list import rows
from sessions_app.selectors.session_page import header
from tests.stored import store_session


@pytest.mark.django_db
@pytest.mark.parametrize(("done", "words"), [(0, "1 of 4"), (1, "2 of 4"), (3, "4 of 4"), (4, "4 of 4")])
def test_list_panel_button_and_command_name_the_chunk_that_is_under_way(done, words):
    session = store_session()
    now = datetime.now(UTC)
    session.running = Compaction.objects.create(
        session=session, attempt=1, lineage=Lineage.CONSOLE, trigger=Trigger.MANUAL, status=Status.RUNNING, phase=Phase.SUMMARISE,
        chunk_index=done, chunk_count=4, requested_at=now, started_at=now,
    )  # fmt: skip
    session.save()
    shown = panel(session.pk)
    assert f"{shown.current_chunk} of {shown.chunk_count}" == words
    assert shown.steps[2].note == f"chunk {words}"
    assert "{} of {}".format(*rows([session.pk])[0].chunk) == words
    assert header(session.pk).button.label == f"Compacting, {words}"
    assert _progress(session.running) == f"a1 summarise, chunk {words}"


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        ({"tokens_before": 9, "chunk_index": 2, "chunk_count": 4}, "tokens before 9 · chunks done 2 of 4"),
        ({"tokens_before": 9, "chunk_index": 0, "chunk_count": 4}, "tokens before 9"),
    ],
)
def test_an_event_says_how_many_chunks_were_done(payload, facts):
    assert facts_of(Event(payload=payload)) == facts
