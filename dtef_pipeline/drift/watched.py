"""What families have in common whose scores are watched over whole models alone, since a partition has too few items for a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.asking.snapshot_order import among, time_of
from dtef_pipeline.drift.models import ModelDrift, model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import drift_verdict
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


def documented_rule(
    connection: duckdb.DuckDBPyConnection, cells: str, series: Sequence[str], levels: Sequence[str], order: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The documented rule on every series that is asked at temperature 0: what names it, and the verdict.

    `cells`: a query with a row per series, `item` and `snapshot`: the mean `score`, the highest `temperature`, and whether it `is_set` in
    every row. `connection` has the table `scores` of the family's own; `levels`: its columns that name a partition, the first of `series`.
    """
    times = first_times(connection, "scores", levels)
    for keys, own in connection.execute(cells).df().groupby(list(series), sort=True):
        if not own["is_set"].all() or (own["temperature"] != 0).any():
            continue
        named = dict(zip(series, keys, strict=True))
        grid = own.pivot_table(values="score", index="item", columns="snapshot", dropna=False)
        labels = among(order, map(str, grid.columns))
        when = {label: times.get((*(str(named[level]) for level in levels), label)) for label in labels}
        yield {**named, **asdict(drift_verdict(grid[labels], when, temperature=0.0))}
