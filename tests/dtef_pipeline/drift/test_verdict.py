"""Verdicts where something is amiss: missing answers, a drift that came back, outages."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from dtef_pipeline.drift.evidence import LONGEST_OUTAGE, NO_OUTAGES, Outages, evidence, find_outages
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
    assert all(one["shift"] < 0 for one in found.top_changes)
    assert found.notes[0].startswith("the latest, n099, is +0.")


def test_snapshots_that_were_off_and_back_are_no_change_of_a_series_that_is_watched() -> None:
    """With them, questions seem to have moved by the outage's size times its share of the nights, here by -0.06 since n008."""
    values = scores(14, noise=0.01)
    values.iloc[:, 8:10] -= 0.2
    found = judge(values)
    assert (found.verdict, found.outage) == ("watch", ("n008", "n009"))
    assert found.top_changes is not None
    assert np.mean([one["shift"] for one in found.top_changes]) == pytest.approx(0, abs=0.02)


FLOOR = 0.005


def series(*off: tuple[int, int], by: float = -0.2) -> npt.NDArray[np.float64]:
    means = np.random.default_rng(1).normal(0, 0.01, 40)
    for first, length in off:
        means[first : first + length] += by
    return means


@pytest.mark.parametrize("length", range(1, LONGEST_OUTAGE + 1))
@pytest.mark.parametrize("by", [-0.2, 0.15])
def test_a_run_that_is_back_is_over(length: int, by: float) -> None:
    assert find_outages(series((20, length), by=by), FLOOR) == Outages(ended=tuple(range(20, 20 + length)))


def test_a_run_up_to_the_latest_snapshot_is_pending_until_it_is_too_long_for_an_outage() -> None:
    means = series((20, 20))
    for length in range(1, LONGEST_OUTAGE + 1):
        assert find_outages(means[: 20 + length], FLOOR) == Outages(pending=tuple(range(20, 20 + length)))
    for length in range(LONGEST_OUTAGE + 1, 20):
        assert find_outages(means[: 20 + length], FLOOR) == NO_OUTAGES


def test_snapshots_that_differ_less_than_the_rule_looks_at_are_never_off() -> None:
    assert find_outages(np.tile([0.0, 0.049], 20), FLOOR) == NO_OUTAGES


def test_many_runs_are_how_the_series_is_and_none_is_an_outage() -> None:
    """Left out as outages, the bad nights of a provider with two servers made the rest look so steady that 55 % of such series had drifted."""
    every = [(first, 1) for first in range(3, 40, 4)]
    assert find_outages(series(*every, by=-0.08), FLOOR) == Outages(pending=(39,))
    assert find_outages(series(*every[:2], by=-0.08), FLOOR) == Outages(ended=tuple(first for first, _ in every[:2]))


@pytest.mark.parametrize("visits", [(2, 12), (2, 20), (12, 36)])
def test_a_visit_of_the_level_that_the_series_began_with_or_has_now_is_no_outage(visits: tuple[int, ...]) -> None:
    """Left out, it made the level before or after look as if the series had never been anywhere else."""
    means = series((25, 15))
    for night in visits:
        means[night] += -0.2 if night < 25 else 0.2
    assert find_outages(means, FLOOR) == NO_OUTAGES


@pytest.mark.parametrize("before", range(1, 6))
@pytest.mark.parametrize("by", [-0.11, 0.11])
def test_what_lasts_from_the_first_snapshots_on_is_no_outage(before: int, by: float) -> None:
    """A drop on the second or third night made the nights before it an outage, for good."""
    means = np.where(np.arange(60) < before, 0.80, 0.80 + by)
    for nights in range(before + LONGEST_OUTAGE + 1, 61):
        assert find_outages(means[:nights], FLOOR) == NO_OUTAGES
    assert not {place for place in range(before) if place in find_outages(means[: before + 3], FLOOR).places}


@pytest.mark.thorough
@pytest.mark.parametrize("before", range(1, 10))
@pytest.mark.parametrize("by", [-0.1, 0.1])
def test_a_shift_on_any_of_the_first_ten_snapshots_is_found_within_ten_snapshots(before: int, by: float) -> None:
    """A shift within the baseline was never found."""
    means = np.random.default_rng(before).normal(0, 0.005, before + 10)
    means[before:] += by
    found = evidence(means, np.full(before + 10, 0.005), threshold=math.log10(20))
    assert found.highest is not None
    assert found.highest > math.log10(20)
    assert found.first == before
    assert (found.log10_e[: before + LONGEST_OUTAGE] < 0.5).all()
