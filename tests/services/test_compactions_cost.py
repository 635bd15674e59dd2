"""What an attempt costs, counted: the history is planned from once, read once, and pages hear of the start with its phase."""

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine import rounds
from sessions_app.engine.terms import Status
from sessions_app.models import Event
from sessions_app.selectors import cuts, plans
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def test_the_shapes_of_the_whole_history_are_loaded_once(support_actor, monkeypatch):
    monkeypatch.setattr(cuts, "TAIL_STEP", 20)
    session = long_session(turns=60)
    loaded = []
    load = plans.load_shapes

    def counting(*place):
        shapes = load(*place)
        loaded.append(len(shapes))
        return shapes

    monkeypatch.setattr(plans, "load_shapes", counting)
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    assert fresh(compaction).status == Status.COMPLETED
    assert loaded[0] == 240
    assert sum(loaded[1:]) < 120


def test_a_history_is_linked_once_for_its_cut_and_its_chunks(support_actor, monkeypatch):
    session = long_session(turns=60)
    linked = []
    scan = rounds._Scan

    def counting(*given, midway, **more):
        linked.append(midway)
        return scan(*given, midway=midway, **more)

    compaction = request(actor=support_actor, session=session).compaction
    with monkeypatch.context() as patch:
        patch.setattr(rounds, "_Scan", counting)
        patch.setattr("sessions_app.services.signals.refresh", lambda _session_id: None)  # it looks for the next cut
        run_compaction(compaction.pk)
    assert fresh(compaction).status == Status.COMPLETED
    assert linked == [False]


def test_every_entry_that_is_folded_is_read_once(support_actor, monkeypatch):
    session = long_session(turns=60)
    read: Counter[int] = Counter()
    load = plans.load_entries

    def counting(*place, **options):
        for entry in load(*place, **options):
            read[entry.index] += 1
            yield entry

    monkeypatch.setattr(plans, "load_entries", counting)
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    assert set(range(fresh(compaction).boundary_index)) <= set(read)
    assert set(read.values()) == {1}


def test_the_statements_of_an_attempt_do_not_grow_with_its_history(support_actor):
    def statements(turns: int) -> int:
        compaction = request(actor=support_actor, session=long_session(turns=turns)).compaction
        with CaptureQueriesContext(connection) as queries:
            run_compaction(compaction.pk)
        assert fresh(compaction).status == Status.COMPLETED
        return len(queries)

    assert statements(100) == statements(20) <= 85


def test_the_first_thing_that_is_told_of_a_started_attempt_names_its_phase(support_actor):
    compaction = request(actor=support_actor, session=long_session()).compaction
    run_compaction(compaction.pk)
    first = Event.objects.filter(compaction_id=compaction.pk, type="compaction.triggered").earliest("seq")
    assert (first.payload["status"], first.payload["phase"]) == ("started", "lease")
