"""Verdicts where something is amiss: answers that are missing, a drift that came back."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.drift.rule import apply_drift_rule
from dtef_pipeline.drift.shared_shift import Scores
from dtef_pipeline.drift.verdict import Verdict, compute_verdict

THRESHOLD = math.log10(20)


def scores(nights: int, *, seed: int = 0, noise: float = 0.1, missing: float = 0.0, questions: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 0.8, (questions, 1)) + rng.normal(0, noise, (questions, nights))
    values[rng.uniform(size=values.shape) < missing] = np.nan
    return pd.DataFrame(values, columns=[f"n{night:03d}" for night in range(nights)])


def judge(values: pd.DataFrame) -> Verdict:
    """Beside another model that does not move."""
    others = {"steady": Scores(pd.DataFrame(0.6, index=values.index, columns=values.columns))}
    return compute_verdict(values, [f"q{row}" for row in range(len(values))], baseline=5, threshold=THRESHOLD, peers=others)


def test_a_drift_stays_one_where_every_prompt_lacks_a_score_in_some_snapshot() -> None:
    values = scores(60, missing=0.05)
    values.iloc[:, 20:] -= 0.1
    rule = apply_drift_rule(values, dict.fromkeys(values.columns, None), temperature=0)
    assert rule.n_items < 10
    found = judge(values)
    assert (found.verdict, found.first_snapshot) == ("drift", "n020")
    assert found.shift == pytest.approx(-0.1, abs=0.02)


def test_a_drift_that_came_back_is_reported_with_its_own_size_and_date_and_where_it_is_now() -> None:
    values = scores(100)
    values.iloc[:, 20:30] -= 0.2
    values.iloc[:, 60:] += 0.1
    found = judge(values)
    assert found.verdict == "drift"
    assert found.first_snapshot == "n020"
    assert found.shift == pytest.approx(-0.2, abs=0.03)
    low, high = found.shift_low, found.shift_high
    assert low is not None
    assert high is not None
    assert low < -0.2 < high < 0
    assert found.top_changes
    assert all(one.shift < 0 for one in found.top_changes)
    assert found.notes[0].startswith("the latest, n099, is +0.")


def test_snapshots_that_were_off_and_back_are_no_change_of_a_series_that_is_watched() -> None:
    """With them, questions seem to have moved by the outage's size times its share of the nights, here by -0.06 since n008."""
    values = scores(14, noise=0.01)
    values.iloc[:, 8:10] -= 0.2
    found = judge(values)
    assert (found.verdict, found.outage) == ("watch", ("n008", "n009"))
    assert found.top_changes is not None
    assert np.mean([one.shift for one in found.top_changes]) == pytest.approx(0, abs=0.02)
