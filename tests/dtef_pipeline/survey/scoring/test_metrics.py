"""Each metric four ways: by hand, against an independent definition on lopsided data, by an invariance, on rejected input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import cosine as cosine_distance
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.tables import METRICS

GUESS, TRUTH = [45.2, 30.1, 15.5, 9.2], [40, 35, 15, 10]
LEFT, RIGHT = [50, 30, 20], [20, 30, 50]
FIRST, SECOND = [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]
Vector = npt.NDArray[np.float64]

BY_HAND = [
    ("js", GUESS, TRUTH, 0.948749),
    ("cosine", GUESS, TRUTH, 0.992099),
    ("emd", GUESS, TRUTH, 0.937),
    ("emd_normalized", GUESS, TRUTH, 0.979),
    ("tv", GUESS, TRUTH, 0.057),
    ("mae", GUESS, TRUTH, 0.0285),
    ("top_hit", GUESS, TRUTH, 1.0),
    ("js", LEFT, RIGHT, 0.690459),
    ("emd", LEFT, RIGHT, 0.4),
    ("emd_normalized", LEFT, RIGHT, 0.7),
    ("tv", LEFT, RIGHT, 0.3),
    ("mae", LEFT, RIGHT, 0.2),
    ("top_hit", LEFT, RIGHT, 0.0),
    ("js", FIRST, SECOND, 0.0),
    ("cosine", FIRST, SECOND, 0.0),
    ("emd", FIRST, SECOND, 0.0),
    ("emd_normalized", FIRST, SECOND, 0.75),
    ("emd_normalized", [1, 0, 0], [0, 0, 1], 0.0),
    ("top_hit", [25, 25, 25, 25], TRUTH, 0.25),
    ("top_hit", [40, 40, 20], [45, 45, 10], 1.0),
]


def naive_top_hit(p: Vector, q: Vector) -> float:
    top = [i for i in range(len(p)) if p[i] == max(p)]
    return sum(q[i] == max(q) for i in top) / len(top)


def steps(p: Vector, q: Vector) -> float:
    scale = np.arange(len(p))
    return float(wasserstein_distance(scale, scale, p, q))


NAIVE: dict[str, Callable[[Vector, Vector], float]] = {
    "js": lambda p, q: 1 - float(jensenshannon(p, q, base=2)),
    "cosine": lambda p, q: 1 - float(cosine_distance(p, q)),
    "emd": lambda p, q: max(0.0, 1 - steps(p, q)),
    "emd_normalized": lambda p, q: 1 - steps(p, q) / (len(p) - 1),
    "tv": lambda p, q: max(float(abs(p[list(s)].sum() - q[list(s)].sum())) for s in subsets(len(p))),
    "mae": lambda p, q: sum(abs(a - b) for a, b in zip(p, q, strict=True)) / len(p),
    "top_hit": naive_top_hit,
}


def subsets(n: int) -> list[list[int]]:
    return [[i for i in range(n) if bits >> i & 1] for bits in range(2**n)]


def lopsided(rows: int, k: int, seed: int) -> Vector:
    """Distributions with most of the mass in few options, and exact zeros."""
    drawn = np.random.default_rng(seed).dirichlet(np.full(k, 0.3), rows)
    drawn[drawn < 0.02] = 0
    return drawn / drawn.sum(axis=1, keepdims=True)


def metric(name: str) -> metrics.Metric:
    found: metrics.Metric = getattr(metrics, name)
    return found


@pytest.mark.parametrize(("name", "predicted", "observed", "value"), BY_HAND)
def test_metric_has_the_value_worked_out_by_hand(
    name: str, predicted: list[float], observed: list[float], value: float
) -> None:
    assert float(metric(name)(predicted, observed)) == pytest.approx(value, abs=5e-7)


@pytest.mark.parametrize("k", [2, 3, 5, 9])
@pytest.mark.parametrize("name", METRICS)
def test_metric_agrees_with_an_independent_definition_on_lopsided_data(name: str, k: int) -> None:
    p, q = lopsided(60, k, 1), lopsided(60, k, 2)
    expected = [NAIVE[name](a, b) for a, b in zip(p, q, strict=True)]
    assert metric(name)(p, q) == pytest.approx(expected, abs=1e-7 if name == "js" else 1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_identical_rows_give_exactly_the_best_value(name: str) -> None:
    p = lopsided(2000, 7, 9)
    assert set(metric(name)(p, p)) == {0.0 if name in ("tv", "mae") else 1.0}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("k", [2, 4, 12, 130])
def test_metric_of_one_row_is_that_of_the_row_among_many_to_the_last_bit(name: str, k: int) -> None:
    p, q = lopsided(40, k, 10), lopsided(40, k, 11)
    assert [float(metric(name)(a, b)) for a, b in zip(p, q, strict=True)] == metric(name)(p, q).tolist()


@pytest.mark.parametrize(
    ("predicted", "observed", "message"),
    [
        ([-1, 2], [1, 1], r"predicted: row 0 .*: got \[-1.0, 2.0\]"),
        ([[1, 1], [0, 0]], [[1, 1], [1, 1]], "predicted: row 1 "),
        ([1, 1], [np.nan, 1], "observed: row 0 "),
        ([1, 1], [np.inf, 1], "observed: row 0 "),
        ([1, 1], [1e308, 1e308 * 1.5], "observed: row 0 "),
        ([1, 1, 1], [1, 1], r"shape; got \(3,\) and \(2,\)"),
        ([1], [1], "2 options or more"),
        (1.0, [1, 1], "2 options or more"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "2 options or more"),
    ],
)
@pytest.mark.parametrize("name", METRICS)
def test_metric_rejects_what_is_no_distribution(name: str, predicted: object, observed: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        metric(name)(predicted, observed)  # type: ignore[arg-type]


def test_measure_gives_every_metric_in_the_order_of_the_table() -> None:
    p, q = lopsided(20, 4, 14), lopsided(20, 4, 15)
    measured = metrics.measure(p, q)
    assert tuple(measured) == METRICS
    for name in METRICS:
        np.testing.assert_allclose(measured[name], metric(name)(p, q), rtol=1e-12)


def test_dont_know_options_are_left_out_of_the_scale_and_the_rest_renormalised() -> None:
    ranks = [0, 1, 2, -1]
    assert float(metrics.emd_normalized_on_scale([50, 0, 0, 50], [0, 0, 10, 90], ranks)) == pytest.approx(0, abs=1e-12)
    assert float(metrics.emd_normalized_on_scale([25, 15, 10, 50], [10, 15, 25, 50], ranks)) == pytest.approx(0.7)
    assert float(metrics.emd_normalized_on_scale(GUESS, TRUTH, [0, 1, 2, 3])) == pytest.approx(0.979)


def test_a_wrong_row_is_named_among_all_rows_and_the_prediction_first() -> None:
    predicted, observed = np.ones((2, 9, 3))
    observed[5] = 0
    with pytest.raises(ConfigError, match="observed: row 5 "):
        metrics.measure(predicted, observed)
    predicted[4] = 0
    with pytest.raises(ConfigError, match="predicted: row 4 "):
        metrics.measure(predicted, observed)


class TestPlacesOnAScale:
    def test_a_middle_option_that_is_listed_last_stands_between_the_others(self) -> None:
        """`Too much | Not enough | About right`: from one end to the other it is two steps, to the middle one."""
        ranks = [0, 2, 1]
        assert float(metrics.emd_normalized_on_scale([1, 0, 0], [0, 1, 0], ranks)) == pytest.approx(0)
        assert float(metrics.emd_normalized_on_scale([1, 0, 0], [0, 0, 1], ranks)) == pytest.approx(0.5)

    def test_the_listed_order_does_not_matter_when_the_ranks_go_with_it(self) -> None:
        order = [2, 0, 3, 1]
        p, q = np.array(GUESS)[order], np.array(TRUTH)[order]
        assert float(metrics.emd_normalized_on_scale(p, q, order)) == pytest.approx(float(metrics.emd_normalized(GUESS, TRUTH)))

    def test_options_of_one_place_count_as_one(self) -> None:
        apart = metrics.emd_normalized_on_scale([20, 30, 10, 40], [30, 10, 20, 40], [0, 1, 1, 2])
        assert float(apart) == pytest.approx(float(metrics.emd_normalized([20, 40, 40], [30, 30, 40])))
        assert np.isnan(metrics.emd_normalized_on_scale([1, 2], [2, 1], [0, 0]))
