"""`manage.py memory`: lists, forgets and repairs, in text and as JSON, with the same rights as the page."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import MemoryFact, Project
from sessions_app.permissions import ActionRefused
from sessions_app.services import memory_flush
from tests.management.commands import run
from tests.services.memory_scenes import compacted, facts, project, session_with, status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def test_the_facts_of_a_project_named_by_its_name_key_or_id(support_actor):
    session = session_with()
    compacted(session, support_actor)
    for named in ("Payments", "payments", str(project().pk)):
        out, _, end = run("memory", named)
        assert end == Exit.OK
        assert out.count("\n") == 6
        assert "I prefer small commits with one thought each, please." in out
    told = json.loads(run("memory", "Payments", kind="decision", as_json=True)[0])
    assert (told["name"], [fact["kind"] for fact in told["data"]]) == ("Payments", ["decision"])
    assert (told["data"][0]["entries"], told["data"][0]["session_id"], told["data"][0]["found_by"]) == ([4], str(session.pk), "code")
    assert json.loads(run("memory", "Payments", search="ledgers", as_json=True)[0])["data"][0]["kind"] == "constraint"
    assert len(json.loads(run("memory", "Payments", limit=2, as_json=True)[0])["data"]) == 2


def test_a_project_that_there_is_not_or_more_than_once():
    with pytest.raises(CommandFailure, match="There is no project 'Nowhere'") as missing:
        run("memory", "Nowhere")
    assert missing.value.end == Exit.NOT_FOUND
    Project.objects.create(key="one", name="Twin")
    Project.objects.create(key="two", name="Twin")
    with pytest.raises(CommandFailure, match=r"Nothing was done. Some that there are: Twin\.$"):
        run("memory", "Nowhere")
    with pytest.raises(CommandFailure, match="several projects: one, two"):
        run("memory", "Twin")
    with pytest.raises(CommandFailure, match="Name a project"):
        run("memory")


def test_a_fact_is_forgotten_by_a_part_of_its_id(support_actor):
    compacted(session_with(), support_actor)
    fact = MemoryFact.objects.get(kind="preference")
    out, _, end = run("memory", forget=fact.pk.hex[-8:])
    assert (end, out) == (Exit.OK, "Forgotten. No later compaction brings it back; the entries that state it are as they were.\n")
    assert fact.text not in facts()
    with pytest.raises(CommandFailure, match="No memory holds a fact"):
        run("memory", forget=fact.pk.hex[-8:])


def test_an_operator_forgets_and_repairs_nothing(support_actor, operator):
    compacted(session_with(), support_actor)
    for options in ({"forget": MemoryFact.objects.first().pk.hex}, {"repair": True}):
        with pytest.raises((CommandFailure, ActionRefused), match=r"may not change memory"):
            run("memory", acting_as="olga", **options)
    assert len(facts()) == 5


def test_repairs_are_made_here_and_now(support_actor, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
        compaction = compacted(session_with(), support_actor)
        out, _, end = run("memory", repair=True)
        assert (end, out) == (Exit.FAILED, f"{compaction.pk.hex[-8:]} still failed retryable: ZeroDivisionError\n")
    out, _, end = run("memory", "Payments", repair=True)
    assert (end, out) == (Exit.OK, f"{compaction.pk.hex[-8:]} repaired, 5 facts kept, 5 new\n")
    assert status_of(compaction) == "repaired"
    assert run("memory", repair=True)[2] == Exit.NOTHING_TO_DO
    assert json.loads(run("memory", repair=True, as_json=True)[0])["data"] == []
