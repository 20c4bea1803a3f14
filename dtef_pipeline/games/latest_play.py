"""Of each scenario, version and player the snapshot that counts: the latest that has played half as many episodes as the fullest one."""

from __future__ import annotations

import duckdb

from dtef_pipeline.asking.snapshot_order import order_in, place_sql
from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.players import BASELINE_PREFIX

PLAYED_SERIES = "league, scenario, version, persona, model_variant"
"""Columns that name a player in a version of a scenario."""
_ENOUGH_EPISODES = 0.5
"""Of the episodes that the fullest snapshot has played, the share that another one must have to be the latest."""
_LATEST_SCORES = "latest_scores"


def latest_scores(connection: duckdb.DuckDBPyConnection, snapshot: str | None = None) -> str:
    """Makes a temporary view of the rows of `episode_scores` of the snapshots that count, and gives its name.

    `snapshot`: the only one that counts; of baselines, which play alike in all, it is the latest where they have not played in this one.
    """
    place = place_sql(order_in(connection, "episode_scores"))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE latest_snapshots AS
        WITH played AS (
            SELECT {PLAYED_SERIES}, snapshot, snapshot::VARCHAR = $chosen AS is_chosen, count(*) FILTER (status = 'scored') AS n
            FROM episode_scores WHERE metric = '{EXPECTED_RETURN}'
                AND ($chosen IS NULL OR snapshot::VARCHAR = $chosen OR starts_with(model_variant, '{BASELINE_PREFIX}'))
            GROUP BY ALL
        ), beside AS (
            SELECT *, max(n) OVER (PARTITION BY {PLAYED_SERIES}) AS most FROM played
        )
        SELECT {PLAYED_SERIES}, snapshot FROM beside
        QUALIFY row_number() OVER (
            PARTITION BY {PLAYED_SERIES}
            ORDER BY coalesce(is_chosen, false) DESC, n > 0 DESC, n >= {_ENOUGH_EPISODES} * most DESC, {place} DESC NULLS LAST
        ) = 1
        """,
        {"chosen": snapshot},
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW {_LATEST_SCORES} AS
        SELECT * FROM episode_scores SEMI JOIN latest_snapshots USING ({PLAYED_SERIES}, snapshot)
        """
    )
    return _LATEST_SCORES
