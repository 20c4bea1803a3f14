"""Budgets: no order of calls exceeds a limit, and what was reserved and not used can be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import GatewayError
from resources.gateway.budget import UNBOUNDED_RESPONSE, Accounts, Usage
from resources.gateway.prices import Price

ONE_CALL = Usage(calls=1)


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
        assert budget.reached("m") is None
        budget.settle("m", ONE_CALL, ONE_CALL)
        budget.settle("m", ONE_CALL, ONE_CALL)
        assert not budget.reserve("m", ONE_CALL)
        assert budget.reached("m") == "the run's max_calls of 2 was reached"

    def test_what_was_reserved_and_not_used_can_be_used(self) -> None:
        budget, most = Accounts(Budget(max_tokens=100), {}), Usage(1, 90)
        assert budget.reserve("m", most)
        assert not budget.reserve("m", most)
        budget.settle("m", most, Usage(1, 10))
        assert budget.reserve("m", most)

    def test_a_models_budget_ends_that_model_alone(self) -> None:
        budget = Accounts(Budget(max_calls=10), {"m": Budget(max_calls=0)})
        assert not budget.reserve("m", ONE_CALL)
        assert budget.reached("m") == "m's max_calls of 0 was reached"
        assert budget.reserve("other", ONE_CALL)
        assert budget.reached("other") is None

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

    def test_a_longer_prompt_takes_more(self) -> None:
        budget = Accounts(Budget(max_tokens=1), {})
        assert budget.estimate(request("word " * 100), None).tokens >= budget.estimate(request("word"), None).tokens + 99

    def test_dollars_follow_the_price(self) -> None:
        budget = Accounts(Budget(max_cost_usd=1), {})
        free, priced = (budget.estimate(request(max_tokens=1000), Price(0, dollars)) for dollars in (0, 5.0))
        assert free.cost_usd == 0
        assert priced.cost_usd == pytest.approx(1000 * 5.0 / 1e6)


class TestUnknownPrices:
    def test_a_limit_in_dollars_needs_a_price(self) -> None:
        budget = Accounts(Budget(max_cost_usd=1), {})
        with pytest.raises(GatewayError, match=r"without a price of m; give input_price and output_price .* max_calls"):
            budget.refuse_unpriced([(request().model, None)])
        budget.refuse_unpriced([(request().model, Price(0, 0))])

    def test_a_limit_of_another_model_does_not(self) -> None:
        budget = Accounts(Budget(max_calls=1), {"other": Budget(max_cost_usd=1)})
        budget.refuse_unpriced([(request().model, None)])
        assert not budget.needs_price("m")
