"""The scores behind boards of items: the responses of one snapshot per partition."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import build_place_sql

_ENOUGH_SCORED = 0.5
"""Of the rows that the fullest snapshot of a partition has a score for, the share that another one must have to be the latest: a night of a
few items, or a run that was stopped, hides no whole one."""


def build_latest_sql(counts: str, series: str, order: Sequence[str], first: str = "") -> str:
    """Return the SQL of one `snapshot` of each series: the latest that scores at least half as many rows as the fullest one, or the latest of
    all if none has a score.

    `counts`: SQL with the columns of `series`, `snapshot` and `n`, the number of scored rows; `order`: all snapshots, earliest first;
    `first`: SQL to sort by before all this.
    """
    sorted_by = [
        *filter(None, [first]),
        "n > 0 DESC",
        f"n >= {_ENOUGH_SCORED} * most DESC",
        f"{build_place_sql(order)} DESC NULLS LAST",
    ]
    return f"""
        WITH counted AS ({counts}), beside AS (SELECT *, max(n) OVER (PARTITION BY {series}) AS most FROM counted)
        SELECT {series}, snapshot FROM beside
        QUALIFY row_number() OVER (PARTITION BY {series} ORDER BY {", ".join(sorted_by)}) = 1
        """


def select_latest_rows(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, series: Sequence[str], order: Sequence[str]
) -> pa.Table:
    """Return, for each combination of `series` (such as partition, metric and model variant), the rows of one snapshot, sorted by `series`.

    The snapshot is that of `build_latest_sql`, by scored items. `rows`: with `item_id`, `draw`, `score`, `snapshot` and the columns of
    `series`; `order`: all snapshots, earliest first.
    """
    named = ", ".join(series)
    connection.register("rows_of_boards", rows)
    counts = (
        f"SELECT {named}, snapshot, count(DISTINCT item_id) FILTER (score IS NOT NULL) AS n FROM rows_of_boards GROUP BY ALL"
    )
    latest = connection.sql(
        f"""
        SELECT rows_of_boards.* FROM rows_of_boards
        SEMI JOIN ({build_latest_sql(counts, named, order)}) AS latest USING ({named}, snapshot) ORDER BY {named}, item_id, draw
        """
    ).to_arrow_table()
    connection.unregister("rows_of_boards")
    return latest


def encode_columns(rows: pa.Table, names: Collection[str]) -> pa.Table:
    """Dictionary-encode the texts of these columns, so that repeated values are grouped several times faster."""
    for name in {*names} & {*rows.column_names}:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(name).cast(pa.string()).combine_chunks().dictionary_encode())
    return rows
