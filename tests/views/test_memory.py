"""The memory of a project on its page and in the ledger: what stands there, who may change it, and that hostile text stays text."""

import json
import re
import uuid
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.events import deferred
from sessions_app.events.types import EventType
from sessions_app.live.fragments import session_frame
from sessions_app.models import Event, MemoryFact, MemoryFlush, Project
from sessions_app.selectors.followed import session_cursor
from sessions_app.services import access, memory_beside, memory_flush
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.security import hostile
from tests.security.markup import violations
from tests.services.compaction_scenes import fresh
from tests.services.memory_scenes import Gate, compacted, facts, project, session_with, status_of

QUERY_COUNTS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> list[tuple[str, ...]]:
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    access.seen.clear()
    return tasks


@pytest.fixture
def page(client: Client, support) -> Client:
    client.force_login(support)
    return client


def address(within: Project | None = None) -> str:
    return reverse("memory-project", args=[(within or project()).pk])


def text_of(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_each_fact_stands_there_with_its_session_and_a_way_to_its_entry(page, support_actor):
    session = session_with()
    compacted(session, support_actor)
    html = page.get(address()).content.decode()
    assert "5 facts" in html
    assert "I prefer small commits with one thought each, please." in html
    assert f'href="{reverse("entry-detail", args=[session.pk, 4])}"' in html
    assert f'href="{reverse("session-detail", args=[session.pk])}"' in html
    assert "by code, as ana compacted" in text_of(page.get(address()))


def test_it_is_reached_from_the_session_the_policy_and_the_ledger(page, support_actor):
    session = session_with()
    compaction = compacted(session, support_actor)
    for path in (
        reverse("session-detail", args=[session.pk]),
        reverse("policy-project", args=[project().pk]),
        reverse("policy-session", args=[session.pk]),
        reverse("compaction-detail", args=[session.pk, compaction.pk]),
    ):
        assert f'href="{address()}' in page.get(path).content.decode(), path


def test_the_ledger_tells_the_receipt_in_words(page, support_actor, monkeypatch):
    session = session_with()
    compaction = compacted(session, support_actor)
    told = text_of(page.get(reverse("compaction-detail", args=[session.pk, compaction.pk])))
    assert "5 facts kept in the project's memory, each found there again." in told.replace("&#x27;", "'")
    assert "code, no model" in told
    assert "5 found, 5 in the store" in told
    monkeypatch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
    broken = session_with()
    compaction = compacted(broken, support_actor)
    told = text_of(page.get(reverse("compaction-detail", args=[broken.pk, compaction.pk])))
    assert "Nothing was kept: ZeroDivisionError. The history still holds everything; repair it to try again." in told


def test_it_is_filtered_by_kind_by_words_and_by_session(page, support_actor):
    session = session_with()
    compacted(session, support_actor)
    compacted(session_with("Never deploy on a Friday, whatever they say."), support_actor)
    assert "6 facts" in text_of(page.get(address()))
    assert "1 fact" in text_of(page.get(address(), {"kind": "decision"}))
    assert "Never deploy on a Friday" in text_of(page.get(address(), {"q": "friday"}))
    assert "5 facts of one session" in text_of(page.get(address(), {"session": str(session.pk)}))
    assert "No fact matches" in text_of(page.get(address(), {"q": "nowhere at all"}))
    assert page.get(address(), {"kind": "gossip"}).status_code == 400
    assert "Nothing is kept yet" in text_of(page.get(address(project("Empty"))))


def test_a_long_memory_is_read_page_by_page_at_the_same_cost(page):
    rows = [
        MemoryFact(project=project(), kind="fact", text=f"Fact number {number}", digest=str(number), created_at="2026-11-30T00:00Z")
        for number in range(230)
    ]
    MemoryFact.objects.bulk_create(rows)
    page.get(address())
    with CaptureQueriesContext(connection) as queries:
        html = page.get(address()).content.decode()
    assert len(queries) <= QUERY_COUNTS["memory-project"]
    seen = set(re.findall(r"Fact number \d+", html))
    while older := re.search(r'href="([^"]*before=[^"]*)"', html):
        html = page.get(older.group(1)).content.decode()
        seen |= set(re.findall(r"Fact number \d+", html))
    assert len(seen) == 230


def test_a_fact_is_forgotten_after_a_question_and_stays_so(page, support_actor):
    compacted(session_with(), support_actor)
    fact = MemoryFact.objects.get(kind="preference")
    path = reverse("memory-forget", args=[project().pk, fact.pk])
    assert f'href="{path}"' in page.get(address()).content.decode()
    assert "I prefer small commits" in text_of(page.get(path))
    assert fresh(fact).forgotten_at is None
    answer = page.post(path, follow=True)
    assert "Forgotten. No later compaction brings it back" in text_of(answer)
    assert "I prefer small commits" not in text_of(answer)
    assert "1 forgotten" in text_of(answer)
    assert Event.objects.get(type=EventType.MEMORY_FORGOTTEN).actor_name == "ana"
    assert page.post(path).status_code == 404
    assert page.get(reverse("memory-forget", args=[project("Other").pk, fact.pk])).status_code == 404


def test_what_was_not_kept_stands_above_and_can_be_tried_again(page, support_actor, queued, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
        compaction = compacted(session_with(), support_actor)
    assert "Not kept yet" in text_of(page.get(address()))
    answer = page.post(reverse("memory-repair", args=[project().pk]), follow=True)
    assert "1 flush will be tried again in a moment." in text_of(answer)
    assert ("sessions_app.repair_memory", str(compaction.pk)) in queued
    assert Event.objects.get(type=EventType.MEMORY_REPAIR_REQUESTED).actor_name == "ana"
    memory_flush.repair(compaction.pk)
    assert (status_of(compaction), "Not kept yet" in text_of(page.get(address()))) == ("repaired", False)
    assert "There was nothing to repair." in text_of(page.post(reverse("memory-repair", args=[project().pk]), follow=True))


def test_an_operator_reads_and_changes_nothing(client, operator, support_actor):
    compacted(session_with(), support_actor)
    client.force_login(operator)
    html = client.get(address()).content.decode()
    assert "I prefer small commits" in html
    assert "Forget" not in html
    fact = MemoryFact.objects.first()
    path = reverse("memory-forget", args=[project().pk, fact.pk])
    assert (client.get(path).status_code, client.post(path).status_code) == (403, 403)
    assert client.post(reverse("memory-repair", args=[project().pk])).status_code == 403
    assert len(facts()) == 5
    assert Event.objects.filter(type=EventType.ACCESS_REFUSED).exists()


def test_who_is_in_no_group_learns_nothing(client, outsider):
    client.force_login(outsider)
    assert client.get(address()).status_code == 404
    assert client.get(reverse("memory-project", args=[uuid.uuid4()])).status_code == 404


def test_a_read_is_an_event_once_in_a_while(page):
    page.get(address())
    page.get(address())
    deferred.flush()
    (event,) = Event.objects.filter(type=EventType.MEMORY_VIEWED)
    assert (event.target_kind, event.target_id, event.payload) == ("project", str(project().pk), {"name": "Payments"})


@pytest.mark.parametrize("name", hostile.PAYLOADS)
def test_hostile_text_in_a_fact_is_text_on_every_page(page, support_actor, name):
    payload = hostile.PAYLOADS[name].encode(errors="replace").decode().replace("\0", " ")  # as a reader gives it
    session = session_with(f"Never do this in any file: {payload}"[:380])
    compaction = compacted(session, support_actor)
    if not MemoryFact.objects.exists():  # not taken as a sentence: it gets there by another way
        MemoryFact.objects.create(
            project=project(), session=session, kind="fact", text=payload[:390], digest="d",
            created_at="2026-11-30T00:00Z", entry_indexes=[0],
        )  # fmt: skip
    fact = MemoryFact.objects.first()
    for path in (
        address(),
        reverse("memory-forget", args=[project().pk, fact.pk]),
        reverse("compaction-detail", args=[session.pk, compaction.pk]),
    ):
        assert violations(page.get(path).content.decode()) == [], path


def test_the_facts_of_a_session_that_is_gone_say_so(page, support_actor):
    session = session_with()
    compacted(session, support_actor)
    MemoryFlush.objects.all().delete()
    MemoryFact.objects.update(session=None)
    assert "its session is gone" in text_of(page.get(address()))


def test_an_opened_attempt_follows_its_receipt_until_that_is_final(page, support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    path = reverse("compaction-detail", args=[session.pk, compaction.pk])
    assert 'data-follows="memory"' in page.get(path).content.decode()
    seq = session_cursor(session.pk)
    gate.is_open.set()
    assert memory_beside.wait_for_all(60)
    assert 'data-changed="events memory"' in session_frame(session.pk, seq).messages[0]
    html = page.get(path).content.decode()
    assert f'id="receipt-{compaction.pk}"' in html
    assert 'data-follows="memory"' not in html
