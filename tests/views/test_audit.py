"""The audit log: who may read it, what it can be filtered by, how it is paged, and that reading it is an event."""

import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, Event, EventResult, Project
from sessions_app.selectors import audit
from sessions_app.services import access

pytestmark = pytest.mark.django_db
LIST = "/audit/"
BUDGETS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())
ANA = Actor(kind=ActorKind.USER, id="1", name="ana", role="support", request_id="req-1", gesture_id="ges-1", address="10.0.0.1")
SWEEPER = system_actor("sweeper")
SESSION = "session:00000000-0000-0000-0000-000000000007"


@pytest.fixture(autouse=True)
def nobody_was_seen():
    access.seen.clear()
    yield
    access.seen.clear()


@pytest.fixture
def page(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


def write(stream: str, event_type: EventType, **fields) -> int:
    """Appends an event and returns its id, which an append does not read back."""
    return Event.objects.get(stream=stream, seq=log.append(stream, event_type, **fields).seq).pk


@pytest.fixture
def events() -> dict[str, int]:
    """One event of each sort that a filter can tell apart; ids by name."""

    return {
        "policy": write(
            log.SECURITY,
            EventType.POLICY_CHANGED,
            actor=ANA,
            target=("installation", ""),
            before={"keep": 1},
            after={"keep": 2},
            reason="too long",
        ),
        "import": write("imports", EventType.IMPORT_FINISHED, actor=SWEEPER, result=EventResult.FAILED, target=("import", "i1")),
        "session": write(SESSION, EventType.SESSION_STATUS_CHANGED, actor=SWEEPER, target=("session", SESSION.partition(":")[2])),
        "refused": write(log.access_stream(), EventType.ACCESS_REFUSED, actor=ANA, result=EventResult.REFUSED, target=("session", "s9")),
    }


def shown(answer) -> list[int]:
    return [line.id for line in answer.context["lines"]]


@pytest.mark.parametrize("path", ["/audit/", "/audit/1/", "/audit/newer/", "/audit/export/", "/audit/verify/"])
@pytest.mark.parametrize("name", ["operator", "support"])
def test_whoever_is_no_admin_is_refused_and_that_is_an_event(client, request, name, path):
    client.force_login(request.getfixturevalue(name))
    assert client.get(path).status_code == 403
    event = Event.objects.get(type="access.refused")
    assert (event.actor_role, event.payload["action"], event.target_kind) == (name, "audit", "audit")


def test_whoever_is_in_no_group_finds_nothing_and_nobody_else_gets_to_it_without_a_sign_in(client, outsider):
    assert client.get(LIST).status_code == 302
    client.force_login(outsider)
    assert client.get(LIST).status_code == 404


def test_the_navigation_leads_admins_there_and_nobody_else(page, client, operator):
    assert 'href="/audit/"' in page.get("/").content.decode()
    client.force_login(operator)
    assert 'href="/audit/"' not in client.get("/").content.decode()


FILTERS = [
    ("action=policy.changed", ["policy"]),
    ("stream=imports", ["import"]),
    ("family=security", ["policy"]),
    ("family=access", ["refused"]),
    (f"session={SESSION.partition(':')[2]}", ["session"]),
    ("actor=ana", ["refused", "policy"]),
    ("actor=nobody", []),
    ("kind=system", ["session", "import"]),
    ("role=support", ["refused", "policy"]),
    ("role=support&result=refused", ["refused"]),
    ("target=i1", ["import"]),
    ("result=failed", ["import"]),
    ("result=allowed", ["session", "policy"]),
    ("request=req-1", ["refused", "policy"]),
    ("gesture=ges-1&action=policy.changed", ["policy"]),
    ("address=10.0.0.1", ["refused", "policy"]),
    ("q=TOO+lo", ["policy"]),
    ("q=sweep", ["session", "import"]),
    ("since=2020-01-01T00:00", ["refused", "session", "import", "policy"]),
    ("until=2020-01-01T00:00", []),
    ("compaction=00000000-0000-0000-0000-000000000009", []),
]


@pytest.mark.parametrize(("query", "found"), FILTERS)
def test_each_filter_of_the_address_finds_what_it_names(page, events, query, found):
    Event.objects.exclude(pk__in=events.values()).delete()
    answer = page.get(f"{LIST}?{query}")
    assert shown(answer) == [events[name] for name in found]
    assert answer.context["matching"].number == len(found)


@pytest.mark.parametrize("query", ["kind=ghost", "since=yesterday", "before=-1", "session=1", "before=999999", "result=perhaps"])
def test_a_filter_with_a_value_that_it_cannot_have_is_400_in_words(page, query):
    assert page.get(f"{LIST}?{query}").status_code == 400


@pytest.mark.parametrize("query", ["", "kind=system", "actor=sweeper", f"stream={SESSION}"])
def test_pages_lead_through_all_events_and_back_without_one_lost_or_twice(page, monkeypatch, query):
    monkeypatch.setattr(audit, "PAGE_EVENTS", 3)
    access.seen.is_new("user:0", "nothing")
    ids = [write(SESSION, EventType.ENTRIES_APPENDED, actor=SWEEPER) for _ in range(10)]
    Event.objects.filter(pk__in=ids).update(at="2026-11-30T12:00:00.000000+00:00")  # all in one moment: the id decides
    Event.objects.exclude(pk__in=ids).delete()
    monkeypatch.setattr(access, "record", lambda **_: None)
    seen, address, answer = [], f"{LIST}?{query}", None
    while address:
        answer = page.get(address)
        seen += shown(answer)
        address = answer.context["links"].older
    assert seen == ids[::-1]
    back = shown(answer)
    while address := answer.context["links"].newer:
        answer = page.get(address)
        back = shown(answer) + back
    assert back[-len(ids) :] == ids[::-1]


def test_a_rare_event_is_searched_in_steps_that_say_how_far_they_went(page, monkeypatch):
    monkeypatch.setattr(audit, "LOOKED_AT", 5)
    wanted = write(SESSION, EventType.SESSION_IMPORTED, actor=SWEEPER, reason="needle")
    for _ in range(12):
        log.append(SESSION, EventType.ENTRIES_APPENDED, actor=SWEEPER)
    address, steps = f"{LIST}?q=needle", 0
    while address:
        answer = page.get(address)
        steps += 1
        if shown(answer):
            break
        assert "Look further back" in answer.content.decode()
        assert answer.context["page"].searched_back_to
        address = answer.context["links"].older
    assert shown(answer) == [wanted]
    assert steps > 1


def test_an_opened_event_shows_what_changed_its_place_in_the_chain_and_its_neighbours(page, events):
    html = page.get(f"{LIST}?opened={events['policy']}").content.decode()
    for said in (
        "<del>1</del>",
        "too long",
        "policy.changed",
        "matches the content",
        "Of the same press",
        "Of the same request",
        "event 1 of 1",
    ):
        assert said in html
    assert bytes(Event.objects.get(pk=events["policy"]).hash).hex() in html
    assert page.get(reverse("audit-detail", args=[events["policy"]])).status_code == 200
    assert page.get("/audit/999999/").status_code == 404


def test_an_event_that_was_changed_afterwards_says_so_when_it_is_opened(page, events):
    Event.objects.filter(pk=events["policy"]).update(reason="shorter")
    assert "the content was changed" in page.get(reverse("audit-detail", args=[events["policy"]])).content.decode()


def test_what_events_hold_never_becomes_markup(page):
    evil = '<img src=x onerror="alert(1)">'
    actor = Actor(kind=ActorKind.USER, id="1", name=evil, role=evil[:20], request_id=evil, gesture_id=evil, address=evil)
    made = write(
        SESSION,
        EventType.POLICY_CHANGED,
        actor=actor,
        target=(evil[:30], evil),
        reason=evil,
        before=evil,
        after={evil: evil},
        payload={evil: evil},
    )
    assert "<img" not in page.get(f"{LIST}?opened={made}&q=%3Cimg").content.decode()


def test_reading_it_is_one_event_in_ten_minutes_with_the_filters(page, events):
    for _ in range(3):
        page.get(f"{LIST}?actor=ana")
    event = Event.objects.get(type="audit.viewed")
    assert (event.actor_name, event.payload, event.stream.partition(":")[0]) == ("ada", {"filters": {"actor": "ana"}}, "access")


def test_new_events_are_counted_but_not_reads(page, events):
    newest = page.get(LIST).context["page"].newest
    address = f"/audit/newer/?newer_than={newest}"
    assert "new event" not in page.get(address).content.decode()
    log.append(SESSION, EventType.ENTRIES_APPENDED, actor=SWEEPER)
    log.append(log.access_stream(), EventType.SESSION_VIEWED, actor=ANA)
    answer = page.get(address, headers={"HX-Request": "true"})
    assert "1 new event, show" in answer.content.decode()
    assert "<html" not in answer.content.decode()
    assert "1 new event, show" in page.get(f"{address}&actor=ana&family=access").content.decode()
    assert "new event" not in page.get(f"{address}&actor=nobody").content.decode()


@pytest.mark.parametrize(
    ("name", "query"),
    [("audit-list", ""), ("audit-list, searched", "?q=ana&kind=user"), ("audit-list, opened", "?opened={policy}")],
)
def test_the_page_asks_no_more_than_its_budget(page, events, name, query, django_assert_max_num_queries):
    page.get(LIST)
    with django_assert_max_num_queries(BUDGETS[name]):
        page.get(LIST + query.format(**events))


def test_verification_shows_each_stream_and_keeps_what_it_found(page, events):
    assert "Not verified yet" in page.get("/audit/verify/").content.decode()
    html = page.post("/audit/verify/").content.decode()
    assert "All chains whole" in html
    assert log.SECURITY in html
    Event.objects.filter(pk=events["import"]).update(reason="changed")
    html = page.post("/audit/verify/").content.decode()
    assert "its content was changed" in html
    said = Event.objects.filter(type="audit.verified").latest("pk")
    assert (said.result, said.payload["broken"][0]["stream"]) == ("failed", "imports")


def test_a_long_verification_goes_on_step_by_step_and_nobody_can_forge_one(page, events, monkeypatch):
    from sessions_app.services import audit_verification as verification

    monkeypatch.setattr(verification, "STEP_S", 0.0)
    monkeypatch.setattr(verification, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(verification.time, "monotonic", iter(range(10_000)).__next__)
    monkeypatch.setattr(verification, "STEP_S", 1.5)
    answer, steps = page.post("/audit/verify/"), 1
    while answer.context["run"] is not None:
        assert not Event.objects.filter(type="audit.verified").exists()
        answer, steps = page.post("/audit/verify/", {"state": answer.context["run"].state}), steps + 1
    assert steps > 1
    assert Event.objects.filter(type="audit.verified").count() == 1
    assert page.post("/audit/verify/", {"state": "forged"}).status_code == 400


def test_one_stream_is_verified_at_once(page, events):
    answer = page.post("/audit/verify/stream/", {"stream": "security"}, follow=True)
    assert "are as they were written" in answer.content.decode()
    Event.objects.filter(pk=events["policy"]).update(reason="changed")
    assert "broken at event 1" in page.post("/audit/verify/stream/", {"stream": "security"}, follow=True).content.decode()


def test_a_project_is_named_and_what_has_no_value_is_none(page):
    project = Project.objects.create(name="harvest", key="/home/dev/harvest")
    write(log.SECURITY, EventType.POLICY_CHANGED, actor=ANA, target=("project", str(project.pk)), before={"keep": 1}, after={"keep": None})
    write(log.SECURITY, EventType.POLICY_CHANGED, actor=ANA, target=("project", "00000000-0000-0000-0000-000000000009"))
    gone, known = page.get(LIST, {"action": "policy.changed"}).context["lines"][:2]
    assert (known.target.words, known.target.page, known.facts) == ("project harvest", "project", "keep 1 → none")
    assert (gone.target.words, gone.target.page) == ("project 00000000, not here", "")
    assert reverse("memory-project", args=[project.pk]) in page.get(LIST).content.decode()
