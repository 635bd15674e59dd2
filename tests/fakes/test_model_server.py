"""The scripted model server, asked by the makers' own clients: what they understand is what the protocols are."""

import http.client
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.model_server import Answer, Fault, ModelServer, Stop, call, refuse, say

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

ASK = [{"role": "user", "content": "What is the magic number?"}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def claude(server) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture
def gpt(server) -> Iterator[Any]:
    with openai.OpenAI(base_url=server.openai_url, api_key="x", max_retries=0, timeout=60) as client:
        yield client


def messages(client, **more):
    return client.messages.create(model="scripted", max_tokens=100, messages=ASK, **more)


def responses(client, **more):
    return client.responses.create(model="gpt-5.5", input=ASK, **more)


def test_an_answer_comes_whole_or_in_pieces_and_is_the_same(server, claude, gpt):
    server.script(*[say("It is 4217.", input_tokens=7)] * 4)
    whole = messages(claude)
    with claude.messages.stream(model="scripted", max_tokens=100, messages=ASK) as stream:
        assert len(list(stream.text_stream)) > 1
        streamed = stream.get_final_message()
    assert whole.content[0].text == streamed.content[0].text == "It is 4217."
    assert (whole.stop_reason, whole.usage.input_tokens, streamed.usage.output_tokens) == ("end_turn", 7, whole.usage.output_tokens)
    answer = responses(gpt)
    deltas = [event.delta for event in responses(gpt, stream=True) if event.type == "response.output_text.delta"]
    assert answer.output_text == "".join(deltas) == "It is 4217."
    assert answer.usage.input_tokens == 7


def test_an_answer_can_be_a_call_alone(server, claude, gpt):
    server.script(*[call("read", path="a.py")] * 3)
    [used] = messages(claude).content
    assert (used.type, used.name, used.input) == ("tool_use", "read", {"path": "a.py"})
    with claude.messages.stream(model="scripted", max_tokens=100, messages=ASK) as stream:
        assert stream.get_final_message().content[0].input == {"path": "a.py"}
    [made] = responses(gpt).output
    assert (made.type, made.name, made.arguments) == ("function_call", "read", '{"path": "a.py"}')


def test_an_answer_can_think_end_too_early_or_say_nothing(server, claude, gpt):
    server.script(Answer(text="a", thinking="hm"), say("It is", stop=Stop.LENGTH), Answer(), say("It is", stop=Stop.LENGTH), Answer())
    assert [part.type for part in messages(claude).content] == ["thinking", "text"]
    assert messages(claude).stop_reason == "max_tokens"
    assert messages(claude).content == []
    assert responses(gpt).status == "incomplete"
    assert responses(gpt).output_text == ""


@pytest.mark.parametrize("status", [400, 401, 413, 429, 500, 529])
def test_errors_are_those_that_the_clients_know(server, claude, gpt, status):
    server.script(
        refuse(status, "no", code="context_length_exceeded", retry_after_s=3), refuse(status, "no", code="context_length_exceeded")
    )
    with pytest.raises(anthropic.APIStatusError) as raised:
        messages(claude)
    assert (raised.value.status_code, raised.value.body["error"]["message"], raised.value.response.headers["retry-after"]) == (
        status,
        "no",
        "3",
    )
    with pytest.raises(openai.APIStatusError) as refused:
        responses(gpt)
    assert (refused.value.status_code, refused.value.code) == (status, "context_length_exceeded")


def post(server, *, streams: bool):
    body = json.dumps({"messages": ASK, "stream": streams}).encode()
    return urllib.request.urlopen(urllib.request.Request(f"{server.url}/v1/messages", body), timeout=60)


@pytest.mark.parametrize("streams", [False, True])
def test_headers_can_come_and_then_nothing(server, streams):
    server.script(say("late", fault=Fault.HANG))
    with post(server, streams=streams) as answer:
        answer.fp.raw._sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            answer.read()


def test_not_even_headers_may_come_and_a_client_gives_up(server, claude):
    server.script(say("late", fault=Fault.SILENT))
    with pytest.raises(anthropic.APITimeoutError):
        messages(claude.with_options(timeout=0.3))


def test_closing_the_server_ends_what_hangs():
    with ModelServer().script(say("late", fault=Fault.HANG)) as server:
        answer = post(server, streams=True)
    with answer, pytest.raises(http.client.IncompleteRead):
        answer.read()


@pytest.mark.parametrize("streams", [False, True])
def test_a_connection_can_end_in_the_middle(server, streams):
    server.script(say("x" * 1_000, fault=Fault.CUT))
    with post(server, streams=streams) as answer, pytest.raises(http.client.IncompleteRead):
        answer.read()


def test_a_stream_can_turn_into_an_error(server, claude):
    server.script(say("It is 4217.", fault=Fault.ERROR_EVENT, message="overloaded"))
    with (
        pytest.raises(anthropic.APIStatusError, match="overloaded"),
        claude.messages.stream(model="m", max_tokens=9, messages=ASK) as stream,
    ):
        stream.get_final_message()


def test_a_body_can_be_no_json(server, gpt):
    server.script(say("", fault=Fault.GARBAGE))
    assert not hasattr(responses(gpt), "output")


def test_what_is_asked_is_kept_with_its_blocks(server, claude, gpt):
    said = [
        *ASK,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "4217"}]},
    ]
    claude.messages.create(model="m", max_tokens=9, messages=said, system="Be short.")
    claude.messages.count_tokens(model="m", messages=ASK)
    gpt.responses.create(
        model="m",
        instructions="Be short.",
        input=[
            *ASK,
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "4217"},
        ],
    )
    assert [asked.protocol for asked in server.asked] == ["messages", "count_tokens", "responses"]
    for asked in server.prompts:
        assert asked.system == "Be short."
        assert [(block.role, block.kind, block.call_id) for block in asked.blocks] == [
            ("user", "text", ""), ("assistant", "call", "c1"), ("user", "result", "c1"),
        ]  # fmt: skip
        assert asked.texts == ["What is the magic number?"]
        assert asked.blocks[2].text == "4217"


def test_behind_the_script_the_reply_decides(claude):
    with ModelServer(lambda asked: say(asked.texts[-1].upper())) as server:
        client = claude.with_options(base_url=server.url)
        server.script(say("first"))
        assert [messages(client).content[0].text for _ in range(2)] == ["first", "WHAT IS THE MAGIC NUMBER?"]
