"""Krippendorff's alpha is what its coincidence matrix says, and its interval is by clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.agreement import DIFFER_IN_ONE, NO_PAIRS, agreement, grade_alpha

BY_HAND = [
    ([(1, 1), (0.75, 0.625), (0.5, 0.625)], 0.8809524),
    ([(1, 1, 0.75), (0, 0.25, 0), (0.5, 0.75, 0.5)], 0.8588235),
    ([(0, 1), (1, 0), (0.5, 0.5)], -0.6666667),
    ([(0.5, 0.5), (0.5, 0.5, 0.5)], 1.0),
    ([(1, 0.75, 1), (0, 0.25), (0.5, 0.5, 1, 0.75)], 0.6894977),
]


def alpha(values: Sequence[float] | np.ndarray, units: Sequence[int] | np.ndarray) -> float:
    """Of one group of units."""
    found = agreement(values, units, np.zeros(len(units)))["alpha"]
    return float(found.iloc[0]) if len(found) else float("nan")


def flat(units: Sequence[Sequence[float]]) -> tuple[list[float], list[int]]:
    return [value for unit in units for value in unit], [at for at, unit in enumerate(units) for _ in unit]


def by_coincidences(units: Sequence[Sequence[float]]) -> float:
    """By the matrix of coincidences, in plain loops over ordered pairs."""
    together: dict[tuple[float, float], float] = {}
    for unit in units:
        for first, second in permutations(unit, 2):
            together[first, second] = together.get((first, second), 0.0) + 1 / (len(unit) - 1)
    of_value: dict[float, float] = {}
    for (first, _), count in together.items():
        of_value[first] = of_value.get(first, 0.0) + count
    n = sum(of_value.values())
    if not n:
        return float("nan")
    seen = sum(count * (a - b) ** 2 for (a, b), count in together.items()) / n
    by_chance = sum(of_value[a] * of_value[b] * (a - b) ** 2 for a in of_value for b in of_value) / (n * (n - 1))
    return 1 - seen / by_chance if by_chance else 1.0


@pytest.mark.parametrize(("units", "wanted"), BY_HAND)
def test_alpha_has_the_values_worked_out_by_hand(units: list[tuple[float, ...]], wanted: float) -> None:
    assert alpha(*flat(units)) == pytest.approx(wanted, abs=1e-6)
    assert by_coincidences(units) == pytest.approx(wanted, abs=1e-6)


@given(st.lists(st.lists(st.sampled_from([0, 0.25, 0.5, 0.75, 1]), min_size=0, max_size=5), max_size=12))
def test_alpha_is_what_the_coincidence_matrix_says(units: list[list[float]]) -> None:
    assert alpha(*flat(units)) == pytest.approx(by_coincidences(units), nan_ok=True)


def test_one_judge_has_no_alpha_and_the_row_says_why() -> None:
    found = agreement([1, 0.5, np.nan, 0.25], [0, 1, 1, 2], [0, 1, 1, 2]).iloc[0]
    assert np.isnan([found["alpha"], found["low"], found["high"]]).all()
    assert found["reason"] == NO_PAIRS


def test_few_clusters_have_an_alpha_and_no_interval() -> None:
    values, units = flat(BY_HAND[0][0])
    found = agreement(values, units, units).iloc[0]
    assert found["alpha"] == pytest.approx(0.8809524)
    assert np.isnan(found["low"])
    assert "3 clusters, at least 5" in found["reason"]


@pytest.mark.thorough
def test_the_interval_holds_the_alpha_of_all_prompts_as_often_as_it_says() -> None:
    """Prompts that differ in how hard they are to judge; intervals that took responses for independent would hold it far less often."""
    rng = np.random.default_rng(11)
    held = {"prompts": 0, "responses": 0}
    worlds, truth = 150, alpha(*judged(rng, 4000))
    for _ in range(worlds):
        values, units = judged(rng, 30)
        for name, clusters in (("prompts", units // 8), ("responses", units)):
            row = agreement(values, units, clusters).iloc[0]
            held[name] += row["low"] <= truth <= row["high"]
    assert 0.89 <= held["prompts"] / worlds <= 0.99
    assert held["responses"] < held["prompts"] - 0.1 * worlds


def judged(rng: np.random.Generator, prompts: int) -> tuple[np.ndarray, np.ndarray]:
    """Two judges' classes of eight responses to each prompt."""
    hard = rng.gamma(1.0, 0.8, prompts)[:, None, None]
    level = rng.normal(2, 1.2, (prompts, 1, 1)) + rng.normal(0, 0.8, (prompts, 8, 1))
    values = np.clip(np.round(level + hard * rng.normal(size=(prompts, 8, 2))), 0, 4) / 4
    return values.ravel(), np.repeat(np.arange(prompts * 8), 2)


def test_the_interval_is_the_jackknife_on_a_log_scale_by_hand() -> None:
    values, units = judged(np.random.default_rng(1), 6)
    row = agreement(values, units, units // 8).iloc[0]
    without = np.log([1 - alpha(values[units // 8 != out], units[units // 8 != out]) for out in range(6)])
    factor = np.exp(stats.t.ppf(0.975, 5) * np.sqrt(5 / 6 * sum((without - without.mean()) ** 2)))
    assert (1 - row["low"], 1 - row["high"]) == pytest.approx(((1 - row["alpha"]) * factor, (1 - row["alpha"]) / factor))


def test_judges_who_differ_in_one_prompt_at_most_have_no_interval() -> None:
    units = np.repeat(np.arange(5), 2)
    for last in (0, 0.25):
        row = agreement([1, 1, 0, 0, 0.5, 0.5, 1, 1, 0, last], units, units, noun="prompt").iloc[0]
        assert row["reason"] == DIFFER_IN_ONE.format(noun="prompt")
        assert np.isnan([row["low"], row["high"]]).all()


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ConfigError, match="200 at most"):
        alpha(np.linspace(0, 1, 300), np.arange(300))


def test_alpha_is_read_in_words() -> None:
    assert [grade_alpha(value) for value in (0.8, 0.7, 0.5, float("nan"))] == ["reliable", "tentative", "unreliable", ""]
