"""Drift of models that play the same items night by night, and baselines that may not move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.games.play_drift import GAMES_WATCHED, find_moved_baselines
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS

NIGHTS, SEEDS = 12, 16
WIN = {"metric": "success_rate", "metric_family": "efficacy", "unit": "share", "direction": "higher", "unit_scale": True}
CHIPS = {
    "metric": "expected_return",
    "metric_family": "expected value",
    "unit": "chips",
    "direction": "higher",
    "unit_scale": False,
}
TURNS = {"metric": "turns", "metric_family": "form", "unit": "turns", "direction": "none", "unit_scale": False}
ILLEGAL = {"metric": "illegal_rate", "metric_family": "form", "unit": "per turn", "direction": "lower", "unit_scale": False}


def night(at: int) -> dict[str, Any]:
    time = datetime(2026, 1, 1, 4, tzinfo=UTC) + timedelta(days=at)
    return {"snapshot": time.date().isoformat(), "answered_at": time}


def episode(model: str, seed: int, seat: int, at: int, **told: Any) -> dict[str, Any]:
    """The columns that name an episode."""
    scenario = told.get("scenario", "kuhn")
    named = {"persona": "calm:v2", "opponent": "baseline/random", "version": 1, "truth_id": "rules", "league": "poker", **told}
    return {
        "scenario": scenario,
        "episode_id": f"{scenario} {model} {seed} {seat} {at}",
        "item_id": f"{seed}/{seat}/{named['opponent']}",
        "model": model,
        "model_variant": model if model.startswith("baseline/") else f"{model}[temperature=0]",
        "temperature": None if model.startswith("baseline/") else 0.0,
        "draw": 0,
        "cluster": str(seed),
        **night(at),
        **named,
    }


def scores_of(of: Mapping[str, Any], won: float | None, illegal: float = 0.0) -> Iterator[dict[str, Any]]:
    """The rows of one episode; `won` None: it was not played."""
    played = won is not None
    measured = ((WIN, won), (CHIPS, None if won is None else 4 * won - 2), (TURNS, 2.0), (ILLEGAL, illegal))
    for metric, value in measured:
        told = value if played else None
        yield {
            **of,
            **metric,
            "numerator": told,
            "denominator": 1.0 if played else None,
            "value": told,
            "status": "scored" if played else "unscored",
        }


def history(lost: float, since: int = 6, *, illegal: bool = False, **changed: Any) -> list[dict[str, Any]]:
    """Two models. From night `since` on `moved` wins `lost` less often, by an illegal text if `illegal`."""
    rng = np.random.default_rng(3)
    usual = rng.random((SEEDS, 2)) < 0.8
    rows: list[dict[str, Any]] = []
    for at in range(NIGHTS):
        for model in ("moved", "steady"):
            worse = lost if model == "moved" and at >= since else 0.0
            told = changed if at >= since else {}
            for seed in range(SEEDS):
                for seat in range(2):
                    was, falls = usual[seed, seat] != (rng.random() < 0.03), rng.random() < worse
                    of = episode(model, seed, seat, at, **told)
                    rows += scores_of(of, float(was and not falls), float(illegal and falls))
    return rows


def connected(scores: Iterable[Mapping[str, Any]], turns: Iterable[Mapping[str, Any]] = ()) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("episode_scores", pa.Table.from_pylist(list(scores), EPISODE_SCORES))
    connection.register("episode_turns", pa.Table.from_pylist(list(turns), EPISODE_TURNS))
    return connection


def verdicts(scores: Iterable[Mapping[str, Any]], turns: Iterable[Mapping[str, Any]] = ()) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in compute_model_drift(connected(scores, turns), GAMES_WATCHED).checks.to_pylist()}


def test_a_player_that_gets_worse_drifts_and_the_other_one_does_not() -> None:
    rows = history(0.6)
    found = verdicts(rows)
    moved = found["moved"]
    assert (moved["verdict"], moved["shift"] < 0, moved["first_snapshot"]) == ("drift", True, night(6)["snapshot"])
    assert moved["setting"] == "persona calm:v2 against baseline/random, success_rate"
    assert moved["n_prompts"] == 2 * SEEDS
    assert moved["top_changes"][0]["item"].startswith("poker/kuhn/")
    assert found["steady"]["verdict"] != "drift"
    ruled = {row["model"]: row for row in build_rule_table(connected(rows), GAMES_WATCHED).to_pylist()}
    assert (ruled["moved"]["flagged"], ruled["moved"]["partition"], ruled["moved"]["test"]) == (True, "poker/kuhn", "1")


def test_chips_have_no_bounds_and_are_not_watched() -> None:
    chips = [row for row in history(0.6) if row["metric"] != "success_rate"]
    assert len(compute_model_drift(connected(chips), GAMES_WATCHED).checks) == 0
    assert len(build_rule_table(connected(chips), GAMES_WATCHED)) == 0


def test_a_drift_of_form_is_reported_from_one_of_play() -> None:
    """A model that writes more illegal texts, and wins as often as before where it writes none."""
    assert verdicts(history(0.6, illegal=True))["moved"]["shift_notes"][0].startswith("a drift of the parse rate")


@pytest.mark.parametrize("changed", [{"truth_id": "other rules", "version": 2}, {"persona": "calm:v3"}])
def test_other_rules_or_another_persona_is_no_drift(changed: dict[str, Any]) -> None:
    found = compute_model_drift(connected(history(0.6, **changed)), GAMES_WATCHED).checks.to_pylist()
    assert "drift" not in {row["verdict"] for row in found}


def test_another_first_prompt_is_another_item_and_what_served_the_model_is_reported() -> None:
    rows = history(0.6)
    first = [row for row in rows if row["metric"] == "success_rate"]

    def turns(prompt: str) -> list[dict[str, Any]]:
        shared = ("league", "scenario", "version", "episode_id", "item_id", "persona", "model", "model_variant", "snapshot")
        late = [row["snapshot"] >= night(6)["snapshot"] for row in first]
        return [
            {
                **{name: row[name] for name in shared},
                "seat": 0,
                "under_test": True,
                "turn": turn,
                "attempt": 0,
                "prompt_id": f"{turn} {prompt if is_late else 'p'}",
                "served_model": "new" if is_late else "old",
            }
            for row, is_late in zip(first, late, strict=True)
            for turn in (0, 1)
        ]

    same = verdicts(rows, turns("p"))["moved"]
    assert same["verdict"] == "drift"
    assert ("served_model", "old", "new") in {(one["kind"], one["before"], one["after"]) for one in same["changes"]}
    assert verdicts(rows, turns("q"))["moved"]["verdict"] != "drift"


def test_an_episode_that_was_not_played_lowers_no_score() -> None:
    """An unplayed episode is a missing answer, and no loss."""
    lacking = [row for at in range(3) for seed in range(SEEDS) for row in scores_of(episode("m", seed, 0, at), 1.0)]
    lacking += [row for seed in range(SEEDS) for row in scores_of(episode("m", seed, 0, 3), None if seed % 3 == 0 else 1.0)]
    (found,) = compute_model_drift(connected(lacking), GAMES_WATCHED).checks.to_pylist()
    assert (found["verdict"], found["n_snapshots"], found["gap"]) == ("none", 4, pytest.approx(0.0))


def test_of_a_scenario_that_nobody_wins_the_first_metric_on_0_1_is_watched() -> None:
    """Among those of one family by name; one that is lower the better counts as 1 less it; one that is part of a composite is watched too."""
    share = {**WIN, "metric": "utility_share", "metric_family": "expected value"}
    fair = {**WIN, "metric": "agreement_rate", "metric_family": "social"}
    envy = {**WIN, "metric": "envious", "metric_family": "social", "direction": "lower", "weight": 0.5}
    rows = []
    for at in range(2):
        for row in scores_of(episode("m", 1, 0, at, league="negotiation", scenario="allocation"), 0.25):
            rows += [{**row, **metric} for metric in (share, fair, envy)] if row["metric"] == "success_rate" else [row]
    found = {row["setting"].split(", ")[1]: row for row in build_rule_table(connected(rows), GAMES_WATCHED).to_pylist()}
    assert set(found) == {"utility_share", "envious"}
    assert found["envious"]["lowest"] == pytest.approx(0.75)


def test_a_baseline_that_moved_is_named_once_per_metric_and_item() -> None:
    def of_baselines(second: float, **changed: Any) -> list[dict[str, Any]]:
        steady = [row for at in range(2) for row in scores_of(episode("baseline/nash", 7, 0, at), 1.0)]
        ends = (
            scores_of(episode("baseline/nash", 8, 0, at, **(changed if at else {})), won) for at, won in ((0, 1.0), (1, second))
        )
        return [*steady, *(row for rows in ends for row in rows)]

    said = list(find_moved_baselines(connected(of_baselines(0.0))))
    assert said == [
        "poker/kuhn baseline/nash, expected_return of 8/0/baseline/random: -2 in one snapshot, 2 in another",
        "poker/kuhn baseline/nash, success_rate of 8/0/baseline/random: 0 in one snapshot, 1 in another",
    ]
    assert not list(find_moved_baselines(connected(of_baselines(1.0))))
    assert not list(find_moved_baselines(connected(of_baselines(0.0, version=2)))), "the version says that the game changed"
    assert not list(find_moved_baselines(connected(of_baselines(0.0, opponent="gpt")))), (
        "against a model it need not play alike"
    )
