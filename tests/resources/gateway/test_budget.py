"""Budgets: no order of calls exceeds a limit, and what was reserved and not used can be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway.bills import Bill
from resources.gateway.budget import UNBOUNDED_RESPONSE, Accounts, Ceiling, Usage, compute_max_usage, count_unknown_cost
from resources.gateway.prices import Price

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

    def test_a_models_budget_ends_that_model_alone(self) -> None:
        budget = Accounts(Budget(max_calls=10), {"m": Budget(max_calls=0)})
        assert not budget.reserve("m", ONE_CALL)
        assert budget.find_reached_limit("m") == "m's max_calls of 0 was reached"
        assert budget.reserve("other", ONE_CALL)
        assert budget.find_reached_limit("other") is None

    def test_a_reservation_refused_by_one_account_is_charged_to_none(self) -> None:
        budget = Accounts(Budget(max_calls=1), {"m": Budget(max_calls=0)})
        assert not budget.reserve("m", ONE_CALL)
        assert budget.reserve("other", ONE_CALL)

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


class TestUnknownPrices:
    def test_a_limit_of_another_model_does_not(self) -> None:
        budget = Accounts(Budget(max_calls=1), {"other": Budget(max_cost_usd=1)})
        budget.refuse_unpriced([(request().model, None)])
        assert not budget.is_price_needed("m")
