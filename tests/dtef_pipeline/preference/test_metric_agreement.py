"""Preference beside metrics: places, directions, components, and when there is no tau."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from dtef_pipeline.preference.metric_agreement import AGREEMENT_COLUMNS, compare_with_metrics, convert_judge_scores

SCORE = {"family": "qa", "partition": "all", "reviewer_kind": "person", "judge": None, "low": None, "high": None, "n_votes": 10}


def scores(betas: Mapping[str, float | None], component: int = 0, **others: object) -> pd.DataFrame:
    rows = [{**SCORE, "player": name, "beta": beta, "component": component, **others} for name, beta in betas.items()]
    return pd.DataFrame(rows).astype({"beta": float})


def metric(values: Mapping[str, float], direction: str = "higher", name: str = "m") -> pd.DataFrame:
    of = {"partition": "x", "metric": name, "direction": direction, "low": None, "high": None, "n": 3}
    return pd.DataFrame([{**of, "player": player, "value": value} for player, value in values.items()])


def test_tau_is_that_of_scipy_over_the_players_that_both_have_and_less_can_be_better() -> None:
    rng = np.random.default_rng(3)
    betas = {f"p{at}": float(rng.normal()) for at in range(12)}
    values = {f"p{at}": float(at % 7 + rng.normal()) for at in range(2, 15)}
    found = compare_with_metrics(scores(betas), pd.concat([metric(values), metric(values, "lower", "n")]))
    assert list(found.columns) == list(AGREEMENT_COLUMNS)
    both = sorted(set(betas) & set(values))
    expected = kendalltau([betas[one] for one in both], [values[one] for one in both]).statistic
    higher, lower = (found[found["metric"] == name] for name in ("m", "n"))
    assert higher["tau"].iloc[0] == pytest.approx(expected)
    assert lower["tau"].iloc[0] == pytest.approx(-expected)
    assert set(higher["player"]) == set(both)
    assert set(higher["tau_interval"]) == {"jackknife over players, atanh"}
    assert higher["preferred_place"].tolist() == list(range(1, 11))
    best = higher.loc[higher["value"].idxmax()]
    assert best["metric_place"] == 1
    assert lower[lower["player"] == best["player"]]["metric_place"].iloc[0] == 10


def test_too_few_players_have_a_reason_in_place_of_an_interval_or_of_tau() -> None:
    three = compare_with_metrics(scores({"a": 1, "b": 0, "c": -1}), metric({"a": 3, "b": 1, "c": 2}))
    assert three["tau"].iloc[0] == pytest.approx(1 / 3)
    assert three["tau_low"].isna().all()
    assert three["tau_interval"].isna().all()
    assert "at least 8 are needed" in three["reason"].iloc[0]
    one = compare_with_metrics(scores({"a": 1, "b": None}), metric({"a": 3, "b": 1}))
    assert one["tau"].isna().all()
    assert "at least 2 players" in one["reason"].iloc[0]
    assert not len(compare_with_metrics(scores({"a": None}), metric({"a": 3})))
    assert not len(compare_with_metrics(scores({"a": 1}), metric({"b": 3})))


def test_players_of_other_components_are_left_out_and_counted() -> None:
    apart = pd.concat([scores({"a": 1, "b": -1, "c": 0}), scores({"d": 5, "e": -5}, 1)])
    found = compare_with_metrics(apart, metric({"a": 2, "b": 1, "c": 0, "d": 9, "e": 8}))
    assert set(found["player"]) == {"a", "b", "c"}
    assert "2 in other components are left out" in found["reason"].iloc[0]


def test_judges_are_a_metric_beside_people() -> None:
    both = pd.concat([scores({"a": 1, "b": -1}), scores({"a": -2, "b": 2}, reviewer_kind="judge", judge="j")])
    found = compare_with_metrics(both[both["reviewer_kind"] == "person"], convert_judge_scores(both))
    assert found["metric"].unique().tolist() == ["preference of j"]
    assert found["tau"].iloc[0] == pytest.approx(-1)
