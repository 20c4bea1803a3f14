"""What a reply states that a call used, and what that costs: by the models file, else by the list of litellm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from resources.gateway.bills import Bill, parse_bill
from resources.gateway.prices import FREE, Price, price
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault, completion
from tests.resources.gateway.gateway_setup import gateway, model, requests

PRICE = Price(10.0, 40.0, cached=1.0)
TOKENS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@pytest.mark.parametrize(
    "told",
    [
        {"prompt_tokens_details": {"cached_tokens": 800}},
        {"prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 200},
        {"cached_tokens": 800},
        {"cache_read_input_tokens": 800},
    ],
)
def test_cached_prompt_tokens_are_charged_at_their_own_price(told: dict[str, Any]) -> None:
    """They were booked at the full price: 14,000 for 6,800."""
    bill = parse_bill(TOKENS | told, PRICE)
    assert bill.cached_tokens == 800
    assert bill.cost_usd == pytest.approx((200 * 10 + 800 * 1 + 100 * 40) / 1e6)


@pytest.mark.parametrize("cached", [None, 99.0])
def test_a_cached_token_never_costs_more_than_another(cached: float | None) -> None:
    bill = parse_bill(TOKENS | {"cached_tokens": 800}, Price(10.0, 40.0, cached))
    assert bill.cost_usd == pytest.approx((1000 * 10 + 100 * 40) / 1e6)


def test_more_cached_tokens_than_the_prompt_has_are_those_of_the_prompt() -> None:
    assert parse_bill(TOKENS | {"cached_tokens": 5000}, PRICE).cached_tokens == 1000


def test_thinking_is_kept_and_charged_once() -> None:
    within = parse_bill(TOKENS | {"completion_tokens_details": {"reasoning_tokens": 60}}, PRICE)
    beside = parse_bill({**TOKENS, "total_tokens": 1160, "completion_tokens_details": {"reasoning_tokens": 60}}, PRICE)
    assert (within.reasoning_tokens, beside.reasoning_tokens) == (60, 60)
    assert within.cost_usd == pytest.approx((1000 * 10 + 100 * 40) / 1e6)
    assert beside.cost_usd == pytest.approx((1000 * 10 + 160 * 40) / 1e6)


@pytest.mark.parametrize(
    ("told", "reported"),
    [
        ({"cost": 0.5}, 0.5),
        ({"cost": "0.5"}, 0.5),
        ({"cost": {"input_tokens_cost": 0.2, "total_cost": 0.5}}, 0.5),
        ({"cost": 0.125, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.375}}, 0.5),
        ({"cost": 0.5, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.375}}, 0.5),
    ],
)
@pytest.mark.parametrize("price", [None, PRICE])
def test_a_stated_cost_counts_before_any_price(told: dict[str, Any], reported: float, price: Price | None) -> None:
    bill = parse_bill(TOKENS | told, price)
    assert (bill.cost_usd, bill.reported_cost_usd) == (reported, reported)


def test_a_stated_cost_of_0_counts_where_no_price_says_otherwise() -> None:
    assert parse_bill(TOKENS | {"cost": 0}, None).cost_usd == 0
    assert parse_bill(TOKENS | {"cost": 0}, Price(0, 0)).cost_usd == 0
    assert parse_bill(TOKENS | {"cost": 0}, PRICE).cost_usd == pytest.approx((1000 * 10 + 100 * 40) / 1e6)


@pytest.mark.parametrize("usage", [None, "much", [], {"cost": "much"}, {"cost": -1}, {"cost": True}, {"cost": float("nan")}])
def test_a_usage_that_states_nothing_is_no_bill(usage: object) -> None:
    assert parse_bill(usage, PRICE) == Bill()
    assert parse_bill(usage, PRICE).unless_empty is None


def test_a_header_of_a_proxy_states_the_cost() -> None:
    assert parse_bill(TOKENS, None, "0.25").cost_usd == 0.25
    assert parse_bill(TOKENS | {"cost": 0.5}, None, "0.25").cost_usd == 0.5


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_the_store_keeps_the_stated_bill(store: ResponseStore, transport: str) -> None:
    further = {"cost": 0.5, "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}}

    def fault(call: Call) -> Fault:
        good = completion(call, "[60, 40]")
        return Fault("body", body=json.dumps({**good, "usage": {**good["usage"], **further}}).encode())

    with FakeLLM(fault=fault) as server:
        (request,) = requests(model(server, transport=transport))
        asking = gateway(store)
        asking.answer([request])
    (row,) = store.responses([request.key]).to_pylist()
    kept = ("cost_usd", "reported_cost_usd", "cached_tokens", "reasoning_tokens", "unknown_cost_attempts")
    assert [row[name] for name in kept] == [0.5, 0.5, 3, 2, 0]
    assert asking.usage_by_role["candidate"].cost_usd == 0.5


@pytest.mark.parametrize("prices", [{"cached_input_price": 1}, {"input_price": 1, "output_price": 1, "cached_input_price": 2}])
def test_a_price_of_cached_tokens_stands_beside_the_others_and_is_not_above_them(prices: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cached_input_price"):
        ModelSpec(name="m", model="openai/m", **prices)  # type: ignore[arg-type]


def test_the_models_file_goes_before_litellms_list() -> None:
    spec = ModelSpec(name="m", model="openai/gpt-4.1-mini", input_price=7, output_price=9)
    assert price(spec) == Price(7, 9)


def test_litellms_list_is_in_dollars_per_million() -> None:
    found = price(ModelSpec(name="m", model="openai/gpt-4.1-mini"))
    assert found is not None
    assert 0.05 < found.prompt < found.completion < 50


def test_what_is_computed_here_is_free() -> None:
    assert price(ModelSpec(name="l", model="local/smollm2-135m")) == FREE
    assert price(ModelSpec(name="b", model="baseline/uniform")) == FREE


@pytest.mark.parametrize("model", ["openai/nobody-has-heard-of-it", "nonsense/nonsense", "openrouter/openai/gpt-5"])
def test_a_model_that_is_in_no_list_has_no_price(model: str) -> None:
    assert price(ModelSpec(name="m", model=model)) is None


def test_a_server_of_ones_own_has_no_price_whatever_its_model_is_called() -> None:
    assert price(ModelSpec(name="m", model="openai/gpt-4.1-mini", api_base="http://127.0.0.1:1/v1")) is None
