"""What hides in the text of a transcript is seen: on pages, in what is told live, in snippets, in the log, in what is exported to read."""

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.demo.transcript import Transcript
from sessions_app.engine.unseen import SIGN, UNSEEN, shown, shown_page
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.live.fragments import list_frame, session_frame
from sessions_app.models import ActorKind
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.importing import ACTOR, imported
from tests.security.pages import pages_of, pages_of_entries

HIDDEN = {
    "override": "\u202e",
    "isolate": "\u2066",
    "mark": "\u200f",
    "arabic mark": "\u061c",
    "zero width": "\u200b",
    "joiner of words": "\u2060",
    "byte order mark": "\ufeff",
    "filler": "\u3164",
    "tag": "\U000e0041",
    "annotation": "\ufff9",
    "bell": "\x07",
    "escape": "\x1b",
    "c1": "\x9b",
}
EVERY = "".join(f"a{letter}b" for letter in HIDDEN.values())
NAME = f"invoice {EVERY} end"


def hiding() -> Transcript:
    """A session that hides something in every place: title, folder, branch, model, tool, paths, words."""
    session = Transcript(key="hiding", cwd=f"/home/dev/{NAME}", branch=NAME[:150], model=NAME[:90])
    session.title(NAME)
    for turn in range(8):
        session.ask(f"Please never touch {NAME} in turn {turn}.")
        session.call("Read", {"file_path": f"/x/{NAME}.py"}, f"1\t{NAME}")
        session.call(NAME[:60], {NAME[:40]: NAME}, NAME, error=True)
        session.say(f"Done with {NAME} and `{NAME}` in turn {turn}. " * 12)
    return session


@pytest.fixture
def session(db):
    brought = imported(hiding(), window=6_000)
    run_compaction(request(actor=ACTOR, session=brought, force=True, instructions=NAME).compaction.pk)
    brought.refresh_from_db()
    return brought


def hides(text: str) -> list[str]:
    """What is left unseen in a text, with what stands around it."""
    return [text[max(0, found.start() - 40) : found.end() + 20] for found in UNSEEN.finditer(text)]


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_each_of_them_is_shown_where_it_stands(hidden):
    assert shown(f"a{hidden}b") == f"a{SIGN}b"
    assert shown_page(f"“a{hidden}b”".encode()) == f"“a{SIGN}b”".encode()


@pytest.mark.parametrize(
    "kept", ["e\u0301", "👩\u200d💻", "می\u200cروم", "❤\ufe0f", "שלום", "a\tb\nc\r\nd", "10\u00a0km", "naïve – “quoted”"]
)
def test_what_a_script_or_a_picture_is_made_of_stays(kept):
    assert shown(kept) == kept


@given(st.text(max_size=200))
def test_a_page_says_the_same_as_its_text(text):
    encoded = text.encode("utf-8", "replace")
    assert shown_page(encoded) == shown(encoded.decode()).encode()


def test_no_page_of_a_session_hides_anything(admin, client, session):
    client.force_login(admin)
    for path in (*pages_of(session), *pages_of_entries(session, limit=12)):
        for headers in ({}, {"HX-Request": "true"}):
            answer = client.get(path, headers=headers)
            if answer.get("Content-Type", "").startswith("text/html"):
                assert hides(answer.content.decode()) == [], path


def test_neither_lists_nor_searches_nor_the_log_do(admin, client, session):
    actor = Actor(kind=ActorKind.USER, id="1", name=NAME[:60], role="support", address="127.0.0.1")
    log.append(log.session_stream(session.pk), EventType.ENTRY_PINNED, actor=actor, reason=NAME, before={NAME: NAME}, after={NAME: EVERY})
    client.force_login(admin)
    for path in ("/", "/?q=invoice", "/search/?q=invoice", f"/sessions/{session.pk}/?q=invoice", "/audit/", "/audit/?q=invoice"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert hides(answer.content.decode()) == [], path
    assert SIGN in client.get("/").content.decode()


def test_neither_does_what_is_told_live(session):
    messages = (*session_frame(session.pk, 0).messages, *list_frame(0).messages)
    assert messages
    assert [found for message in messages for found in hides(message)] == []


def test_neither_does_a_markdown_export(admin, client, session):
    client.force_login(admin)
    export = b"".join(client.get(reverse("session-export", args=[session.pk]), {"format": "markdown"}).streaming_content).decode()
    assert hides(export) == []
    assert "\\u202e" in export


def test_the_source_is_given_back_byte_for_byte_all_the_same(admin, client, session):
    client.force_login(admin)
    given_back = b"".join(client.get(reverse("session-export", args=[session.pk])).streaming_content)
    assert "\\u202e" in given_back.decode() or "\u202e" in given_back.decode()
