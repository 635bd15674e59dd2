"""A session that is held here, in real browsers: begun, written to, followed by others, stopped, and compacted on its way."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from sessions_app.models import Entry, Session, Turn
from sessions_app.providers import scripted_model
from sessions_app.providers.scripted_model import ScriptedModel
from tests.e2e.watching import comes_true
from tests.services.compaction_scenes import wait_until

PIECES_AT_ONCE = 12


@pytest.fixture
def held(open_as, support):
    """The page of a session that was just begun."""
    page = open_as(support)
    page.goto("/sessions/new/")
    page.get_by_label("Title").fill("Planning the move")
    page.get_by_label("Model").fill("scripted")
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name="Planning the move", level=1).wait_for()
    return page


@pytest.fixture
def rest_of_answers(monkeypatch) -> Iterator[threading.Event]:
    """Answers come up to their first words. The rest comes once this is set, so that no test has to be faster than a model."""
    may_end = threading.Event()
    ask = ScriptedModel.ask

    async def ask_and_wait(self, request, on_text):
        pieces: list[str] = []
        answer = await ask(self, request, pieces.append)
        for place, piece in enumerate(pieces):
            while place >= PIECES_AT_ONCE and not may_end.is_set():
                await asyncio.sleep(0.02)
            on_text(piece)
        return answer

    monkeypatch.setattr(scripted_model, "PAUSE_S", 0.0)
    monkeypatch.setattr(ScriptedModel, "ask", ask_and_wait)
    yield may_end
    may_end.set()  # else the worker would never come to its end


def send(page, text: str) -> None:
    field = page.get_by_role("textbox", name="Message")  # what waits is labelled by this word as well
    field.fill(text)
    field.press("Enter")
    comes_true(page, "document.querySelector('[data-composer] textarea').value === ''")  # the server has it


def history(page):
    return page.get_by_role("log", name="History")


def test_a_message_is_answered_while_one_looks_and_another_person_sees_the_same(open_as, operator, held, check_access):
    other = open_as(operator)
    other.goto(held.url)
    other.get_by_text("Your role may read this session and not write to it").wait_for()
    send(held, "What comes first in the move?")
    history(other).get_by_text("What comes first in the move?").first.wait_for()
    for page in (held, other):
        history(page).get_by_text("I see the whole conversation").first.wait_for()
    wait_until(lambda: Turn.objects.get().status == "completed")
    assert Entry.objects.filter(role="user").count() == 1
    check_access(held)


def test_what_is_sent_meanwhile_waits_its_turn_and_can_be_taken_back(held, rest_of_answers):
    send(held, "The first of three.")
    held.get_by_role("button", name="Stop").wait_for()
    send(held, "The second of three.")
    send(held, "The third of three.")
    queue = held.get_by_role("list", name="Messages that wait")
    queue.get_by_text("The third of three.").wait_for()
    queue.get_by_role("listitem").filter(has_text="The third of three.").get_by_role("button", name="Take back").click()
    queue.get_by_text("The third of three.").wait_for(state="detached")
    rest_of_answers.set()
    history(held).get_by_text("The second of three.").first.wait_for()
    held.get_by_role("button", name="Stop").wait_for(state="detached")
    wait_until(lambda: [turn.status for turn in Turn.objects.order_by("number")] == ["completed", "completed", "withdrawn"])


def test_an_answer_is_stopped_and_what_had_come_of_it_stays(held, rest_of_answers):
    send(held, "Tell me all of it.")
    held.get_by_text("You ask:").first.wait_for()
    held.get_by_role("button", name="Stop").click()
    held.get_by_role("button", name="Stop").wait_for(state="detached")
    assert Turn.objects.get().status == "cancelled"
    history(held).get_by_text("You ask:").first.wait_for()
    rest_of_answers.set()
    send(held, "Go on.")
    history(held).get_by_text("I see the whole conversation").first.wait_for()


def test_an_empty_message_is_not_sent_and_a_line_can_be_begun(held):
    field = held.get_by_role("textbox", name="Message")
    field.press("Enter")
    assert not Turn.objects.exists()
    field.fill("One line")
    field.press("Shift+Enter")
    field.type("and another")
    field.press("Enter")
    history(held).get_by_text("and another").first.wait_for()
    assert Turn.objects.get().text == "One line\nand another"
    assert Session.objects.get().kind == "inline"
