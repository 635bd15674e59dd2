"""What calls of models cost by list prices."""

import subprocess
import sys

import pytest

from sessions_app.engine.entries import Usage
from sessions_app.engine.policy import Policy
from sessions_app.providers import prices
from sessions_app.providers.registry import KEYS, summarisers_for
from tests.engine.attempts import long_story
from tests.fakes.model_server import ModelServer, say
from tests.providers.test_model_summarisers import SUMMARY, never, request

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def providers_own_addresses(monkeypatch):
    for address in prices.ADDRESSES.values():
        monkeypatch.delenv(address, raising=False)


def test_each_kind_of_token_has_its_price():
    known = prices.prices_of_model("claude-haiku-4-5-20251001")
    costs = {kind: known.cost(Usage(**{kind: MILLION // 10})) for kind in ("input", "output", "cache_read", "cache_write")}
    assert costs == {"input": 0.1, "output": 0.5, "cache_read": 0.01, "cache_write": 0.125}


@pytest.mark.parametrize("model", ["", "<synthetic>", "no-such-model", "x" * 100_000, "<script>alert(1)</script>", "\ud83d", "a\x00b"])
def test_a_model_that_nobody_knows_has_no_price(model):
    assert prices.prices_of_model(model) is None


@pytest.mark.parametrize("name", ["extractive", "scripted", "openai:no-such-model", "anthropic:gpt-4o", ""])
def test_a_summariser_without_a_list_price_has_none(name):
    assert prices.prices_of_summariser(name) is None


def test_a_server_of_ones_own_has_no_list_price(monkeypatch):
    assert prices.prices_of_summariser("openai:gpt-4o@64000") is not None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert prices.prices_of_summariser("openai:gpt-4o@64000") is None


def test_a_summary_is_recorded_with_what_it_cost(monkeypatch):
    key, address = KEYS["anthropic"]
    with ModelServer(reply=lambda _: say(SUMMARY, input_tokens=MILLION // 10)) as server:
        monkeypatch.setenv(key, "sk-ant-x")
        monkeypatch.setenv(address, server.url)
        monkeypatch.setattr(prices, "ADDRESSES", {"anthropic": "UNSET_ADDRESS"})  # as if this server were the provider's own
        summariser = summarisers_for(Policy(summarisers=("anthropic:claude-haiku-4-5",)))[0]
        answer = summariser.summarise(request(entries=tuple(long_story().entries)), never)
    assert answer.cost_usd == pytest.approx(0.1 + answer.usage.output * 5 / MILLION)


def test_the_table_is_not_loaded_before_somebody_asks():
    seen = "import sys; import sessions_app.providers.registry; print('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout.strip() == "False"
