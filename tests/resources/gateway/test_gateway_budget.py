"""Budgets, alone and against a server that counts: never exceeded, what is done is kept, the rest says why it was not asked."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import GatewayError
from resources.gateway import Gateway
from resources.gateway.budget import UNBOUNDED_RESPONSE, Accounts, Ceiling, Usage, compute_max_usage, count_unknown_cost
from resources.gateway.prices import Bill, Price
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, Fault, always
from tests.made.responses import response, stored
from tests.resources.gateway.gateway_setup import gateway, model, requests

TOKENS = 8
"""What the server says each of these requests used."""


class TestCalls:
    def test_a_run_ends_at_its_calls_keeps_what_it_has_and_says_so(self, store: ResponseStore, server: FakeLLM) -> None:
        told: list[str] = []
        wanted = requests(model(server), 50)
        answers = gateway(store, budget=Budget(max_calls=10), tell=told.append).answer(wanted)
        assert len(server.calls) == stored(store) == answers.n_sent == 10
        assert {(failure.status, failure.message, failure.attempts) for failure in answers.failures.values()} == {
            ("budget", "not sent: the run's max_calls of 10 was reached", 0)
        }
        assert len(answers.failures) == 40
        assert told == ["m: the run's max_calls of 10 was reached; 40 requests are not sent"]
        rest = gateway(store, budget=Budget(max_calls=50)).answer(wanted)
        assert (rest.n_sent, rest.replayed, rest.failures) == (40, 10, {})

    @pytest.mark.parametrize("status", [400, 500])
    def test_the_reason_of_requests_that_were_left_out_names_the_last_error(self, store: ResponseStore, status: int) -> None:
        """The line that a run shows named the limit alone, though the calls that used it up had all failed."""
        lines: list[str] = []
        with FakeLLM(fault=always(Fault("status", status=status, message="no luck"))) as server:
            wanted = requests(model(server, retries=9, max_concurrency=1), 5)
            answers = gateway(store, budget=Budget(max_calls=2), tell=lines.append).answer(wanted)
        left_out = [failure.message for failure in answers.failures.values() if failure.status == "budget"]
        assert left_out
        assert all(message.endswith(f"; last error: m: HTTP {status}: no luck") for message in left_out)
        (line,) = [line for line in lines if "max_calls" in line]
        assert line.endswith(f"; last error: m: HTTP {status}: no luck")

    def test_an_error_that_a_later_attempt_mended_is_not_the_reason(self, store: ResponseStore) -> None:
        lines: list[str] = []
        with FakeLLM(fault=lambda call: Fault("status", status=500) if len(server.calls) == 1 else None) as server:
            wanted = requests(model(server, retries=9, max_concurrency=1), 5)
            answers = gateway(store, budget=Budget(max_calls=4), tell=lines.append).answer(wanted)
        assert len(answers.failures) == 2
        assert "last error" not in str([*answers.failures.values(), *lines])

    def test_the_budget_is_the_runs_over_all_its_sets_of_requests(self, store: ResponseStore, server: FakeLLM) -> None:
        asking = gateway(store, budget=Budget(max_calls=7))
        first = asking.answer(requests(model(server), 5))
        second = asking.answer(requests(model(server), 10))
        assert (first.n_sent, second.n_sent, second.replayed, len(second.failures)) == (5, 2, 5, 3)
        assert len(server.calls) == 7


class TestTokensAndDollars:
    def test_tokens_are_never_exceeded_though_the_model_might_use_all_it_may(
        self, store: ResponseStore, server: FakeLLM
    ) -> None:
        limit = 500
        wanted = requests(model(server), 100)
        answers = gateway(store, budget=Budget(max_tokens=limit)).answer(wanted)
        # The last calls would have had to fit with the longest answer they may give: 256 tokens, and their prompt.
        assert limit - 330 < answers.n_sent * TOKENS <= limit
        assert {failure.status for failure in answers.failures.values()} == {"budget"}

    def test_what_is_only_reserved_is_waited_for(self, store: ResponseStore, server: FakeLLM) -> None:
        """Three reservations fill the budget; yet all sixty requests fit by what they really use."""
        answers = gateway(store, budget=Budget(max_tokens=1000)).answer(requests(model(server), 60))
        assert answers.failures == {}
        assert server.peak <= 3

    def test_dollars_are_never_exceeded(self, store: ResponseStore, server: FakeLLM) -> None:
        limit = 0.002
        spec = model(server, input_price=1.0, output_price=4.0, max_tokens=100)
        asking = gateway(store, budget=Budget(max_cost_usd=limit))
        answers = asking.answer(requests(spec, 120))
        spent = sum(store.responses([request.key for request in requests(spec, 120)])["cost_usd"].to_pylist())
        assert limit / 2 < spent <= limit
        assert asking.accounts.run.spent.cost_usd == pytest.approx(spent)
        assert any("the run's max_cost_usd of 0.002 was reached" in failure.message for failure in answers.failures.values())


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNT = 60


def judging(store: ResponseStore, limit: float) -> Gateway:
    """A run whose judges may spend so much today."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    asking = gateway(store)
    asking.accounts.limit_daily("judge", DailyBudget(limit, lambda: store.sum_spent("judge", today - timedelta(days=1))))
    return asking


def judgements(server: FakeLLM, first: int = 0, count: int = COUNT, role: str = "judge", **settings: object) -> list[Request]:
    spec = model(server, **{"input_price": 1.0, "output_price": 4.0, "max_tokens": 100, **settings})
    return [
        Request.build_request((Message("user", f"judge {at}"),), spec, 0, "judge", role=role)
        for at in range(first, first + count)
    ]


def test_a_store_knows_what_judges_have_spent_since(store: ResponseStore) -> None:
    store.add(
        response(at, role=role, answered_at=NOON + timedelta(hours=hours), cost_usd=cost)
        for at, (role, hours, cost) in enumerate(
            [("judge", 0, 1.0), ("judge", 2, 0.25), ("judge", -1, 8.0), ("candidate", 1, 16.0), ("judge", 1, None)]
        )
    )
    assert store.sum_spent("judge", NOON) == pytest.approx(1.25)
    assert store.sum_spent("judge", NOON + timedelta(days=1)) == 0


def test_two_runs_over_one_store_stay_within_the_day_together(store: ResponseStore, server: FakeLLM) -> None:
    limit = 0.001
    first = judging(store, limit).answer(judgements(server))
    asked = len(server.calls)
    second = judging(store, limit).answer(judgements(server, first=COUNT))
    assert len(server.calls) == asked
    again = judging(store, 10.0).answer(judgements(server))
    assert first.n_sent > 0
    assert {failure.status for failure in (*first.failures.values(), *second.failures.values())} == {"budget"}
    message = next(iter(second.failures.values())).message
    assert re.search(r"the judges' daily budget of \$0\.001 for 20\d\d-\d\d-\d\d \(UTC\) was reached", message)
    assert again.failures == {}
    assert again.n_sent == COUNT - first.n_sent


@pytest.mark.parametrize("at_once", [1, 16])
def test_calls_at_once_end_the_day_no_sooner_than_one_after_the_other(
    store: ResponseStore, at_once: int, server: FakeLLM
) -> None:
    """Each reserves $.081 and costs $.0405: a call that does not fit beside those in flight waits for them, and 11 fit into $.50."""
    asked = judgements(server, input_price=0.0, output_price=10_125.0, max_tokens=8, max_concurrency=at_once)
    found = judging(store, 0.5).answer(asked)
    assert (found.n_sent, len(found.failures)) == (11, COUNT - 11)
    assert store.sum_spent("judge", NOON - timedelta(days=9_000)) == pytest.approx(11 * 0.0405)


def test_candidates_are_not_held_to_the_judges_day(store: ResponseStore, server: FakeLLM) -> None:
    assert judging(store, 0.0).answer(judgements(server, count=3, role="candidate")).n_sent == 3
    assert len(judging(store, 0.0).answer(judgements(server, first=9, count=3)).failures) == 3


def test_without_a_price_nothing_is_judged_unless_the_model_is_allowed_by_name(store: ResponseStore, server: FakeLLM) -> None:
    unpriced = judgements(server, count=4, input_price=None, output_price=None)
    with pytest.raises(
        GatewayError, match=r"because the daily budget cannot be enforced without a price of m; give input_price"
    ):
        judging(store, 5.0).answer(unpriced)
    assert server.calls == []
    allowed = judging(store, 5.0)
    allowed.accounts.allowed_unpriced.add("m")
    assert allowed.answer(unpriced).n_sent == 4


ONE_CALL = Usage(calls=1)
PRICE = Price(5, 15)


def request(user: str = "question", **settings: object) -> Request:
    answer_tokens = settings.pop("answer_tokens", None)
    spec = ModelSpec.model_validate({"name": "m", "model": "openai/m", **settings})
    return Request("p", "system", user, spec, 0, "base", answer_tokens=answer_tokens)  # type: ignore[arg-type]


class TestReserving:
    def test_the_last_call_is_allowed_and_the_next_is_not(self) -> None:
        budget = Accounts(Budget(max_calls=2), {})
        assert budget.reserve("m", ONE_CALL)
        assert budget.reserve("m", ONE_CALL)
        assert not budget.reserve("m", ONE_CALL)
        # Two are in flight: what they really use is not known yet.
        assert budget.find_reached_limit("m") is None
        budget.settle("m", ONE_CALL, ONE_CALL)
        budget.settle("m", ONE_CALL, ONE_CALL)
        assert not budget.reserve("m", ONE_CALL)
        assert budget.find_reached_limit("m") == "the run's max_calls of 2 was reached"

    def test_a_models_budget_ends_that_model_alone_and_charges_the_run_nothing(self) -> None:
        budget = Accounts(Budget(max_calls=1), {"m": Budget(max_calls=0), "other": Budget(max_cost_usd=1)})
        assert not budget.reserve("m", ONE_CALL)
        assert budget.find_reached_limit("m") == "m's max_calls of 0 was reached"
        assert budget.reserve("other", ONE_CALL)
        assert budget.find_reached_limit("other") is None
        assert (budget.is_price_needed("m"), budget.is_price_needed("other")) == (False, True)

    @given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), max_size=60), st.integers(0, 400))
    def test_no_order_of_calls_exceeds_a_limit_that_reservations_respect(
        self, calls: list[tuple[int, float]], limit: int
    ) -> None:
        budget, waiting = Accounts(Budget(max_tokens=limit), {}), []
        for most, share in calls:
            reserved = Usage(1, most)
            if budget.reserve("m", reserved):
                waiting.append((reserved, Usage(1, int(most * share))))
            if len(waiting) > 3:
                budget.settle("m", *waiting.pop(0))
            assert budget.run.spent.tokens <= limit
        for reserved, actual in waiting:
            budget.settle("m", reserved, actual)
        assert budget.run.spent.tokens <= limit


class TestEstimate:
    def test_without_a_limit_on_tokens_or_dollars_only_the_call_counts(self) -> None:
        assert Accounts(Budget(max_calls=1), {}).estimate(request(), Price(1, 1)) == Usage(calls=1)

    def test_the_answer_takes_all_it_may(self) -> None:
        budget = Accounts(Budget(max_tokens=1), {})
        short = budget.estimate(request(max_tokens=100), None).tokens
        assert budget.estimate(request(max_tokens=300), None).tokens == short + 200
        assert budget.estimate(request(max_tokens=100, answer_tokens=1100), None).tokens == short + 1000
        assert budget.estimate(request(max_tokens=None), None).tokens == short + UNBOUNDED_RESPONSE - 100


class TestCeiling:
    def test_it_is_the_estimate_until_a_reply_states_more(self) -> None:
        ceiling, before = Ceiling(), compute_max_usage(request(), PRICE)
        assert compute_max_usage(request(), PRICE, ceiling) == before
        ceiling.learn(Bill(prompt_tokens=1, completion_tokens=1, cost_usd=0.0), request(), PRICE)
        assert compute_max_usage(request(), PRICE, ceiling) == before

    def test_a_prompt_counts_with_the_largest_ratio_of_any_reply(self) -> None:
        ceiling, before = Ceiling(), compute_max_usage(request(), PRICE)
        for tokens in (500, 1000, 20):
            ceiling.learn(Bill(prompt_tokens=tokens, completion_tokens=256), request(), PRICE)
        assert compute_max_usage(request(), PRICE, ceiling).tokens == 1000 + 256
        assert (
            compute_max_usage(request("word " * 100), PRICE, ceiling).tokens
            > compute_max_usage(request("word " * 100), PRICE).tokens * 2
        )
        assert before.tokens < 1000

    def test_a_response_longer_than_it_was_to_be_raises_the_next_ones(self) -> None:
        ceiling = Ceiling()
        ceiling.learn(Bill(prompt_tokens=1, completion_tokens=512), request(max_tokens=256), None)
        assert (
            compute_max_usage(request(max_tokens=100), None, ceiling).tokens
            == compute_max_usage(request(max_tokens=200), None).tokens
        )

    @pytest.mark.parametrize("price", [Price(5, 15), Price(0, 0)])
    def test_a_bill_above_the_price_raises_the_next_ones(self, price: Price) -> None:
        ceiling = Ceiling()
        for cost in (0.5, 0.25):
            ceiling.learn(Bill(prompt_tokens=1, completion_tokens=1, cost_usd=cost), request(), price)
        assert compute_max_usage(request(), price, ceiling).cost_usd == pytest.approx(0.5)

    def test_until_a_reply_states_its_usage_few_calls_are_in_flight(self) -> None:
        ceiling = Ceiling()
        assert (ceiling.may_begin(0), ceiling.may_begin(1)) == (True, False)
        ceiling.learn(None, request(), PRICE)
        assert (ceiling.may_begin(1), ceiling.may_begin(2)) == (True, False)
        ceiling.learn(Bill(prompt_tokens=1), request(), PRICE)
        assert ceiling.may_begin(1000)

    def test_calls_of_unknown_cost_count_again_once_and_only_upwards(self) -> None:
        ceiling = Ceiling()
        for _ in range(3):
            ceiling.count_unknown(request(), count_unknown_cost(request(), PRICE, ceiling))
        assert ceiling.take_uncounted(PRICE) == Usage()
        ceiling.learn(Bill(prompt_tokens=1000), request(), PRICE)
        more = ceiling.take_uncounted(PRICE)
        expected = 3 * (compute_max_usage(request(), PRICE, ceiling).cost_usd - compute_max_usage(request(), PRICE).cost_usd)
        assert (more.cost_usd, more.most_usd) == (pytest.approx(expected), pytest.approx(expected))
        assert (more.calls, more.unpriced) == (0, 0)
        assert ceiling.take_uncounted(PRICE) == Usage()
