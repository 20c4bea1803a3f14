"""Verdicts on a series: the rule and the evidence together, and why a series has no verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dtef_pipeline.drift.models import drift_checks
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.verdict_text import build_headline
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table
from tests.made.snapshots import label


def nights(values: list[list[float]], **given: Any) -> list[dict[str, Any]]:
    """Score rows; `values`: (nights, questions)."""
    return [
        {"snapshot": label(night), "question_id": f"q{q}", "score": score, "truth_id": f"t{q}", **given}
        for night, scores in enumerate(values)
        for q, score in enumerate(scores)
    ]


def stepped(count: int, since: int, by: float) -> list[list[float]]:
    """Nights that hardly differ, and from night `since` on each question is moved by `by`."""
    noise = np.random.default_rng(1).normal(0, 0.01, (count, 4))
    noise[since:] += by
    return [[float(x) for x in row] for row in 0.6 + noise]


def test_all_that_is_watched_shares_one_alpha() -> None:
    rows = [row for m in "abc" for row in nights(stepped(8, 8, 0), model=m, model_variant=m)]
    thresholds = drift_checks(scores_table(rows), SUBJECT, n_watched=50)["threshold"].to_pylist()
    assert thresholds == pytest.approx([math.log10(3 * 50 / 0.05)] * 3)
    strict = drift_checks(scores_table(rows), SUBJECT, options=WatchOptions(alpha=0.01))["threshold"].to_pylist()
    assert strict == pytest.approx([math.log10(300)] * 3)


def test_drift_comes_first_with_model_direction_size_and_since_when() -> None:
    rows = [
        *nights(stepped(20, 12, -0.2), model="fell", model_variant="fell"),
        *nights(stepped(20, 12, 0.1), model="rose", model_variant="rose"),
        *nights([*stepped(19, 19, 0), [0.1] * 4], model="dipped", model_variant="dipped"),
    ]
    text = build_headline(drift_checks(scores_table(rows), SUBJECT), SUBJECT)
    assert text.startswith("Drift in 2 of 3 series. Largest: fell on S1/country:kenya, context 0, down by 0.")
    assert text.endswith(f"since {label(12)}. 1 more to watch.")
