"""Drift of models within single partitions: the verdicts of `models`, a series per partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.models import compute_model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import PARTITION_DRIFT
from dtef_pipeline.keys import Keys

_MEASURED = ("snapshot", "temperature", "score", "status", "answered_at")


def list_needed_columns(keys: Keys) -> tuple[str, ...]:
    """The columns of `scores` that `drift_checks` reads."""
    left_out = () if keys.left_out is None else (keys.left_out,)
    return tuple(dict.fromkeys((*keys.series, *keys.tested_columns, *_MEASURED, *left_out)))


def drift_checks(
    scores: pa.Table,
    subject: Subject,
    *,
    levels: int = 2,
    options: WatchOptions | None = None,
    n_watched: int = 1,
    order: Sequence[str] | None = None,
    clusters: pd.DataFrame | None = None,
) -> pa.Table:
    """Verdicts with the levels of the space and the columns PARTITION_DRIFT, one row per model variant and way of asking.

    `scores`: has the columns `list_needed_columns`. `levels`: the levels of the space that separate series: 2, one series per partition; 1, one
    over all partitions of a first level, with null in the column of the second. `clusters`: as of `Subject.clusters`; None: each item is its own
    cluster. `n_watched`: how many tables like this one are watched together; all their series share `options.alpha` evenly. `order`: the order
    of all snapshots (`snapshot_order`); None: derived from `scores`.
    """
    keys = replace(subject.keys, asked=(*subject.keys.asked, *subject.keys.space[:levels]))
    narrow = replace(
        subject, keys=keys, statements=(), with_texts=None, clusters=None if clusters is None else lambda _: clusters
    )
    with _open_database().cursor() as connection:
        connection.register("scores", scores)
        drift = compute_model_drift(connection, narrow, options, n_watched=n_watched, order=order)
        connection.unregister("scores")
    schema = pa.schema([*((level, pa.string()) for level in keys.space), *PARTITION_DRIFT])
    # Of a series none of whose snapshots counts there is nothing to say here.
    return pa.Table.from_pylist([row for row in drift.rows if row["latest_snapshot"]], schema)


@cache
def _open_database() -> duckdb.DuckDBPyConnection:
    """One for all partitions: to open it takes longer than the query."""
    return duckdb.connect()
