"""What every summary is to stress: set once, asked of the model whoever or whatever begins, and told with the record (C65)."""

import json
import uuid

import pytest
from django.urls import reverse

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.steps import SummaryRequest
from sessions_app.engine.terms import SummarySource, Trigger
from sessions_app.events.actors import system_actor
from sessions_app.models import Compaction, PolicyValue, Project, Session, SessionKind, SessionStatus
from sessions_app.services.compactions.automatic import before_turn
from sessions_app.services.compactions.request import InvalidRequest, request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.policies import change
from tests.engine.histories import Story
from tests.fakes.keys import point_at
from tests.fakes.model_server import ModelServer, say
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session
from tests.services.turn_scenes import PROVIDERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
ADMIN = system_actor("ben")
HOUSE, PROJECT = "Keep every ticket number.", "Write the reasons for what was dropped.\nName people by their role."
SUMMARY = "## Primary request and intent\nSay why the builds fail.\n\n## Next step\nGo on."


@pytest.fixture(params=PROVIDERS)
def server(request, monkeypatch):
    with ModelServer(reply=lambda _: say(SUMMARY)) as running:
        point_at(running, request.param, monkeypatch)
        change(actor=ADMIN, scope="installation", values={"summarisers": [f"{request.param}:scripted-model@60000"]})
        yield running


def inline(**columns) -> Session:
    return long_session(40, kind=SessionKind.INLINE, model="m", **columns)


def asked_of(server: ModelServer) -> str:
    """The last prompt, behind its material."""
    return server.prompts[-1].texts[-1].rpartition("</material>")[2]


def by_hand(actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=session, **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def test_an_automatic_compaction_asks_for_them_as_the_nearest_place_says(server, support_actor):
    project = Project.objects.create(key="/srv/pay", name="Payments")
    change(actor=ADMIN, scope="installation", values={"standing_instructions": HOUSE, "clear_results": False})
    change(actor=ADMIN, scope="project", scope_id=project.pk, values={"standing_instructions": PROJECT})
    for session, told, other in ((inline(), HOUSE, PROJECT), (inline(project=project), PROJECT, HOUSE)):
        Session.objects.filter(pk=session.pk).update(status=SessionStatus.WORKING)
        made = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4()).compaction
        assert (made.trigger, made.summary_source) == (Trigger.THRESHOLD, SummarySource.LLM), made.explanation
        assert all(told in asked.texts[-1] and other not in asked.texts[-1] for asked in server.prompts[-made.chunk_count :])
        assert (made.policy["values"]["standing_instructions"], made.instructions) == (told, "")


def test_what_a_person_asks_for_is_added_to_them(server, support_actor):
    change(actor=ADMIN, scope="installation", values={"standing_instructions": HOUSE})
    by_hand(support_actor, inline(), instructions="Stress the modules.")
    asked = asked_of(server)
    assert 0 < asked.index(HOUSE) < asked.index("Stress the modules.")


def test_the_narrowest_place_may_want_none(server, support_actor):
    session = inline()
    change(actor=ADMIN, scope="installation", values={"standing_instructions": HOUSE})
    out = run("policy", "--session", session.pk, "--set", "standing_instructions=none")[0]
    assert "none" in out
    assert PolicyValue.objects.get(scope="session").value == ""
    by_hand(support_actor, session)
    assert HOUSE not in asked_of(server)


def test_the_record_the_dialog_and_the_commands_tell_of_them(support_actor, client, support):
    client.force_login(support)
    session = inline()
    change(actor=ADMIN, scope="session", scope_id=session.pk, values={"standing_instructions": HOUSE})
    assert HOUSE in client.get(reverse("compaction-create", args=[session.pk])).content.decode()
    made = by_hand(support_actor, session, instructions="Stress the modules.")
    change(actor=ADMIN, scope="session", scope_id=session.pk, values={"standing_instructions": "Something else."})
    html = client.get(reverse("compaction-detail", args=[session.pk, made.pk])).content.decode()
    assert f"<dt>Always</dt><dd>{HOUSE}</dd>" in html
    assert "Something else." not in html
    told = json.loads(run("compactions", session.pk, "--attempt", "1", as_json=True)[0])
    assert (told["standing_instructions"], told["instructions"]) == (HOUSE, "Stress the modules.")
    assert f"standing instructions: {HOUSE}" in run("compactions", session.pk, "--attempt", "1")[0]
    assert "Something else." in run("policy", "--session", session.pk)[0]


def test_an_admin_writes_them_on_the_page_in_several_lines(client, admin):
    client.force_login(admin)
    page = reverse("policy-installation")
    assert '<textarea class="input" id="input-standing_instructions"' in client.get(page).content.decode()
    client.post(page, {"standing_instructions": PROJECT.replace("\n", "\r\n")})
    assert PolicyValue.objects.get(field="standing_instructions").value == PROJECT
    again = {"was-standing_instructions": PROJECT.replace("\n", "\r\n")}
    longest = "x" * 1_000 + "\r\n" + "y" * 999
    client.post(page, again | {"standing_instructions": longest})
    assert PolicyValue.objects.get(field="standing_instructions").value == longest.replace("\r\n", "\n")
    refused = client.post(page, {"was-standing_instructions": longest, "standing_instructions": "z" * 2_001})
    assert refused.status_code == 422
    assert "may have 2,000 characters; these have 2,001" in refused.content.decode()


def test_the_summariser_without_a_model_keeps_what_they_name():
    story = Story().user("Look into the deploy.")
    for number in range(60):
        story.says(f"The stage {number} was measured because it matters, and the root cause is that step {number} is slow.")
    story.says("Besides, the wombat valve leaks a little.").says("All stages are measured.")
    without = ExtractiveSummariser().summarise(SummaryRequest(entries=tuple(story.entries), max_tokens=400), lambda: None)
    told = SummaryRequest(entries=tuple(story.entries), max_tokens=400, standing_instructions="Say all of the wombat valve.")
    assert "wombat valve" not in without.text
    assert "wombat valve" in ExtractiveSummariser().summarise(told, lambda: None).text


@pytest.mark.parametrize("words", ["a\0b", "half \ud83d of it"])
def test_what_no_database_stores_is_refused_and_nothing_is_started(support_actor, words):
    session = inline()
    with pytest.raises(InvalidRequest, match="no database stores"):
        request(actor=support_actor, session=session, instructions=words)
    with pytest.raises(ValueError, match="no database stores"):
        change(actor=ADMIN, scope="session", scope_id=session.pk, values={"standing_instructions": words})
    assert not Compaction.objects.exists()
