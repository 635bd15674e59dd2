"""What a request asks for beside its messages: within what its model gives, and learnt from a refusal where nobody knew (C44)."""

import pytest

from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import SummariserFailed, SummaryRequest
from sessions_app.providers import limits
from sessions_app.providers.limits import REASONING_TOKENS, SAFE_TOKENS, Parameters, answer_limit
from sessions_app.providers.registry import summarisers_for
from tests.engine.histories import Story
from tests.fakes.model_server import Asked, refuse
from tests.providers.conftest import SUMMARY


def ask(name: str, max_tokens: int = 50_000) -> str:
    story = Story().user("Fix the parser.").says("It was a missing comma.")
    chosen = summarisers_for(Policy(summarisers=(name,)))[0]
    return chosen.summarise(SummaryRequest(entries=tuple(story.entries), max_tokens=max_tokens), lambda: None).text


def asked_for(asked: Asked) -> tuple[str, int]:
    """Name and value of the limit of an answer."""
    (name,) = {"max_tokens", "max_completion_tokens"} & asked.body.keys()
    return name, asked.body[name]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("anthropic:claude-3-haiku-20240307", ("max_tokens", 4_096)),
        ("anthropic:claude-3-5-haiku-latest", ("max_tokens", 8_192)),
        ("anthropic:claude-opus-4-1", ("max_tokens", 32_000)),
        ("anthropic:claude-haiku-4-5", ("max_tokens", 50_000)),
        ("openai:gpt-4o-mini", ("max_tokens", 16_384)),
        ("openai:vendor/gpt-4-turbo", ("max_tokens", 4_096)),
        ("openai:gpt-5-mini", ("max_completion_tokens", 50_000 + REASONING_TOKENS)),
        ("openai:o3", ("max_completion_tokens", 50_000 + REASONING_TOKENS)),
        ("openai:gpt-5-chat-latest", ("max_tokens", 16_384)),
        ("openai:somebodys-own@90000", ("max_tokens", 50_000)),
    ],
)
def test_no_model_is_asked_for_more_than_it_gives_and_each_by_the_name_that_it_knows(server, name, limit):
    assert ask(name) == SUMMARY
    assert [asked_for(asked) for asked in server.prompts] == [limit]


def test_the_words_of_the_prompt_ask_for_no_more_than_that_either(server):
    ask("anthropic:claude-3-haiku-20240307")
    assert f"under {4_096 * 3 // 4:,} words" in server.prompts[0].texts[0]


REFUSALS = [
    ("anthropic", "max_tokens: 50000 > 9000, which is the maximum allowed number of output tokens for somebodys-own", 9_000),
    ("openai", "max_tokens is too large: 50000. This model supports at most 9000 completion tokens, whereas you provided 50000.", 9_000),
    ("openai", "Invalid max_tokens value, the valid range of max_tokens is [1, 9000]", 9_000),
    (
        "openai",
        "`max_tokens` must be less than or equal to `9000`, the maximum value for `max_tokens` is less than the `context_window`",
        9_000,
    ),
    ("openai", "The maximum tokens you requested exceeds the model limit of 9000. Try again with a lower value.", 9_000),
    ("openai", "max_tokens must be at most 9000", 9_000),
    ("openai", "This value of max_tokens is not possible.", SAFE_TOKENS),
]


@pytest.mark.parametrize(("provider", "words", "most"), REFUSALS)
def test_an_unknown_models_limit_is_learnt_from_its_refusal_once(server, provider, words, most):
    server.script(refuse(400, words))
    name = f"{provider}:somebodys-own@90000"
    assert (ask(name), ask(name)) == (SUMMARY, SUMMARY)
    assert [asked_for(asked)[1] for asked in server.prompts] == [50_000, most, most]


WINDOWS = [
    ("openai", "'max_tokens' is too large: 50000. This model's maximum context length is 32768 tokens and your request has 2768 tokens "
     "(50000 > 32768 - 2768)."),
    ("openai", "This model's maximum context length is 32768 tokens. However, you asked for 52768 (2768 in the messages, 50000 in the "
     "completion). Please reduce the length of the messages or completion."),
    ("anthropic", "input length and `max_tokens` exceed context limit: 2768 + 50000 > 32768, decrease input length or `max_tokens`"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "words"), WINDOWS)
def test_what_a_window_leaves_for_the_answer_holds_for_that_request_alone(server, provider, words):
    server.script(refuse(400, words))
    name = f"{provider}:somebodys-own@90000"
    assert (ask(name), ask(name)) == (SUMMARY, SUMMARY)
    assert [asked_for(asked)[1] for asked in server.prompts] == [50_000, 30_000, 50_000]


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "Unrecognized request argument supplied: max_tokens",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_tokens'), 'msg': 'Extra inputs are not permitted'}]",
    ],
)
def test_a_name_that_a_model_does_not_know_gives_way_to_the_other(server, status, words):
    server.script(refuse(status, words))
    assert (ask("openai:somebodys-own@90000", 900), ask("openai:somebodys-own@90000", 900)) == (SUMMARY, SUMMARY)
    assert [asked_for(asked) for asked in server.prompts] == [
        ("max_tokens", 900),
        ("max_completion_tokens", 900),
        ("max_completion_tokens", 900),
    ]


def test_a_copy_that_measures_nothing_is_not_asked_to(server):
    server.script(refuse(400, "Unknown parameter: 'stream_options'."))
    assert ask("openai:somebodys-own@90000") == ask("openai:somebodys-own@90000") == SUMMARY
    assert ["stream_options" in asked.body for asked in server.prompts] == [True, False, False]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize("words", ["messages.3: tool_use ids were found without results", "max_tokens: must be a number"])
def test_a_refusal_for_another_reason_is_not_asked_again_and_again(server, provider, words):
    server.reply = lambda _: refuse(400, words)
    with pytest.raises(SummariserFailed, match="calls the request invalid"):
        ask(f"{provider}:somebodys-own@90000", 900)
    assert len(server.prompts) == 1


def test_a_server_that_refuses_whatever_it_is_asked_is_left_after_three_requests(server):
    server.reply = lambda asked: refuse(400, f"max_tokens must be at most {asked.body['max_tokens'] - 1}")
    with pytest.raises(SummariserFailed, match="calls the request invalid"):
        ask("openai:somebodys-own@90000")
    assert len(server.prompts) == 3


def test_what_one_server_said_holds_for_no_other_of_the_same_model():
    limits.forget()
    one = Parameters("m", 50_000, address="http://one")
    assert one.repair("max_tokens must be at most 9000")
    assert [Parameters("m", 50_000, address=f"http://{name}").tokens for name in ("one", "other")] == [9_000, 50_000]
    limits.forget()


def test_the_table_knows_the_models_that_are_suggested():
    from sessions_app.providers.turn_models import SUGGESTED

    assert all(answer_limit(name.partition(":")[2]) for names in SUGGESTED.values() for name in names)
