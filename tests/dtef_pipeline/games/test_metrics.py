"""Metric families by formula: the vectors, hand values, and what is no number."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games import metrics
from dtef_pipeline.games.metrics import TaggedAction
from tests.conftest import SHARED

REWARDS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)
METRICS = metrics.merge_metrics("chips", ())
ASKED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "success_rate": lambda given: metrics.success_rate(given["outcomes"]),
    "steps_over_optimal": lambda given: metrics.steps_over_optimal(given["steps"], given["optimal"]),
    "expected_return": lambda given: metrics.expected_return(given["rewards"]),
    "volatility": lambda given: metrics.volatility(given["rewards"]),
    "cooperation_rate": lambda given: metrics.cooperation_rate(
        [TaggedAction(one["tagged"], one["cooperative"]) for one in given["actions"]]
    ),
    "red_flag_rate": lambda given: metrics.red_flag_rate(given["n"], given["violations"])._asdict(),
}


def test_metrics_match_the_vectors() -> None:
    path = SHARED / "votes" / "vectors.json"
    if not path.is_file():
        pytest.skip(f"no vectors at {path}")
    cases = [one for one in json.loads(path.read_text(encoding="utf-8"))["cases"] if one["fn"] in ASKED]
    assert {one["fn"] for one in cases} == set(ASKED)
    for case in cases:
        assert ASKED[case["fn"]](case["in"]) == pytest.approx(case["out"], abs=case["tol"]), case["id"]


def test_nothing_observed_is_no_number() -> None:
    assert metrics.success_rate([]) is None
    assert metrics.steps_over_optimal([], []) is None
    assert metrics.expected_return([]) is None
    assert metrics.volatility([]) is None
    assert metrics.volatility([3.0]) == 0
    assert metrics.cooperation_rate([TaggedAction(False, True)]) is None
    assert metrics.red_flag_rate(0, []) == (None, None)


def test_steps_of_unsolved_episodes_are_left_out_or_charged() -> None:
    steps, optimal = [10.0, None, 7.0], [8.0, 5.0, None]
    assert metrics.steps_over_optimal(steps, optimal) == 2
    assert metrics.steps_over_optimal(steps, optimal, charge=60) == (2 + 55) / 2
    with pytest.raises(ConfigError, match="2 steps and 1 optima"):
        metrics.steps_over_optimal([1, 2], [1])


def test_severities_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="severity fatal: allowed: low, medium, high"):
        metrics.red_flag_rate(3, ["fatal"])


@given(REWARDS, st.floats(-100, 100))
def test_volatility_is_the_population_deviation_and_does_not_shift(rewards: list[float], shift: float) -> None:
    own = metrics.volatility(rewards)
    assert own == pytest.approx(statistics.pstdev(rewards), rel=1e-6, abs=1e-6)
    assert metrics.volatility([one + shift for one in rewards]) == pytest.approx(own, rel=1e-6, abs=1e-4)


def test_metrics_without_bounds_cannot_be_part_of_a_composite() -> None:
    with pytest.raises(ConfigError, match=r"expected_return has no bounds .*allowed: success_rate, forfeit_rate"):
        metrics.require_composite("evaluation", {"expected_return": 1}, METRICS)
    with pytest.raises(ConfigError, match="not a metric of the scenario"):
        metrics.require_composite("evaluation", {"success": 1}, METRICS)
