"""Drift on the pages of the games family: whether players play the same games as well as they did."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from dtef_pipeline.games.watched_play import GAMES_WATCHED
from dtef_pipeline.report.drift_chapter import WatchedSeries, drift_chapter, flagged_partitions, not_compared
from dtef_pipeline.report.markup import Column, long_text, text, whole
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows

GAMES_DRIFT_SHOWN = ("drift", "drift_series", "drift_rule")
"""The tables that the chapter is made of."""
_WATCHED_PLAY = WatchedSeries(
    subject=GAMES_WATCHED,
    how="Whether a player plays the same games as well as it did in earlier snapshots.",
    made_by="`dtef rollup --family games` compares the snapshots of `dtef games run`",
    run="dtef games run",
)
_UNCOMPARED_PLAY = (
    Column("model", "Model", text),
    Column("way", "Played as", text),
    Column("n_snapshots", "Snapshots", whole),
    Column("reason", "Why not", long_text),
)


def games_drift_chapter(rows: StoredRows) -> Chapter:
    """The chapter: verdicts on players with timelines, then the scenarios that the documented rule flags; without tables what makes them."""

    def beneath(_: pa.Table, left: pd.DataFrame) -> str:
        flagged = flagged_partitions(rows, GAMES_WATCHED, "scenarios", lambda found: found)
        return flagged + not_compared(left, _UNCOMPARED_PLAY, left[["model", "model_variant", "way", "reason"]])

    return drift_chapter(rows, _WATCHED_PLAY, beneath)
