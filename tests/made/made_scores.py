"""Rows of `episode_scores` of games whose rewards are written here, as results are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS
from tests.made.usual_rows import make_usual_row

CHIPS_WON = {
    name: value
    for name, value in make_usual_row("episode_scores").items()
    if name in ("metric", "metric_family", "unit", "direction", "unit_scale")
}


def scored_games(
    player: str, opponent: str, rewards: Mapping[int, Sequence[float]], metric: Mapping[str, Any] = CHIPS_WON
) -> Iterator[dict[str, Any]]:
    """A row per episode. `rewards`: by seed, those of both seats, and after them those of more draws."""
    for seed, found in rewards.items():
        for at, reward in enumerate(found):
            item = f"{seed}/{at % 2}/{opponent}"
            named = {"model": player, "model_variant": player, "episode_id": f"{player} {item} {at}", "item_id": item}
            placed = {"draw": at // 2, "opponent": opponent, "cluster": str(seed)}
            yield make_usual_row("episode_scores", **named, **placed, **metric, numerator=reward, value=reward)


def connected_scores(rows: Sequence[Mapping[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A connection with these rows of `episode_scores`, and no texts."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("episode_scores", pa.Table.from_pylist(list(rows), schema=EPISODE_SCORES))
    connection.register("episode_turns", EPISODE_TURNS.empty_table())
    return connection
