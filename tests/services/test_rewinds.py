"""An agent that goes back behind what a checkpoint of this console stands for."""

import pytest
from django.urls import reverse

from sessions_app.models import Entry
from sessions_app.selectors.history import HistoryOptions, history_page
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from tests.readers.rows import Row, answer, encode, prompt
from tests.services.compaction_scenes import fresh, view_hash
from tests.services.import_scenes import take, the_session, write

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "The parser keeps `state.py` because the reader must never block. " * 30


def turns(first: int, last: int, after: str | None = None) -> list[Row | bytes]:
    told: list[Row | bytes] = []
    for turn in range(first, last):
        told += [prompt(f"u{turn}", after, f"Do part {turn}. {WORDS}"), answer(f"a{turn}", f"u{turn}", f"Part {turn} is done. {WORDS}")]
        after = f"a{turn}"
    return told


@pytest.fixture
def compacted(tmp_path, support_actor, monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    take(write(tmp_path, encode(turns(0, 10))))
    session = the_session()
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    assert fresh(compaction).boundary_index
    return fresh(session), compaction


def test_a_checkpoint_that_a_rewind_went_behind_says_so_and_its_block_stays(compacted, tmp_path, client, support):
    session, compaction = compacted
    block = list(compaction.segments.order_by("position").values_list("payload", flat=True))
    take(write(tmp_path, encode([*turns(0, 10), *turns(20, 22, after="a1")])))
    assert Entry.objects.filter(session=session, off_branch=True, index__lt=compaction.boundary_index).exists()
    assert any("rewound" in warning for warning in fresh(compaction).warnings)
    assert list(compaction.segments.order_by("position").values_list("payload", flat=True)) == block
    client.force_login(support)
    page = client.get(reverse("session-detail", args=[session.pk]), {"layout": "view"}).content.decode()
    assert "The agent has rewound its session" in page


def test_it_is_said_once_and_goes_with_its_generation(compacted, tmp_path, support_actor):
    session, compaction = compacted
    for last in (22, 23, 24):
        take(write(tmp_path, encode([*turns(0, 10), *turns(20, last, after="a1")])))
    assert sum("rewound" in warning for warning in fresh(compaction).warnings) == 1
    assert history_page(fresh(session), HistoryOptions()).block.rewound
    revert(actor=support_actor, session=fresh(session), generation=None)
    assert history_page(fresh(session), HistoryOptions()).block is None


def test_a_rewind_in_the_tail_is_no_reason_to_warn(compacted, tmp_path):
    session, compaction = compacted
    before = view_hash(session)
    take(write(tmp_path, encode([*turns(0, 10), *turns(20, 22, after="u9")])))
    assert Entry.objects.filter(session=session, off_branch=True).exists()
    assert not any("rewound" in warning for warning in fresh(compaction).warnings)
    assert view_hash(session) != before
