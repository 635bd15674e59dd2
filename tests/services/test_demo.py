"""Filling an empty installation with the demo."""

import time

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from sessions_app.events.actors import system_actor
from sessions_app.models import Compaction, Entry, Session
from sessions_app.permissions import role_of
from sessions_app.services import demo, search_index

pytestmark = pytest.mark.django_db
ACTOR = system_actor("tests")


@pytest.fixture(scope="module")
def filled(django_db_setup, django_db_blocker):
    """The demo, filled once for this module, and the seconds of this process that it took."""
    with django_db_blocker.unblock():
        _empty()
        began = time.process_time()
        report = demo.fill(actor=ACTOR)
        yield report, time.process_time() - began
        _empty()


def _empty() -> None:
    """The search index as well: a flush does not know its tables, and begins to count the rows' numbers anew."""
    search_index.empty_index()
    call_command("flush", verbosity=0, interactive=False)


def test_it_holds_about_a_dozen_sessions_of_all_kinds(filled):
    report, _ = filled
    assert 12 <= report.sessions <= 16
    assert Session.objects.filter(entry_count__gte=2_500).exists()
    assert Session.objects.filter(relation="sub_agent").count() == 2
    assert Session.objects.filter(status="working").count() == 1
    assert Session.objects.filter(warning_count__gt=0).exists()
    assert Session.objects.filter(failure_count__gt=0).exists()
    assert any(session.signal_tokens >= session.trigger_tokens for session in Session.objects.listed())
    assert Entry.objects.filter(role="notice", kind="compacted").exists()


def test_it_holds_compactions_of_the_agent_and_of_this_console(filled):
    made = Compaction.objects.filter(generation__isnull=False)
    assert made.filter(lineage="agent").count() >= 5
    assert made.filter(lineage="console", outcome="committed").count() >= 3
    assert Compaction.objects.filter(outcome="skipped").exists()
    assert all(compaction.tokens_after < compaction.tokens_before for compaction in made.filter(lineage="console"))


def test_one_session_was_set_back_to_an_earlier_generation(filled):
    assert any(
        session.active_console
        and Compaction.objects.filter(session=session, lineage="console", generation__gt=session.active_console.generation)
        for session in Session.objects.all()
    )


def test_every_role_can_sign_in_with_the_password_that_is_shown_once(filled):
    report, _ = filled
    assert [(sign_in.name, sign_in.role) for sign_in in report.sign_ins] == [("olga", "operator"), ("ana", "support"), ("ada", "admin")]
    for sign_in in report.sign_ins:
        user = authenticate(RequestFactory().post("/sign-in/"), username=sign_in.name, password=sign_in.password)
        assert user is not None
        assert role_of(user) == sign_in.role


def test_it_never_fills_an_installation_that_is_in_use(filled):
    before = Session.objects.count()
    assert demo.fill(actor=ACTOR) == demo.DemoReport()
    with pytest.raises(CommandError, match="in use already"):
        call_command("demo")
    assert Session.objects.count() == before


def test_it_is_quick_enough_for_a_first_start(filled):
    assert filled[1] < 15


def test_it_holds_a_session_of_its_own_that_was_answered_turn_by_turn_and_compacted_on_its_way(filled):
    session = Session.objects.get(kind="inline")
    assert session.turns.count() >= 8
    assert set(session.turns.values_list("status", flat=True)) == {"completed"}
    assert session.active_console is not None
    assert session.signal_origin == "measured"
