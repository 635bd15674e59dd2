"""`new_session` and `send`: a session that is held here, from the command line."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Session, Turn, TurnStatus
from tests.conftest import make_user
from tests.management.commands import run
from tests.services.compaction_scenes import long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def new() -> str:
    out, _, end = run("new_session")
    assert end == Exit.OK
    return out.strip()


def test_a_session_is_begun_and_its_answer_is_written(monkeypatch):
    identifier = new()
    out, _, end = run("send", identifier, "What is left to do?")
    assert end == Exit.OK
    assert out.startswith("You ask: “What is left to do?”")
    assert out.rstrip().endswith("7 tokens.")
    assert Turn.objects.get().status == TurnStatus.COMPLETED


def test_json_tells_the_answer_and_what_was_measured():
    out, _, end = run("new_session", "--json", "--window", "8000", "--title", "Release")
    made = json.loads(out)
    assert (end, made["model"], made["window"], made["title"]) == (Exit.OK, "scripted", 8_000, "Release")
    told = json.loads(run("send", made["id"], "Hello", "--json")[0])
    assert (told["status"], told["number"]) == ("completed", 1)
    assert told["usage"]["input"] > 0
    assert "Hello" in told["answer"]


def test_without_waiting_the_message_is_queued_and_the_next_one_comes_after_it():
    identifier = new()
    out, _, end = run("send", identifier, "first", "--no-wait")
    assert (out.strip(), end) == ("Sent as message 1.", Exit.OK)
    assert Turn.objects.get().status == TurnStatus.QUEUED
    run("send", identifier, "second")
    assert list(Turn.objects.order_by("number").values_list("status", "user_index")) == [("completed", 0), ("completed", 2)]


def test_a_message_that_is_sent_again_with_its_key_is_taken_once_and_another_text_is_a_conflict():
    identifier, key = new(), "8f14e45f-ceea-467f-a5d4-0123456789ab"
    told = [json.loads(run("send", identifier, "Hello", "--key", key, "--json")[0])["id"] for _ in range(2)]
    assert told == [key, key]
    with pytest.raises(CommandFailure, match="Message 1 had this key") as failure:
        run("send", identifier, "Goodbye", "--key", key)
    assert (failure.value.end, failure.value.code, failure.value.field) == (Exit.USAGE, "conflict", "key")
    assert Turn.objects.count() == 1


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (("send", "SESSION", ""), Exit.USAGE),
        (("send", "nobody", "Hello"), Exit.NOT_FOUND),
        (("new_session", "--model", "openai:gpt-5"), Exit.USAGE),
        (("new_session", "--window", "10"), Exit.USAGE),
        (("new_session", "--as", "olga"), Exit.REFUSED),
        (("send", "SESSION", "Hello", "--as", "olga"), Exit.REFUSED),
    ],
)
def test_what_can_not_be_done_ends_with_its_code_and_a_sentence(arguments, end):
    make_user("olga", "operators")
    identifier = new()
    with pytest.raises(CommandFailure) as failure:
        run(*(identifier if argument == "SESSION" else argument for argument in arguments))
    assert failure.value.end == end
    assert len(str(failure.value).splitlines()) == 1
    assert Session.objects.count() == 1
    assert not Turn.objects.exists()


def test_a_session_of_an_agent_takes_no_message():
    session = long_session(turns=2)
    with pytest.raises(CommandFailure, match="held by its agent") as failure:
        run("send", str(session.pk), "Hello")
    assert failure.value.end == Exit.USAGE
