"""`manage.py view`: the model view and the history, in every form, as pages would show them."""

import io
import json

import pytest
from django.core.management import call_command

from sessions_app.engine.entries import Checkpoint, Segment, SyntheticMessage
from sessions_app.engine.terms import Lineage, Role, SegmentKind
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event, Session
from sessions_app.selectors import plans
from sessions_app.services.access import seen
from tests.engine.histories import Story
from tests.management.commands import run
from tests.services.trouble import closed_to_writing
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db


def folded() -> Session:
    """Three turns, of which a checkpoint of this console has folded two."""
    story = Story()
    for turn in range(3):
        story.user(f"Question {turn}").calls(f"c{turn}").result(f"c{turn}", words=f"Result {turn}").says(f"Answer {turn}")
    session = store_session(story.entries)
    segments = (
        Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="What happened before.")),
        Segment(kind=SegmentKind.RANGE, first=8),
    )
    store_checkpoint(session, Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=segments, boundary_index=8))
    return session


def texts(out: str) -> list[str]:
    return [part["text"] for message in json.loads(out)["data"] for part in message["parts"]]


def test_it_is_the_view_that_the_model_has_with_the_source_of_each_part():
    session = folded()
    out, _, _ = run("view", session.pk, as_json=True)
    document = json.loads(out)
    assert [message["role"] for message in document["data"]] == [message.role for message in plans.load_view(session)]
    assert texts(out) == ["What happened before.", "Question 2", "{}", "Result 2", "Answer 2"]
    assert [part["entry"] for part in document["data"][0]["parts"]] == [None, 8]
    assert (document["layout"], document["context"], document["generation"]) == ("view", "console", 1)
    assert document["size"]["scope"] == "view"


def test_as_text_each_message_says_where_it_comes_from():
    out, _, _ = run("view", folded().pk)
    assert "What happened before.\nQuestion 2\n\n" in out
    assert "── assistant · entry 9 · " in out
    assert "[call Bash]\n{}" in out
    assert "[result]\nResult 2" in out


def test_the_history_holds_everything_and_says_what_became_of_it():
    session = folded()
    out, _, _ = run("view", session.pk, canonical=True, as_jsonl=True)
    entries = [json.loads(line) for line in out.splitlines()]
    assert [entry["index"] for entry in entries] == list(range(12))
    assert [(entry["fate"], entry["generation"]) for entry in (entries[0], entries[11])] == [("summarised", 1), ("verbatim", None)]


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({"generation": 0}, "Question 0", "Answer 2"),
        ({"generation": 1}, "What happened before.", "Answer 2"),
        ({"start": 10, "generation": 0}, "Result 2", "Answer 2"),
        ({"generation": 0, "first": 2}, "Question 0", "{}"),
        ({"generation": 0, "last": 1}, "Answer 2", "Answer 2"),
        ({"canonical": True, "start": 4, "first": 2}, "Question 1", "{}"),
        ({"canonical": True, "last": 2}, "Result 2", "Answer 2"),
    ],
)
def test_a_part_of_it_can_be_asked_for(options, first, last):
    out, _, _ = run("view", folded().pk, as_json=True, **options)
    assert (texts(out)[0], texts(out)[-1]) == (first, last)


@pytest.mark.parametrize("options", [{"generation": 7}, {"at": 12}, {"start": 12}])
def test_a_generation_or_an_entry_that_there_is_not_is_not_found(options):
    with pytest.raises(CommandFailure, match="This session has no") as failure:
        run("view", folded().pk, **options)
    assert failure.value.end == Exit.NOT_FOUND


def test_the_messages_of_a_request_are_one_document():
    session = folded()
    openai = json.loads(run("view", session.pk, format="openai")[0])
    assert [message["role"] for message in openai["messages"]] == ["user", "assistant", "tool", "assistant"]
    anthropic = json.loads(run("view", session.pk, format="anthropic")[0])
    assert [message["role"] for message in anthropic["messages"]] == ["user", "assistant", "user", "assistant"]
    with pytest.raises(CommandFailure) as failure:
        run("view", session.pk, format="openai", canonical=True)
    assert failure.value.end == Exit.USAGE


def test_a_transcript_cannot_act_on_the_terminal_unless_it_is_asked_for_raw():
    session = store_session(Story().user("\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202etxt").entries)
    safe = run("view", session.pk)[0]
    assert "red" in safe
    assert not {"\x1b", "\x07", "\u202e"} & set(safe)
    assert "\x1b[31mred" in run("view", session.pk, raw=True)[0]


def test_long_texts_can_be_cut_and_say_so():
    session = store_session(Story().user("x" * 50).entries)
    assert "xxxxx\n[… 45 more characters]" in run("view", session.pk, clip=5)[0]


def test_looking_is_an_event_of_who_looked(operator):
    seen.clear()
    session = folded()
    run("view", session.pk, acting_as=operator.username)
    event = Event.objects.get(type="session.viewed")
    assert (event.actor_name, event.actor_role, event.target_id) == (operator.username, "operator", str(session.pk))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", [("view",), ("compactions",), ("replay",), ("events", "--session")])
def test_what_cannot_be_written_down_as_read_is_not_shown(command):
    seen.clear()
    session, out = folded(), io.StringIO()
    with closed_to_writing(), pytest.raises(CommandFailure, match="Who reads this is written down first") as failure:
        call_command(*command, str(session.pk), stdout=out)
    assert (failure.value.end, out.getvalue()) == (Exit.FAILED, "")
    run(*command, str(session.pk))
    assert Event.objects.filter(type__in=("session.viewed", "audit.viewed")).count() == 1
