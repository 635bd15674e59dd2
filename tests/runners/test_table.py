"""Runners as admins keep them: names, addresses and variables are checked, each change is an event, and no secret is anywhere."""

import pytest

from sessions_app.engine.terms import Lineage
from sessions_app.models import Event, Runner, Session
from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.runners.base import Health
from sessions_app.services.compactions.request import SessionBusy, request
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.services.runners import binding, table
from sessions_app.services.turns import send
from tests.fakes.runner_server import RunnerServer, closed_port, reply
from tests.runners.scenes import TESTS, bound_session, runner_at
from tests.services.compaction_scenes import fresh, long_session
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *_: None)


def test_each_change_is_an_event_with_before_and_after():
    runner = runner_at("http://127.0.0.1:1/", credential_variable="RUNNER_TOKEN_BOX")
    table.change(actor=TESTS, runner=runner, name="box2", base_url="http://localhost:2", credential_variable="")
    table.change(actor=TESTS, runner=runner, name="box2", base_url="http://localhost:2", credential_variable="")  # nothing new
    table.remove(actor=TESTS, runner=runner)
    added, changed, removed = Event.objects.filter(stream="security", target_kind="runner").order_by("seq")
    before = {"name": "box", "base_url": "http://127.0.0.1:1", "credential_variable": "RUNNER_TOKEN_BOX"}
    after = {"name": "box2", "base_url": "http://localhost:2", "credential_variable": ""}
    assert (added.type, added.before, added.after) == ("runner.added", None, before)
    assert (changed.type, changed.before, changed.after) == ("runner.changed", before, after)
    assert (removed.type, removed.before) == ("runner.removed", after)
    assert not Runner.objects.exists()


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "x" * 81, "a/b", "ä", "a\0b", "<b>"])
def test_a_name_that_no_runner_can_have(name):
    with pytest.raises(table.InvalidRunner) as failure:
        runner_at("http://127.0.0.1", name)
    assert (failure.value.field, Runner.objects.count()) == ("name", 0)


def test_no_two_have_one_name():
    runner_at("http://127.0.0.1")
    other = runner_at("http://127.0.0.1", "other")
    with pytest.raises(table.InvalidRunner, match="already"):
        runner_at("http://127.0.0.2")
    with pytest.raises(table.InvalidRunner, match="already"):
        table.change(actor=TESTS, runner=other, name="box", base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    "variable", ["PALIMPSEST_SECRET_KEY", "ANTHROPIC_API_KEY", "PATH", "runner_token_x", "RUNNER_TOKEN_", "s3cret", "RUNNER_TOKEN_X\n"]
)
def test_no_other_variable_of_the_process_can_be_sent_anywhere(variable):
    with pytest.raises(table.InvalidRunner) as failure:
        runner_at("http://127.0.0.1", credential_variable=variable if variable != "RUNNER_TOKEN_X\n" else "RUNNER_TOKEN_X\n.")
    assert failure.value.field == "credential_variable"


def test_an_address_elsewhere_is_refused_unless_the_installation_names_it(settings):
    with pytest.raises(table.InvalidRunner) as failure:
        runner_at("http://169.254.169.254")
    assert failure.value.field == "base_url"
    settings.RUNNER_HOSTS = ["192.0.2.0/24"]
    assert runner_at("http://192.0.2.7:80").base_url == "http://192.0.2.7:80"


def test_a_test_says_what_it_found_and_keeps_it():
    with RunnerServer() as server:
        server.health = reply(200, {"capabilities": ["compact"]})
        runner = runner_at(server.url)
        assert table.test(actor=TESTS, runner=runner).health is Health.UP
        assert (fresh(runner).health, runner.capabilities, runner.last_error) == (Health.UP, ["compact"], "")
        seen = runner.last_seen_at
        server.health = reply(503)
        assert "503" in table.test(actor=TESTS, runner=runner).problem
        assert (fresh(runner).health, runner.last_seen_at, runner.capabilities) == (Health.DOWN, seen, ["compact"])
    assert list(Event.objects.filter(type="runner.tested").order_by("seq").values_list("result", flat=True)) == ["allowed", "failed"]


def test_a_test_of_nobody_and_of_one_without_its_credential_is_down_with_the_reason(monkeypatch):
    assert "could not be reached" in table.test(actor=TESTS, runner=runner_at(f"http://127.0.0.1:{closed_port()}")).problem
    monkeypatch.delenv("RUNNER_TOKEN_NONE", raising=False)
    other = runner_at("http://127.0.0.1", "other", credential_variable="RUNNER_TOKEN_NONE")
    assert "RUNNER_TOKEN_NONE" in table.test(actor=TESTS, runner=other).problem


def test_only_admins_keep_runners(support_actor, operator_actor):
    runner = runner_at("http://127.0.0.1")
    for actor in (support_actor, operator_actor):
        for ask in (
            lambda actor=actor: table.add(actor=actor, name="x", base_url="http://127.0.0.1"),
            lambda actor=actor: table.change(actor=actor, runner=runner, name="x", base_url="http://127.0.0.1"),
            lambda actor=actor: table.test(actor=actor, runner=runner),
            lambda actor=actor: table.remove(actor=actor, runner=runner),
        ):
            with pytest.raises(ActionRefused):
                ask()
    assert Runner.objects.get().name == "box"


def test_support_binds_and_operators_do_not(support_actor, operator_actor):
    runner, session = runner_at("http://127.0.0.1"), long_session()
    with pytest.raises((ActionRefused, NoAccess)):
        binding.bind(actor=operator_actor, session=session, runner=runner)
    binding.bind(actor=support_actor, session=session, runner=runner, external_id="conv-7")
    event = Event.objects.get(type="runner.bound")
    assert event.before == {"runner": None, "external_id": "", "kind": "imported"}
    assert event.after == {"runner": "box", "external_id": "conv-7", "kind": "joined"}
    binding.bind(actor=support_actor, session=session, runner=runner, external_id="conv-7")
    assert Event.objects.filter(type="runner.bound").count() == 1


@pytest.mark.parametrize(("kind", "bound"), [("inline", "owned"), ("imported", "joined"), ("observed", "joined")])
def test_the_kind_says_whose_context_it_is_and_comes_back(kind, bound):
    session = store_session(kind=kind)
    one, other = runner_at("http://127.0.0.1"), runner_at("http://127.0.0.2", "other")
    assert binding.bind(actor=TESTS, session=session, runner=one).kind == bound
    assert binding.bind(actor=TESTS, session=session, runner=other).kind == bound
    assert binding.unbind(actor=TESTS, session=session).kind == kind
    binding.unbind(actor=TESTS, session=session)  # of none: nothing
    assert Event.objects.filter(type="runner.unbound").count() == 1


@pytest.mark.parametrize("external_id", ["x" * 201, "a\nb", "a\0b", "..", "."])
def test_an_id_that_no_address_should_hold(external_id):
    with pytest.raises(binding.InvalidBinding):
        binding.bind(actor=TESTS, session=long_session(), runner=runner_at("http://127.0.0.1"), external_id=external_id)


def test_nothing_is_bound_or_removed_under_a_compaction_or_a_turn():
    session = bound_session("http://127.0.0.1:1")
    request(actor=TESTS, session=session)
    for change in (
        lambda: binding.unbind(actor=TESTS, session=session),
        lambda: binding.bind(actor=TESTS, session=session, runner=Runner.objects.get()),
        lambda: table.remove(actor=TESTS, runner=Runner.objects.get()),
    ):
        with pytest.raises(CompactionUnderWay):
            change()
    talking = store_session(kind="inline", model="scripted", provider="scripted")
    send.send(actor=TESTS, session=talking, text="Hi.")
    with pytest.raises(SessionBusy):
        binding.bind(actor=TESTS, session=talking, runner=Runner.objects.get())


def test_a_runner_that_is_removed_leaves_its_sessions_as_they_were():
    session = bound_session("http://127.0.0.1:1")
    assert table.remove(actor=TESTS, runner=Runner.objects.get()) == 1
    assert (fresh(session).runner, session.kind) == (None, "imported")
    assert Event.objects.filter(type="runner.unbound", stream=f"session:{session.pk}").exists()
    assert Session.objects.count() == 1
    assert request(actor=TESTS, session=session).compaction.lineage == Lineage.CONSOLE
