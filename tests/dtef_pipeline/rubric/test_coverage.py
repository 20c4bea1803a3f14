"""Coverage of a rubric: the document's formula, upstream's other readings, and what is unscored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.coverage import compute_coverage
from dtef_pipeline.rubric.hybrid import ScoringPolicy
from tests.dtef_pipeline.rubric.scored_rows import path, points_of, required

TWO_BLOCKS = [
    required(1.0),
    *path(0, 0.2),
    *path(1, 0.6),
    *path(0, 0.9, block="should_not"),
    *path(1, 0.3, block="should_not"),
]
"""The paths of both blocks have the same numbers."""
BY_HAND: dict[str, tuple[list[dict[str, Any]], float]] = {
    "weights": ([required(1.0, 3), required(0.5, 1)], 0.875),
    "an unscored point": ([required(1.0), required(None), required(0.0)], 0.5),
    "best path": ([required(1.0), required(0.75), required(0.5), *path(0, 0.2, 0.0), *path(1, 0.0, 0.0)], 0.5875),
    "weights in paths": (
        [required(1.0, 2), required(0.5), *path(0, 0.25, 0.75), *path(1, (1.0, 1), (0.5, 3))],
        0.78125,
    ),
    "paths alone": ([*path(0, 1.0, 0.5), *path(1, 0.75)], 0.75),
    "no path holds": ([required(1.0), *path(0, 0.0), *path(1, 0.0)], 0.5),
    "an unscored path": ([required(0.8), *path(0, None), *path(1, 0.6, (None, 5.0))], 0.7),
    "both blocks": (TWO_BLOCKS, (1 + 0.6 + 0.3) / 3),
}


def of(points: pd.DataFrame, **policy: Any) -> float:
    (found,) = compute_coverage(points, ScoringPolicy(**policy))["coverage"]
    return float(found)


def naive(points: pd.DataFrame, policy: ScoringPolicy) -> float:
    """The document's formula, point by point."""
    numbers, weights, alternatives = [], [], []
    scored = [row for row in points.to_dict("records") if not pd.isna(row["score"])]
    for row in scored:
        if pd.isna(row["path"]):
            numbers.append(row["score"])
            weights.append(row["weight"])
    for block in ("should", "should_not"):
        means = []
        for number in sorted({row["path"] for row in scored if row["block"] == block and not pd.isna(row["path"])}):
            own = [row for row in scored if row["block"] == block and row["path"] == number]
            means.append(sum(r["score"] * r["weight"] for r in own) / sum(r["weight"] for r in own))
        if means:
            worst = block == "should_not" and policy.should_not_paths == "worst"
            alternatives.append(min(means) if worst else max(means))
    if policy.or_paths == "document":
        numbers, weights = numbers + alternatives, weights + [1.0] * len(alternatives)
        return sum(s * w for s, w in zip(numbers, weights, strict=True)) / sum(weights) if weights else float("nan")
    groups = [sum(s * w for s, w in zip(numbers, weights, strict=True)) / sum(weights)] if weights else []
    groups += [sum(alternatives) / len(alternatives)] if alternatives else []
    return sum(groups) / len(groups) if groups else float("nan")


@pytest.mark.parametrize("case", BY_HAND)
def test_coverage_by_hand(case: str) -> None:
    points, expected = BY_HAND[case]
    assert of(points_of(*points)) == pytest.approx(expected, abs=1e-12)


def test_the_other_readings_by_hand() -> None:
    assert of(points_of(*BY_HAND["best path"][0]), or_paths="two_group") == pytest.approx(0.425)
    assert of(points_of(*BY_HAND["weights in paths"][0]), or_paths="two_group") == pytest.approx(0.7291666667)
    assert of(points_of(*TWO_BLOCKS), should_not_paths="max") == pytest.approx((1 + 0.6 + 0.9) / 3)
    assert of(points_of(*TWO_BLOCKS), or_paths="two_group") == pytest.approx((1 + 0.45) / 2)


def test_unscored_points_are_counted_and_never_0() -> None:
    points = points_of(
        required(None, low=0.0, high=1.0),
        required(0.5, low=0.25, high=0.75),
        required(1.0, low=1.0, high=1.0),
        required(None),
        required(None),
    )
    (row,) = compute_coverage(points).to_dict("records")
    assert (row["n_planned"], row["n_scored"], row["n_partial"], row["n_unscored"]) == (5, 2, 1, 3)
    assert row["coverage"] == pytest.approx(0.75)
    found = compute_coverage(points_of())
    assert len(found) == 0
    assert {"coverage", "n_planned", "n_unscored", "draw"} <= set(found)


SCORE = st.one_of(st.none(), st.floats(0, 1))
POINT = st.fixed_dictionaries(
    {
        "prompt": st.sampled_from(["p", "q"]),
        "block": st.sampled_from(["should", "should_not"]),
        "path": st.one_of(st.none(), st.integers(0, 2)),
        "score": SCORE,
        "weight": st.floats(0.1, 10),
    }
)


@given(
    st.lists(POINT, min_size=1, max_size=25),
    st.sampled_from(["document", "two_group"]),
    st.sampled_from(["worst", "max"]),
    st.randoms(use_true_random=False),
)
def test_coverage_is_the_naive_definition_in_any_row_order(
    rows: list[dict[str, Any]], paths: str, worst: str, random: Any
) -> None:
    policy = ScoringPolicy(or_paths=paths, should_not_paths=worst)
    points = points_of(*rows)
    found = compute_coverage(points, policy)
    expected = [naive(own, policy) for _, own in points.groupby("prompt")]
    np.testing.assert_allclose(found["coverage"].to_numpy(), expected, rtol=1e-9, atol=1e-12)
    order = list(range(len(points)))
    random.shuffle(order)
    pd.testing.assert_frame_equal(compute_coverage(points.iloc[order], policy), found, check_exact=True)


def test_wrong_points_are_refused_by_name() -> None:
    for column, value, message in [
        ("block", "must", "block of b, p, m, must.*allowed: should, should_not"),
        ("weight", 0.0, "weight of b, p, m, should.*allowed: a number above 0"),
        ("score", 1.5, r"score of .*got .*1\.5.*allowed: a number from 0 to 1, or null"),
        ("low", -0.5, "low of"),
    ]:
        with pytest.raises(ConfigError, match=message):
            compute_coverage(points_of({"score": 1.0, column: value}))
    with pytest.raises(ConfigError, match="points: no column weight"):
        compute_coverage(points_of(required(1.0)).drop(columns="weight"))
    with pytest.raises(ConfigError, match=r"points: two rows with .*'position': 0"):
        compute_coverage(points_of(required(1.0), {"score": 0.5, "position": 0}))
