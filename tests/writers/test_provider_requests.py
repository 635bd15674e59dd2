"""A view as the messages of a request, as each provider's interface takes it."""

import base64
import json

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
