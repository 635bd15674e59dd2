"""A session whose file is written to, in the open page: entries come by themselves, and a reader is not moved."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection

from sessions_app.events.actors import system_actor
from sessions_app.live import consumers
from sessions_app.models import Session
from sessions_app.services.watching import Watch
from tests.e2e.watching import comes_true
from tests.readers.rows import SESSION, answer, encode, prompt
from tests.services.compaction_scenes import PATIENCE_S, wait_until


@pytest.fixture
def agent(tmp_path, transactional_db):
    """Writes rows to a file that is followed; the first ones are there already."""
    file: Path = tmp_path / f"{SESSION}.jsonl"
    rows = [prompt("u0", None, "Build the shop")]
    for number in range(60):
        rows.append(answer(f"a{number}", rows[-1]["uuid"], f"Step {number}\n\n" + "word " * 60))
    file.write_bytes(encode(rows))
    last = [rows[-1]["uuid"]]

    def write(kind, uuid: str, text: str) -> None:
        row = kind(uuid, last[0], text, timestamp=datetime.now(UTC).isoformat().replace("+00:00", "Z"))
        last[0] = uuid
        with file.open("ab") as out:
            out.write(encode([row]))

    statuses = []
    watch = Watch(actor=system_actor("tests"), folders=[tmp_path], tell=statuses.append)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    wait_until(lambda: bool(statuses) and not statuses[-1].is_first_pass)
    yield write
    watch.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [status.problem for status in statuses if status.problem] == []
    connection.close()


def address() -> str:
    return f"/sessions/{Session.objects.get().pk}/"


def test_a_line_that_the_agent_writes_stands_in_the_open_page_and_the_row_of_the_list_is_at_work(open_as, operator, agent):
    page, listed = open_as(operator), open_as(operator)
    listed.goto("/")
    page.goto(address())
    page.get_by_text("its files are followed", exact=False).or_(page.get_by_text("61 entries")).first.wait_for()
    page.get_by_text("Live", exact=True).first.wait_for()
    agent(prompt, "u1", "Now paint the door")
    page.get_by_role("log").get_by_text("Now paint the door").wait_for()
    page.locator("#count-entries").get_by_text("62 entries").wait_for()
    listed.get_by_role("row").filter(has_text="Build the shop").get_by_text("Working").wait_for()
    agent(answer, "b1", "The door is painted")
    page.get_by_role("log").get_by_text("The door is painted").wait_for()
    listed.get_by_role("row").filter(has_text="Build the shop").get_by_text("Idle").wait_for()


def test_a_reader_further_up_is_told_how_many_are_new_and_goes_there_when_asked(open_as, operator, agent):
    page = open_as(operator)
    page.goto(address())
    page.get_by_text("Live", exact=True).first.wait_for()
    before = page.evaluate("scrollTo({top: 1_500, behavior: 'instant'}), scrollY")  # a wheel would still be turning
    assert before > 800
    agent(prompt, "u1", "One more thing")
    page.get_by_role("button", name="1 new entry").wait_for()
    agent(answer, "b1", "And another")
    page.get_by_role("button", name="2 new entries").wait_for()
    assert page.get_by_text("One more thing").count() == 0
    assert page.evaluate("scrollY") == before
    page.get_by_role("button", name="2 new entries").click()
    page.get_by_role("log").get_by_text("And another").wait_for()
    comes_true(page, "innerHeight + scrollY >= document.documentElement.scrollHeight - 200")


def test_who_stands_at_the_newest_entry_follows(open_as, operator, agent):
    page = open_as(operator)
    page.goto(address())
    page.get_by_text("Live", exact=True).first.wait_for()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    agent(answer, "b1", "The very last word " * 100)
    page.get_by_role("log").get_by_text("The very last word").wait_for()
    comes_true(page, "innerHeight + scrollY >= document.documentElement.scrollHeight - 5")
    assert not page.locator("[data-newer]").is_visible()


def test_a_server_that_falls_silent_is_not_called_live(open_as, operator, agent, monkeypatch):
    monkeypatch.setattr(consumers, "BEAT_S", 3_600)
    page, is_frozen = open_as(operator), False

    def connect(socket) -> None:
        if is_frozen:
            socket.close(code=1012)
        else:
            socket.connect_to_server()

    page.route_web_socket("**/ws/sessions/**", connect)
    page.clock.install()
    page.goto(address())
    page.get_by_text("Live", exact=True).first.wait_for()
    is_frozen = True
    page.clock.fast_forward(27_000)
    page.clock.run_for(3_000)
    page.get_by_role("status").get_by_text("Connection lost", exact=False).wait_for()
    is_frozen = False

    def has_caught_up() -> bool:
        page.clock.run_for(1_000)
        page.wait_for_timeout(200)  # in which the connection is made
        return page.get_by_role("status").get_by_text("this page has caught up").count() > 0

    wait_until(has_caught_up)
    page.get_by_text("Live", exact=True).first.wait_for()
