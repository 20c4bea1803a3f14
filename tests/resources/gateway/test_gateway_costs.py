"""What calls cost, also those without a usable response: what a reply states counts, else prices, else the most; and budgets hold."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request, UnansweredCall
from resources.gateway.budget import compute_max_usage
from resources.gateway.prices import FREE, Bill, Price, parse_bill, price
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault, FaultPlan, always, at_first, completion
from tests.made.responses import response
from tests.resources.gateway.gateway_setup import gateway, model, requests

PRICED = {"input_price": 1000.0, "output_price": 4000.0, "max_tokens": 10}
MOST = compute_max_usage(requests(model(None, **PRICED))[0], Price(1000.0, 4000.0)).cost_usd
"""US dollars that one call may cost at most."""
STATED = (4 * 1000 + 4 * 4000) / 1e6
"""What a call costs by the usage that the fake server states: 4 tokens of the prompt, 4 of the response."""
WITHOUT_CHOICES = Fault("empty_choices")
NO_USAGE = Fault("body", body=json.dumps({"choices": [{"message": {"content": "[60, 40]"}}]}).encode())


def row_of(store: ResponseStore, request: Request) -> dict[str, Any]:
    (row,) = store.responses([request.key]).to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("fault", "known", "unknown"),
    [
        (Fault("status", status=500), 0, 1),
        (Fault("status", status=503), 0, 0),
        (Fault("status", status=429), 0, 0),
        (Fault("reset"), 0, 1),
        (Fault("truncated"), 0, 1),
        (WITHOUT_CHOICES, 1, 0),
    ],
    ids=lambda one: f"{one.kind}-{one.status}" if isinstance(one, Fault) else None,
)
def test_an_attempt_before_the_response_counts_with_what_is_known_of_its_bill(
    store: ResponseStore, fault: Fault, known: int, unknown: int
) -> None:
    with FakeLLM(fault=at_first(fault)) as server:
        asking = gateway(store)
        (request,) = requests(model(server, **PRICED))
        assert not asking.answer([request]).failures
    row, used = row_of(store, request), asking.usage_by_role["candidate"]
    assert row["cost_usd"] == pytest.approx((1 + known) * STATED)
    assert (row["unknown_cost_attempts"], row["attempts"]) == (unknown, 2)
    assert (row["unknown_cost_usd_most"] or 0) == pytest.approx(unknown * MOST)
    assert (used.calls, used.unpriced) == (2, unknown)
    assert used.cost_usd == pytest.approx((1 + known) * STATED + unknown * MOST)
    assert used.known_usd == pytest.approx((1 + known) * STATED)


@pytest.mark.parametrize(
    ("message", "ended"),
    [
        ({"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, "tool_calls"),
        ({"content": None}, "stop"),
        ({"content": ""}, "stop"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_a_reply_without_text_is_stored_with_its_cost_and_not_bought_again(
    store: ResponseStore, message: dict[str, Any], ended: str, transport: str
) -> None:
    """It was taken for a passing failure: asked seven times, and booked at nothing."""

    def fault(call: Call) -> Fault:
        choice = {"index": 0, "finish_reason": ended, "message": {"role": "assistant", **message}}
        return Fault("body", body=json.dumps({**completion(call, "a b c d"), "choices": [choice]}).encode())

    with FakeLLM(fault=fault) as server:
        asking = gateway(store)
        (request,) = requests(model(server, **PRICED, transport=transport))
        assert not asking.answer([request]).failures
        assert gateway(store).answer([request]).replayed == 1
        assert len(server.calls) == 1
    row = row_of(store, request)
    assert (row["text"], row["finish_reason"], row["cost_usd"]) == ("", ended, pytest.approx(STATED))
    assert asking.usage_by_role["candidate"].cost_usd == pytest.approx(STATED)


@pytest.mark.parametrize("fault", [Fault("status", status=500), NO_USAGE])
def test_a_dollar_budget_holds_even_if_every_call_is_billed(store: ResponseStore, fault: Fault) -> None:
    """Failed attempts counted as $0: a run spent eight times its limit and said nothing of money."""
    limit, lines = 10.5 * MOST, list[str]()
    with FakeLLM(fault=always(fault)) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=limit), tell=lines.append)
        answers = asking.answer(requests(model(server, **PRICED), 100))
        assert 0 < len(server.calls) <= 10
    assert asking.accounts.run.spent.cost_usd <= limit
    assert "budget" in {failure.status for failure in answers.failures.values()}
    (line,) = [line for line in lines if "max_cost_usd" in line]
    assert "of unknown cost, at most $" in line


def test_a_budget_in_dollars_holds_where_half_of_the_calls_time_out(store: ResponseStore) -> None:
    with FakeLLM(fault=lambda call: Fault("hang", seconds=30) if int(call.user.split()[1]) % 2 else None) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=12 * MOST))
        answers = asking.answer(requests(model(server, **PRICED, timeout=0.5, retries=1), 60))
        calls = len(server.calls)
    spent = asking.accounts.run.spent
    assert calls == spent.calls
    assert calls * STATED <= spent.cost_usd <= 12 * MOST
    assert spent.unpriced > 0
    assert any(failure.unknown_cost_attempts and failure.unknown_cost_usd_most for failure in answers.failures.values())


LONGER = (1000 * 1000 + 4 * 4000) / 1e6
"""What a call costs whose server adds 1,000 tokens of its own to the prompt: some fifteen times MOST."""
LONGER_REPLY = Fault(
    "body",
    body=json.dumps(
        {
            "choices": [{"message": {"content": None}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 4, "total_tokens": 1004},
        }
    ).encode(),
)
LOST = Fault("status", status=500)


def half_lost(call: Call) -> Fault:
    return LOST if int(call.user.split()[1]) % 2 else LONGER_REPLY


def first_lost(call: Call) -> Fault:
    """Those are counted before any reply shows that they may have cost more."""
    return LOST if int(call.user.split()[1]) < 3 else LONGER_REPLY


@pytest.mark.parametrize(
    ("plan", "concurrency"),
    [(half_lost, 1), (half_lost, 50), (first_lost, 1), (always(LONGER_REPLY), 1), (always(LONGER_REPLY), 50)],
    ids=["half-lost", "half-lost-50", "first-lost", "all-reply", "all-reply-50"],
)
def test_a_budget_holds_where_a_server_bills_more_than_is_estimated(
    store: ResponseStore, plan: FaultPlan, concurrency: int
) -> None:
    """A limit was passed by a fifth where half of the calls timed out: each of those counted with an estimate that replies had disproved."""
    limit = 8.5 * LONGER
    with FakeLLM(fault=plan) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=limit))
        answers = asking.answer(requests(model(server, **PRICED, retries=0, max_concurrency=concurrency), 120))
        # A lost call counts with a full response, and is billed with a short one.
        assert 6 <= len(server.calls) <= 8
    assert len(server.calls) * LONGER <= asking.accounts.run.spent.cost_usd <= limit
    assert "budget" in {failure.status for failure in answers.failures.values()}


def test_what_a_server_states_of_candidates_raises_no_reservation_of_a_judge(store: ResponseStore) -> None:
    with FakeLLM(fault=always(LONGER_REPLY)) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=100 * LONGER))
        asking.answer(requests(model(server, **PRICED)))
    (state,) = asking.models
    assert state.ceilings["candidate"].prompt_ratio > 10
    assert state.ceilings["judge"].prompt_ratio == 1


def test_a_failed_request_tells_the_cost_of_its_attempts_over_all_runs(store: ResponseStore) -> None:
    with FakeLLM(fault=always(Fault("status", status=500))) as server:
        (request,) = requests(model(server, **PRICED, retries=1))
        for runs in (1, 2):
            (failure,) = gateway(store).answer([request]).failures.values()
            assert failure.unknown_cost_attempts == 2 * runs
            assert failure.unknown_cost_usd_most == pytest.approx(2 * runs * MOST)
            assert failure.cost_usd is None


def test_what_an_earlier_run_lost_is_in_the_response_of_a_later_one(store: ResponseStore) -> None:
    with FakeLLM(fault=at_first(Fault("status", status=500), WITHOUT_CHOICES)) as server:
        (request,) = requests(model(server, **PRICED, retries=1))
        assert gateway(store).answer([request]).failures
        assert not gateway(store).answer([request]).failures
    row = row_of(store, request)
    assert row["cost_usd"] == pytest.approx(2 * STATED)
    assert (row["unknown_cost_attempts"], row["unknown_cost_usd_most"]) == (1, pytest.approx(MOST))
    assert store.sum_spent("candidate", datetime.now(UTC) - timedelta(days=1)) == pytest.approx(2 * STATED + MOST)


def test_a_daily_budget_counts_what_other_runs_may_have_paid_for_nothing(store: ResponseStore) -> None:
    since, limit = datetime.now(UTC) - timedelta(days=1), 4.5 * MOST
    with FakeLLM(fault=always(Fault("status", status=500))) as server:
        for _ in range(2):
            asking = gateway(store)
            asking.accounts.limit_daily("candidate", DailyBudget(limit, lambda: store.sum_spent("candidate", since)))
            answers = asking.answer(requests(model(server, **PRICED, retries=0), 20))
            assert "budget" in {failure.status for failure in answers.failures.values()}
        assert len(server.calls) <= 4
    assert store.sum_spent("candidate", since) == pytest.approx(len(server.calls) * MOST)


def test_an_evaluation_learns_what_it_lost(store: ResponseStore) -> None:
    one, other = response(0, cost_usd=0.25), response(1, cost_usd=None)
    own = ResponseStore(store.database._engine.url.render_as_string(), queue_id="q")
    own.add_unanswered(
        [
            UnansweredCall(one.request_key, "candidate", datetime.now(UTC), 0.5, None),
            UnansweredCall(other.request_key, "candidate", datetime.now(UTC), None, 2.0),
        ]
    )
    own.add([one])
    found = own.sum_call_costs([one.request_key, other.request_key], "q")
    assert (found.calls, found.cost_usd, found.unpriced, found.most_usd) == (1, pytest.approx(0.75), 1, 2.0)
    assert own.sum_call_costs([other.request_key], "another").most_usd is None
    own.close()


def of_openrouter(server: FakeLLM, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    monkeypatch.setenv("OPENROUTER_API_BASE", server.base_url)
    return ModelSpec(name="m", model="openrouter/acme/owl-9", max_tokens=4, api_key_env="M_KEY")


def test_a_limit_in_dollars_holds_for_a_model_whose_price_only_its_bills_tell(
    store: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused: the cost that OpenRouter states stood in litellm's hidden parameters, and was not read."""

    def fault(call: Call) -> Fault:
        good = completion(call, "a b c d")
        return Fault("body", body=json.dumps({**good, "usage": {**good["usage"], "cost": 0.01}}).encode())

    with FakeLLM(fault=fault) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=0.5))
        asked = requests(of_openrouter(server, monkeypatch), 60)
        answers = asking.answer(asked)
        assert 1 < len(server.calls) <= 50
    assert asking.accounts.run.spent.cost_usd == pytest.approx(0.01 * len(server.calls))
    assert {failure.status for failure in answers.failures.values()} == {"budget"}
    rows = store.responses([request.key for request in asked])
    assert set(rows["reported_cost_usd"].to_pylist()) == set(rows["cost_usd"].to_pylist()) == {0.01}


def test_a_model_without_a_price_is_given_up_when_a_call_states_no_bill(
    store: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeLLM(fault=always(Fault("status", status=500))) as server:
        asking = gateway(store, budget=Budget(max_cost_usd=0.5))
        answers = asking.answer(requests(of_openrouter(server, monkeypatch), 20))
        assert len(server.calls) == 1
    assert all("price is not known" in failure.message for failure in answers.failures.values())


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
