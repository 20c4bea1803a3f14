"""What the documented rule says of single partitions: the table `drift_rule`, of any family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.asking.snapshot_order import among, order_in, time_of
from dtef_pipeline.drift.rule import drift_verdict
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.keys import MODEL


def rule_table(connection: duckdb.DuckDBPyConnection, subject: Subject) -> pa.Table:
    """DRIFT_RULE of a family. `connection`: with the tables of `subject.reads`, or of `subject.ruled`."""
    found = subject.rule(connection) if subject.rule else ruled_scores(connection, subject)
    rows = [{**row, "family": subject.family, "investigate": False} for row in found]
    worst: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["flagged"]:
            test = row["partition"], row["test"]
            worst[test] = max(worst.get(test, row), row, key=lambda one: float(one["gap"]))
    for row in worst.values():
        row["investigate"] = True
    return pa.Table.from_pylist(rows, DRIFT_RULE)


def ruled_scores(connection: duckdb.DuckDBPyConnection, subject: Subject) -> Iterator[dict[str, Any]]:
    """The documented rule on every series of a partition that is asked at temperature 0. Draws are averaged."""
    connection.execute("SET threads = 1")
    for statement in subject.statements:
        connection.execute(statement)
    space, series = subject.keys.space, (*subject.keys.space, "test", *MODEL, *subject.keys.asked)
    times, order = first_times(connection, "scores", space), order_in(connection, "scores")
    means = connection.execute(
        f"""SELECT {", ".join(series)}, concat_ws(chr(31), {subject.keys.item}, coalesce(prompt_id, ''), coalesce(truth_id, '')) AS of_item,
            snapshot, avg(score) AS score, max(temperature) AS temperature, count(temperature) = count(*) AS is_set
        FROM scores GROUP BY ALL ORDER BY ALL"""
    ).df()
    for values, rows in means.groupby(list(series), sort=True):
        if not rows["is_set"].all() or (rows["temperature"] != 0).any():
            continue
        named = dict(zip(series, values, strict=True))
        grid = rows.pivot_table(values="score", index="of_item", columns="snapshot", dropna=False)
        labels = among(order, map(str, grid.columns))
        at = tuple(str(named[level]) for level in space)
        when = {label: times.get((*at, label)) for label in labels}
        verdict = drift_verdict(grid[labels], when, temperature=0.0)
        yield {"partition": "/".join(at), "test": named["test"], **subject.named(named), **asdict(verdict)}


def first_times(
    connection: duckdb.DuckDBPyConnection, table: str, levels: Sequence[str]
) -> dict[tuple[str, ...], datetime | None]:
    """When each partition was asked in each snapshot, by (value of each level, label): the label's date, else the first `answered_at`."""
    named = ", ".join(f"{name}::VARCHAR" for name in (*levels, "snapshot"))
    rows = connection.execute(f"SELECT {named}, epoch_us(min(answered_at)) FROM {table} GROUP BY ALL").fetchall()
    return {tuple(key): snapshot_time(key[-1], time_of(us)) for *key, us in rows}
