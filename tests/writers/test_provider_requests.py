"""A view as the messages of a request, as each provider's interface takes it."""

import base64
import json
import re

from sessions_app.engine import view
from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages
from tests.engine.histories import Story

PIXEL = b"\x89PNG"


def load(name: str) -> bytes:
    if name != "pixel":
        raise LookupError(name)
    return PIXEL


def image(**more) -> Part:
    return Part(kind=PartKind.IMAGE, blob="pixel", media_type="image/png", size_bytes=4, **more)


def told():
    story = Story().system("You are an agent.").user("Look at this.")
    story.add(Role.ASSISTANT, Kind.THINKING, Part(kind=PartKind.THINKING, text="Hm."), key="m1")
    story.says("I look.", key="m1").calls("c1", key="m1")
    story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="no such file", call_id="c1", is_error=True), image(call_id="c1"))
    story.add(
        Role.USER, Kind.MESSAGE, Part(kind=PartKind.TEXT, text="And this:"), image(), Part(kind=PartKind.IMAGE, media_type="image/gif")
    )
    return view.build(story.entries, None)


def test_openai_gets_calls_with_their_results_behind_them_and_images_in_a_message_of_the_user():
    system, asked, called, result, rest = openai_messages(told(), load)
    assert (system, asked) == ({"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Look at this."})
    assert (called["role"], called["content"]) == ("assistant", "I look.")
    assert called["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "no such file"}
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    assert [item["type"] for item in rest["content"]] == ["image_url", "text", "image_url", "text"]
    assert rest["content"][0]["image_url"]["url"] == url
    assert rest["content"][3]["text"] == "[image: image/gif, 0 bytes]"


def test_anthropic_gets_images_inside_the_result_that_they_belong_to():
    system, _, called, answered = anthropic_messages(told(), load)
    assert system["role"] == "system"
    assert [block["type"] for block in called["content"]] == ["text", "tool_use"]
    result, *rest = answered["content"]
    assert (result["tool_use_id"], result["is_error"]) == ("c1", True)
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    assert [block["type"] for block in rest] == ["text", "image", "text"]


def test_arguments_that_are_no_object_still_make_a_request():
    calls = [Part(kind=PartKind.CALL, name="Run", text=text, call_id=text) for text in ("not json", "[1]", "")]
    story = Story().user().add(Role.ASSISTANT, Kind.CALL, *calls)
    called = list(anthropic_messages(view.build(story.entries, None), load))[1]
    assert [block["input"] for block in called["content"]] == [{"input": "not json"}, {"input": [1]}, {}]
    assert json.dumps(called)


LEGAL_ID, LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,40}"), re.compile(r"[a-zA-Z0-9_-]{1,64}")


def odd_calls() -> list[Part]:
    """Calls as other agents write them down, each of which a provider refuses."""
    names = ["mcp.files/read file", "", "n" * 90, "Bash", "Bash"]
    ids = ["fc_1|call:2", "", "call_" + "x" * 300, "again", "call_0"]
    return [Part(kind=PartKind.CALL, name=name, text="{}", call_id=call_id) for name, call_id in zip(names, ids, strict=True)]


def with_odd_calls():
    story = Story().user()
    for _ in range(2):  # all ids are used a second time
        for call in odd_calls():
            story.add(Role.ASSISTANT, Kind.CALL, call)
            story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="ok", call_id=call.call_id))
    return view.build(story.user("Go on.").entries, None)


def test_whatever_a_call_was_named_its_request_is_one_that_anthropic_takes():
    blocks = [block for message in anthropic_messages(with_odd_calls(), load) for block in message["content"]]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    ids = [call["id"] for call in calls]
    assert ids == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(set(ids)) == len(ids) == 10
    assert all(LEGAL_ID.fullmatch(one) for one in ids)
    assert all(LEGAL_NAME.fullmatch(call["name"]) for call in calls)
    assert (calls[3]["id"], calls[3]["name"], calls[0]["name"]) == ("again", "Bash", "mcp_files_read_file")


def test_and_one_that_openai_takes():
    messages = list(openai_messages(with_odd_calls(), load))
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    assert [call["id"] for call in calls] == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len({call["id"] for call in calls}) == 10
    assert all(LEGAL_ID.fullmatch(call["id"]) and LEGAL_NAME.fullmatch(call["function"]["name"]) for call in calls)


def test_a_longer_history_names_the_calls_that_it_begins_with_as_before():
    messages = with_odd_calls()
    assert list(anthropic_messages(messages, load))[:9] == list(anthropic_messages(messages[:9], load))


def test_no_text_without_a_letter_is_sent_and_no_message_without_anything():
    story = Story().user("Go.").says(" \n").user("Go on.").calls("c").result("c", words="\n").calls("d").result("d", words="")
    story.add(Role.ASSISTANT, Kind.THINKING, Part(kind=PartKind.THINKING, text="Hm.")).user("And?")
    messages = view.build(story.entries, None)
    sent = list(anthropic_messages(messages, load))
    assert all(message["content"] for message in sent)
    texts = [block["text"] for message in sent for block in message["content"] if block["type"] == "text"]
    assert texts == ["Go.", "Go on.", "And?"]
    assert [block["content"] for message in sent for block in message["content"] if block["type"] == "tool_result"] == [[], []]
    told = list(openai_messages(messages, load))
    assert all(message.get("content") or message.get("tool_calls") or message["role"] == "tool" for message in told)
