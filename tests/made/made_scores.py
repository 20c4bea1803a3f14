"""Rows of `episode_scores` of games whose rewards are written here, as results are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS

CHIPS_WON = {
    "metric": "expected_return",
    "metric_family": "expected value",
    "unit": "chips",
    "direction": "higher",
    "unit_scale": False,
}


def scored_games(
    player: str, opponent: str, rewards: Mapping[int, Sequence[float]], metric: Mapping[str, Any] = CHIPS_WON
) -> Iterator[dict[str, Any]]:
    """A row per episode. `rewards`: by seed, those of both seats, and after them those of more draws."""
    for seed, found in rewards.items():
        for at, reward in enumerate(found):
            item = f"{seed}/{at % 2}/{opponent}"
            yield {
                "league": "poker",
                "scenario": "made",
                "version": 1,
                "persona": "",
                "model": player,
                "model_variant": player,
                "episode_id": f"{player} {item} {at}",
                "item_id": item,
                "draw": at // 2,
                "snapshot": "base",
                "opponent": opponent,
                "cluster": str(seed),
                **metric,
                "numerator": reward,
                "denominator": 1.0,
                "value": reward,
                "status": "scored",
                "truth_id": "rules",
            }


def connected_scores(rows: Sequence[Mapping[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A connection with these rows of `episode_scores`, and no texts."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("episode_scores", pa.Table.from_pylist(list(rows), schema=EPISODE_SCORES))
    connection.register("episode_turns", EPISODE_TURNS.empty_table())
    return connection
