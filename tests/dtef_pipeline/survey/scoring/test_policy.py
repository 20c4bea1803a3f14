"""What `score` says of each status."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.scoring.policy import apply_policy, check_metric_name, compute_similarities
from dtef_pipeline.survey.tables import METRICS


def test_policy_is_the_published_one() -> None:
    status = ["ok", "unparseable", "refused", "wrong_length", "error", "missing", "budget"]
    scores = apply_policy(status, [0.9, *[math.nan] * 6], "js")
    assert scores[:4].tolist() == pytest.approx([0.9, 0, 0, 0.1])
    assert all(map(math.isnan, scores[4:]))


def test_score_of_a_distance_is_a_similarity() -> None:
    assert apply_policy(["ok", "wrong_length"], [0.25, math.nan], "tv").tolist() == pytest.approx([0.75, 0.1])
    assert apply_policy(["ok"], [0.0], "mae").tolist() == pytest.approx([1])


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=f"no metric 'kl'; allowed: {', '.join(METRICS)}"):
        check_metric_name("kl")
    with pytest.raises(ConfigError, match=r"no status 'fine'; allowed: ok, unparseable"):
        apply_policy(["fine"], [1.0], "js")


def test_similarities_of_distances_are_one_minus_them_and_scales_are_respected() -> None:
    p, q = [[0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.1, 0.4]], [[0.2, 0.3, 0.5, 0.0], [0.2, 0.3, 0.1, 0.4]]
    ranks = np.array([0, 1, 2, -1])
    found = compute_similarities(p, q, ordinal=True, ranks=ranks)
    assert tuple(found) == METRICS
    assert found["tv"] == pytest.approx([0.7, 1.0])
    assert found["mae"] == pytest.approx([0.85, 1.0])
    assert found["emd_normalized"] == pytest.approx([0.7, 1.0])
    assert compute_similarities(p, q, ordinal=True, ranks=np.arange(4))["emd_normalized"] == pytest.approx([0.8, 1.0])
    assert np.isnan(compute_similarities(p, q, ordinal=False, ranks=ranks)["emd_normalized"]).all()
