"""Daily budgets: no order of calls passes the limit, and several runs share a ledger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking import daily_budget
from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.errors import ConfigError
from tests.made.shared_cases import cases


class Ledger:
    """What a store would say."""

    def __init__(self) -> None:
        self.today, self.now, self.reads = 0.0, 0.0, 0

    def spent(self) -> float:
        self.reads += 1
        return self.today


def begun(budget: DailyBudget, most: float) -> bool:
    """Whether a call that may cost so much has begun."""
    fits = budget.fits(most)
    if fits:
        budget.take(most)
    return fits


def test_shared_budgets_hold() -> None:
    for case in cases("benchmarks", "budget"):
        limit, each, wanted = (case["in"][name] for name in ("limit", "each", "wanted"))
        ledger, judged = Ledger(), 0
        budget = DailyBudget(limit, ledger.spent)
        for _ in range(wanted):
            if begun(budget, each):
                judged += 1
                ledger.today += each
                budget.settle(each, each)
        assert (judged, wanted - judged) == (case["out"]["judged"], case["out"]["skipped_budget"])
        assert ledger.today == pytest.approx(case["out"]["spent"], abs=case["tol"])


def test_the_limit_can_be_reached_whatever_rounding_makes_of_the_sum() -> None:
    budget = DailyBudget(0.009, lambda: 0.0)
    assert [begun(budget, 0.003) for _ in range(4)] == [True, True, True, False]


def test_runs_at_once_share_the_ledger_which_is_not_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run read it when it began and before a refusal alone, so that two together spent twice the limit."""
    ledger = Ledger()
    monkeypatch.setattr(daily_budget.time, "monotonic", lambda: ledger.now)
    runs = [DailyBudget(1.0, ledger.spent) for _ in range(2)]
    judged = 0
    for at in range(40):
        ledger.now += 8.0
        if begun(runs[at % 2], 0.1):
            judged += 1
            ledger.today += 0.1
            runs[at % 2].settle(0.1, 0.1)
    assert judged == 10
    before = ledger.reads
    assert [runs[0].fits(0.0) for _ in range(50)] == [True] * 50
    assert ledger.reads <= before + 1


@given(st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 1), st.booleans()), max_size=80), st.floats(0, 20))
def test_no_order_of_calls_passes_the_limit(calls: list[tuple[float, float, bool]], limit: float) -> None:
    ledger, under_way = Ledger(), []
    budget = DailyBudget(limit, ledger.spent)
    for most, part, ends in calls:
        if begun(budget, most):
            under_way.append((most, most * part))
        if ends and under_way:
            reserved, actual = under_way.pop(0)
            ledger.today += actual
            budget.settle(reserved, actual)
        assert ledger.today + sum(reserved for reserved, _ in under_way) <= limit * (1 + 1e-6)


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match=r"daily_budget: got .*; allowed: 0 or more"):
        DailyBudget(limit, lambda: 0.0)
