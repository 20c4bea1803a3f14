"""Daily budgets of judges: runs that share a store share them, and what was spent on another day, or by others than judges, does not count."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.request import Message, Request
from dtef_pipeline.errors import GatewayError
from resources.gateway import Gateway
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM
from tests.made.responses import response
from tests.resources.gateway.gateway_setup import gateway, model

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


def test_two_runs_over_one_store_stay_within_the_day_together(store: ResponseStore) -> None:
    limit = 0.001
    with FakeLLM() as server:
        first = judging(store, limit).answer(judgements(server))
        asked = len(server.calls)
        second = judging(store, limit).answer(judgements(server, first=COUNT))
        assert len(server.calls) == asked
        again = judging(store, 10.0).answer(judgements(server))
    assert first.asked > 0
    assert {failure.status for failure in (*first.failures.values(), *second.failures.values())} == {"budget"}
    message = next(iter(second.failures.values())).message
    assert re.search(r"the judges' daily budget of \$0\.001 for 20\d\d-\d\d-\d\d \(UTC\) was reached", message)
    assert again.failures == {}
    assert again.asked == COUNT - first.asked


@pytest.mark.parametrize("at_once", [1, 16])
def test_calls_at_once_end_the_day_no_sooner_than_one_after_the_other(store: ResponseStore, at_once: int) -> None:
    """Each reserves $.081 and costs $.0405: a call that does not fit beside those in flight waits for them, and 11 fit into $.50."""
    with FakeLLM() as server:
        asked = judgements(server, input_price=0.0, output_price=10_125.0, max_tokens=8, max_concurrency=at_once)
        found = judging(store, 0.5).answer(asked)
    assert (found.asked, len(found.failures)) == (11, COUNT - 11)
    assert store.sum_spent("judge", NOON - timedelta(days=9_000)) == pytest.approx(11 * 0.0405)


def test_candidates_are_not_held_to_the_judges_day(store: ResponseStore) -> None:
    with FakeLLM() as server:
        assert judging(store, 0.0).answer(judgements(server, count=3, role="candidate")).asked == 3
        assert len(judging(store, 0.0).answer(judgements(server, first=9, count=3)).failures) == 3


def test_without_a_price_nothing_is_judged_unless_the_model_is_allowed_by_name(store: ResponseStore) -> None:
    with FakeLLM() as server:
        unpriced = judgements(server, count=4, input_price=None, output_price=None)
        with pytest.raises(
            GatewayError, match=r"because the daily budget cannot be enforced without a price of m; give input_price"
        ):
            judging(store, 5.0).answer(unpriced)
        assert server.calls == []
        allowed = judging(store, 5.0)
        allowed.accounts.allowed_unpriced.add("m")
        assert allowed.answer(unpriced).asked == 4
