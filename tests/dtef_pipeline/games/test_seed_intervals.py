"""Means by seeds: against a naive definition on lopsided data, by hand, and where there is no interval."""

from __future__ import annotations

import statistics

import numpy as np
import pyarrow as pa
import pytest

from dtef_pipeline.games.persona_results import (
    ALIKE_SEEDS,
    SHARED_REQUESTS,
    GroupMeans,
    SeedSums,
    compute_game_results,
    group_means_of,
)
from dtef_pipeline.games.tables import EPISODE_TURNS
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from tests.made.made_scores import connected_scores, scored_games

Episodes = dict[int, list[float]]
"""Totals of episodes by seed; each counts 1."""


def of_groups(*groups: Episodes, spread: bool = False, share: bool = False) -> GroupMeans:
    rows = [
        (place, sum(values), sum(one**2 for one in values), len(values), len(values))
        for place, group in enumerate(groups)
        for values in group.values()
    ]
    columns = [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]
    flags = [np.full(len(groups), flag) for flag in (spread, share)]
    return group_means_of(SeedSums(columns[0].astype(np.int64), *columns[1:]), *flags)


LOPSIDED: Episodes = {seed: [float((seed * 7 + draw) % 5 - 2) for draw in range(1 + seed % 4)] for seed in range(20)}


def test_means_count_every_episode_once() -> None:
    every = [one for values in LOPSIDED.values() for one in values]
    found = of_groups(LOPSIDED)
    assert found.mean[0] == pytest.approx(statistics.fmean(every))
    assert found.n_seeds[0] == 20
    assert found.low[0] < found.mean[0] < found.high[0]


def test_volatility_is_the_deviation_of_all_episodes() -> None:
    every = [one for values in LOPSIDED.values() for one in values]
    found = of_groups(LOPSIDED, spread=True)
    assert found.mean[0] == pytest.approx(statistics.pstdev(every))
    assert 0 <= found.low[0] < found.mean[0] < found.high[0]


def test_the_interval_is_that_of_whole_seeds() -> None:
    # Each seed twice is not twice as much: the interval stays, that of twice as many seeds is narrower.
    single = {seed: [float(seed % 7)] for seed in range(30)}
    twice = {seed: values * 2 for seed, values in single.items()}
    more = {**single, **{seed + 100: values for seed, values in single.items()}}
    widths = of_groups(single, twice, more)
    width = widths.high - widths.low
    assert width[1] == pytest.approx(width[0])
    assert width[2] < 0.8 * width[0]


def test_shares_with_one_episode_a_seed_have_wilsons_interval() -> None:
    found = of_groups({seed: [float(seed < 3)] for seed in range(10)}, share=True)
    low, high = compute_wilson_interval(3, 10)
    assert (found.low[0], found.high[0], found.kind[0]) == (pytest.approx(low), pytest.approx(high), "wilson")
    several = of_groups({seed: [float(seed < 3), 1.0] for seed in range(10)}, share=True)
    assert several.kind[0] == "t"
    assert several.high[0] <= 1


def test_without_seeds_that_differ_there_is_no_interval_and_the_reason_is_reported() -> None:
    few, alike = of_groups({1: [1.0], 2: [3.0]}), of_groups({seed: [2.0, -2.0] for seed in range(9)})
    assert np.isnan([few.low[0], few.high[0], alike.low[0], alike.high[0]]).all()
    assert few.reason[0] == "no interval: 2 seeds, at least 5 are needed"
    assert (alike.mean[0], alike.reason[0], alike.kind[0]) == (0, ALIKE_SEEDS, None)


def test_groups_do_not_touch_each_other() -> None:
    alone, together = of_groups(LOPSIDED), of_groups({seed: [9.0 + seed] for seed in range(6)}, LOPSIDED)
    assert together.low[1] == pytest.approx(alone.low[0])
    assert together.high[1] == pytest.approx(alone.high[0])


def test_many_seeds_have_the_interval_of_a_mean() -> None:
    found = of_groups({seed: [float(seed % 11)] for seed in range(2_500)})
    assert found.low[0] < 5 < found.high[0]
    assert found.high[0] - found.low[0] == pytest.approx(2 * 1.96 * np.sqrt(10 / 2_500), rel=0.01)


def test_seeds_that_share_requests_of_a_sampled_model_give_no_interval() -> None:
    rows = [
        row for name in ("sampled", "settled", "apart") for row in scored_games(name, "a", {seed: (seed,) for seed in range(6)})
    ]
    connection = connected_scores(rows)
    turns = [
        {**row, "request_key": key, "temperature": heat, "under_test": True, "call_status": "answered"}
        for row in rows
        for key, heat in [{"sampled": ("all", 1.0), "settled": ("each", 0.0), "apart": (row["cluster"], 1.0)}[row["model"]]]
    ]
    arrays = [pa.array([row.get(one.name) for row in turns], one.type) for one in EPISODE_TURNS]
    connection.register("episode_turns", pa.table(arrays, schema=EPISODE_TURNS))
    found = {row["model"]: row["reason"] for row in compute_game_results(connection).to_pylist() if row["opponent"] == "all"}
    assert found == {"sampled": SHARED_REQUESTS, "settled": None, "apart": None}
