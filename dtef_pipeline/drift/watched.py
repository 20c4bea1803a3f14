"""What families have in common whose scores are watched over whole models alone, since a partition has too few items for a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.asking.snapshot_order import time_of
from dtef_pipeline.drift.models import ModelDrift, model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.keys import Keys


def of_whole_models(
    keys: Keys, models: pa.Schema, timeline: pa.Schema, *, truth: str, truths: str, way: str, unlike: str
) -> Subject:
    """A subject whose rows are all asked of models, and whose items are each by itself: the same ones are asked again, and what a night adds to
    the score of one says nothing of another. The arguments are those fields of `Subject`."""

    def each_by_itself(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        return pd.DataFrame(columns=[*keys.shared_item, "cluster"], dtype="str")

    return Subject(
        keys=keys,
        checks=models,
        models=models,
        timeline=timeline,
        computed="false",
        in_order=str.casefold,
        truth=truth,
        truths=truths,
        clusters=each_by_itself,
        way=way,
        unlike=unlike,
        joint=", ",
    )


def watched_models(
    connection: duckdb.DuckDBPyConnection, subject: Subject, statements: Sequence[str], options: WatchOptions | None = None
) -> ModelDrift:
    """The verdicts on whole models, and their timeline. `statements`: what makes the tables `scores` and `predictions` of the family's own."""
    for statement in statements:
        connection.execute(statement)
    return model_drift(connection, subject, options)


def first_times(
    connection: duckdb.DuckDBPyConnection, table: str, levels: Sequence[str]
) -> dict[tuple[str, ...], datetime | None]:
    """When each partition was asked in each snapshot, by (value of each level, label): the label's date, else the first `answered_at`."""
    named = ", ".join(f"{name}::VARCHAR" for name in (*levels, "snapshot"))
    rows = connection.execute(f"SELECT {named}, epoch_us(min(answered_at)) FROM {table} GROUP BY ALL").fetchall()
    return {tuple(key): snapshot_time(key[-1], time_of(us)) for *key, us in rows}
