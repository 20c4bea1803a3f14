"""The standard error that a run is expected to have, by hand and by a definition of its own."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.survey.question_draw import (
    Components,
    compute_difference_deviations,
    compute_expected_error,
    estimate_variance_components,
)


def nested(sizes: tuple[int, ...], segments: int = 1) -> pd.DataFrame:
    """One row per question and segment; `sizes`: questions of each battery."""
    rows = [
        (f"b{battery}", f"b{battery}q{place}", f"s{segment}")
        for battery, many in enumerate(sizes)
        for place in range(many)
        for segment in range(segments)
    ]
    return pd.DataFrame(rows, columns=["cluster", "question", "segment"])


def test_by_hand() -> None:
    # Batteries of 2 and 1 questions, in 2 segments each: shares 2/3 and 1/3; Q = 3, s = 2.
    error = compute_expected_error(Components(0.09, 0.06, 0.12), nested((2, 1), 2))
    assert error**2 == pytest.approx(0.09 * 5 / 9 + 0.06 / 3 + 0.12 / 6)


def test_components_by_hand() -> None:
    # Battery a: questions of means 2 and 4, battery b: one of mean 9; scores 1 above and below.
    frame = nested((2, 1), 2).assign(score=[1.0, 3, 3, 5, 8, 10])
    # Within: 6 / 3 = 2. Questions: (4 - 2 * 1) / (6 - (2 * 4 / 4 + 4 / 2)) = 1. Batteries: (48 - 2 - 1 * (4 - 12 / 6)) / (6 - 20 / 6).
    assert estimate_variance_components(frame) == pytest.approx((44 / (6 - 20 / 6), 1, 2))


def test_differences_of_several_models_have_the_mean_of_those_of_every_two() -> None:
    rng, pairs = np.random.default_rng(7), nested((4, 3, 2, 1, 1), 3)
    scores = {model: rng.normal(size=len(pairs)) for model in "abcd"}
    rows = pd.concat([pairs.assign(model_variant=model, score=score, setting="w") for model, score in scores.items()])

    def spread(value: np.ndarray) -> float:
        return float((value**2).sum())

    of_two = [spread(scores[one] - scores[other]) for one, other in combinations(scores, 2)]
    of_each = [spread(own["score"].to_numpy()) for _, own in compute_difference_deviations(rows).groupby("model_variant")]
    assert np.mean(of_each) == pytest.approx(np.mean(of_two))
    two = compute_difference_deviations(rows[rows["model_variant"].isin(["a", "b"])])
    assert np.abs(two.loc[two["model_variant"] == "a", "score"]).tolist() == pytest.approx(np.abs(scores["a"] - scores["b"]))
