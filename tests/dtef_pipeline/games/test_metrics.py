"""Metrics of episodes by formula: the vectors, hand values, what has no value, and what can be no part of a composite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assets.games.game_catalog import load_known_scenarios
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.episode_scores import compute_episode_scores
from dtef_pipeline.games.metrics import merge_metrics, require_composite
from dtef_pipeline.games.packs import pack
from dtef_pipeline.games.persona_results import SeedSums, group_means_of
from dtef_pipeline.games.tables import EPISODES
from resources.settings import Settings
from tests.made.voted import shared_cases

Episodes = Sequence[Mapping[str, Any]]
MANIFESTS = load_known_scenarios(Settings.read_environment())


def scores(name: str, metric: str, episodes: Episodes) -> list[dict[str, Any]]:
    """Rows of `episode_scores` of a metric; an episode has the outcome None if it was not played."""
    manifest = MANIFESTS[name].model_copy(update={"severities": {"low": "low", "high": "high", "forfeit": "medium"}})
    known: dict[str, Any] = {"version": manifest.version, "n_turns": 1, "forfeits": 0, "flags": [], "metric_counts": []}
    rows = [known | {"outcome": "win", "status": "played"} | {**episode} for episode in episodes]
    table = pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in EPISODES], schema=EPISODES)
    return [row for row in compute_episode_scores(table, pack(name, {name: manifest})).to_pylist() if row["metric"] == metric]


def mean(name: str, metric: str, episodes: Episodes, *, spread: bool = False) -> float:
    """The mean over episodes of one seed each that have a value, as in `persona_results`."""
    counts = [(row["numerator"], row["denominator"]) for row in scores(name, metric, episodes) if row["status"] == "scored"]
    totals, sizes = (np.array(column, dtype=np.float64) for column in zip(*counts, strict=True))
    seeds = SeedSums(np.zeros(len(counts), dtype=np.int64), totals, totals**2, sizes, np.ones(len(counts)))
    return float(group_means_of(seeds, np.array([spread]), np.array([False])).mean[0])


def vector_value(fn: str, given: Mapping[str, Any]) -> Any:
    if fn == "success_rate":
        return mean("poker/kuhn", fn, [{"outcome": outcome} for outcome in given["outcomes"]])
    if fn == "red_flag_rate":
        episodes = [{"flags": given["violations"]}, *[{}] * (given["n"] - 1)]
        return {"rate": mean("poker/kuhn", fn, episodes), "weighted": mean("poker/kuhn", "red_flag_weighted", episodes)}
    return mean("poker/kuhn", fn, [{"reward": reward} for reward in given["rewards"]], spread=fn == "volatility")


def test_metrics_match_the_vectors() -> None:
    for case in (
        case for fn in ("success_rate", "expected_return", "volatility", "red_flag_rate") for case in shared_cases(fn)
    ):
        assert vector_value(case["fn"], case["in"]) == pytest.approx(case["out"], abs=case["tol"]), case["id"]


def test_a_scenario_without_winners_has_no_success_rate_whatever_its_outcomes_are() -> None:
    """Agreements were left out and forfeits kept, so that the rate was 0 over the forfeits alone."""
    episodes = [{"outcome": outcome} for outcome in ("agreement", "no_agreement", "loss")]
    failed = {"outcome": None, "status": "error", "reason": "it failed"}
    found = scores("negotiation/allocation", "success_rate", [*episodes, failed])
    assert [(row["value"], row["reason"]) for row in found] == [
        *[(None, "nobody wins or loses a negotiation")] * 3,
        (None, "it failed"),
    ]


def test_the_opponents_forfeit_is_no_red_flag_of_the_player() -> None:
    episodes = [{"flags": ["forfeit"], "forfeits": forfeits} for forfeits in (0, 1)]
    assert [row["value"] for row in scores("poker/kuhn", "red_flag_weighted", episodes)] == [0, 3]


def test_metrics_without_bounds_cannot_be_part_of_a_composite() -> None:
    metrics = merge_metrics("chips", ())
    with pytest.raises(ConfigError, match=r"expected_return has no bounds .*allowed: success_rate, forfeit_rate"):
        require_composite("evaluation", {"expected_return": 1}, metrics)
    with pytest.raises(ConfigError, match="not a metric of the scenario"):
        require_composite("evaluation", {"success": 1}, metrics)
