"""What is missing from the means of players some of whose episodes were not played to their end, in words beside their rows.

Whom a budget stops has played its short episodes rather than its long ones, so that the mean of what is there is no mean of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from dtef_pipeline.games.episode_rows import OUT_OF_BUDGET, PLAYED_EPISODE
from dtef_pipeline.games.latest_play import PLAYED_SERIES
from dtef_pipeline.games.persona_results import ALL_OPPONENTS
from dtef_pipeline.text.shortfall import shortfall

if TYPE_CHECKING:
    import pandas as pd

UNPLAYED_NOTE = "unplayed_note"
UNPLAYED_READS = ("episodes",)
"""The tables that the note is made of."""


def with_unplayed(connection: duckdb.DuckDBPyConnection, results: pd.DataFrame) -> pd.DataFrame:
    """The rows of `persona_results` with `unplayed_note`: how many episodes of the row were played, and what ended the others.

    No words where all were played. `connection` has UNPLAYED_READS.
    """
    series = f"{PLAYED_SERIES}, snapshot"
    found = connection.sql(
        f"""
        SELECT {series}, coalesce(opponent, '{ALL_OPPONENTS}') AS opponent, count(*) AS n,
            count(*) FILTER (status = '{PLAYED_EPISODE}') AS played, count(*) FILTER (status = '{OUT_OF_BUDGET}') AS stopped
        FROM episodes GROUP BY GROUPING SETS (({series}, opponent), ({series})) HAVING played < n
        """
    ).df()
    words = [
        shortfall(n, played, stopped, n - played - stopped, ("episode", "played"))
        for n, played, stopped in found[["n", "played", "stopped"]].itertuples(index=False, name=None)
    ]
    told = found.assign(**{UNPLAYED_NOTE: words}).drop(columns=["n", "played", "stopped"])
    if not len(told):
        return all_played(results)
    beside = results.merge(told, on=[*series.split(", "), "opponent"], how="left")
    return beside.assign(**{UNPLAYED_NOTE: beside[UNPLAYED_NOTE].fillna("")})


def all_played(results: pd.DataFrame) -> pd.DataFrame:
    """The rows without a word on episodes that were not played."""
    return results.assign(**{UNPLAYED_NOTE: ""})
