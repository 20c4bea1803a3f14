"""Coverage of a rubric: the document's formula, upstream's other readings, and what is unscored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.scoring import ScoringPolicy, compute_coverage
from tests.dtef_pipeline.rubric.scored_rows import points_of, required


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
