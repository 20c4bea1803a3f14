"""Boards of models by mean score over items, with ranks, ranges of ranks, items and snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import build_place_sql
from dtef_pipeline.boards.item_means import codes, compute_result_means
from dtef_pipeline.boards.pairs import BETTER, OTHER, compare_grid, iterate_board_grids
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, Codes
from dtef_pipeline.statistics.ranks import rank_bounds, rank_numbers
from dtef_pipeline.text.number_words import format_count

RANKED_FROM = 0.9
"""Share of a board's items that a model must have a score for to be ranked: the others may be the hard ones."""
_RANGES = ("rank_low", "rank_high")
_MACRO = ("macro_score", "macro_low", "macro_high")


def rank_item_board(scores: pa.Table, names: Sequence[str], order: Sequence[str]) -> pd.DataFrame:
    """Return the boards that the columns `names` identify, best model first.

    One row per board and model variant: MEAN_COLUMNS without the means over clusters, `coverage` (see `add_coverage`), and the columns of
    `rank_boards`. `scores`: from `select_latest_rows`, with `cluster`, `status`, `value`, `metric`, `part` (the partition) and the
    columns of `names` and MODEL; `order`: all snapshots, earliest first.
    """
    board = build_means_frame(scores, [*names, *MODEL])
    n_expected = add_coverage(board, scores, names)
    rows = zip(board["note"], board["n_items"], has_enough(board), n_expected.tolist(), strict=True)
    board["note"] = [
        "; ".join(filter(None, (note, "" if is_ranked or not n_items else explain_unranked(n_items, total))))
        for note, n_items, is_ranked, total in rows
    ]
    return rank_boards(board, scores, names, order)


def add_coverage(board: pd.DataFrame, scores: pa.Table, names: Sequence[str], left_out: Codes | int = 0) -> Codes:
    """Return (rows,) the number of items that each row of `build_means_frame` should have a score for; set `coverage`, the share it has.

    `left_out` (rows,): items of its board that do not apply to a row.
    """
    group = codes(pa.Table.from_pandas(board[list(names)], preserve_index=False), names)[0]
    board_of_row, first = codes(scores, names)
    _, first_of_item = codes(scores, [*names, "item_id"])
    n_expected = np.bincount(board_of_row[first_of_item], minlength=len(first)).astype(np.int64)[group] - left_out
    board["coverage"] = board["n_items"] / np.where(n_expected, n_expected, np.nan)
    return n_expected


def has_enough(board: pd.DataFrame) -> pd.Series[bool]:
    """Return (rows,) whether a row of a board is ranked."""
    return (board["coverage"] >= RANKED_FROM) & board["score"].notna()


def rank_boards(board: pd.DataFrame, scores: pa.Table, names: Sequence[str], order: Sequence[str]) -> pd.DataFrame:
    """Sort the rows by board and rank, and add `rank`, `rank_low`, `rank_high`, `n_parts`, `snapshots` and `snapshot`, the last.

    `board`: rows from `build_means_frame` of the same scores, in its order, with a `coverage`. Models are ranked by `score`, the mean over
    items, from a coverage of RANKED_FROM. The range of ranks follows the verdicts of `compare_grid` among the ranked.
    """
    keys = [*names, *MODEL]
    enough, row = has_enough(board), codes(scores, keys)[0]
    group = codes(pa.Table.from_pandas(board[list(names)], preserve_index=False), names)[0]
    board["rank"] = pd.Series(rank_numbers(board["score"].where(enough), group)).astype("Int64")
    scored_rows = np.flatnonzero(pc.is_valid(scores["score"]).to_numpy())
    _, first = codes(scores.take(pa.array(scored_rows)), [*keys, "part"])
    board["n_parts"] = np.bincount(row[scored_rows[first]], minlength=len(board))
    labels = _list_snapshots_of_rows(scores, row, len(board), order)
    board["snapshots"] = pd.Series(labels, board.index, dtype=object)
    board["snapshot"] = pd.Series([snapshots[-1] for snapshots in labels], board.index, dtype=object)
    board = board.merge(_compute_rank_ranges(scores, board[enough], names), "left", keys, validate="one_to_one")
    columns = [*names, "rank", "score", *MODEL]
    return board.sort_values(columns, ascending=[name != "score" for name in columns], ignore_index=True)


def explain_unranked(items: int, total: int, details: str = "") -> str:
    """Explain why a model with scores for `items` items is not ranked. `details`: text about other items."""
    return f"not ranked: it has scores for {items:,} of {format_count(total, 'item')}{details}, at least 9 of 10 are needed"


def build_means_frame(scores: pa.Table, names: Sequence[str], *, macro: bool = False) -> pd.DataFrame:
    """Return `compute_result_means` with names as text; means over clusters and their notes only with `macro`."""
    rows = compute_result_means(scores, names, macro_noted=macro)
    frame = rows.to_pandas().astype(dict.fromkeys(names, "str"))
    return pd.DataFrame(frame.drop(columns=[] if macro else list(_MACRO)).assign(note=frame["note"].fillna("")))


def _list_snapshots_of_rows(scores: pa.Table, row: Codes, size: int, order: Sequence[str]) -> list[list[str]]:
    _, first = codes(scores.append_column("row", pa.array(row)), ["row", "snapshot"])
    labels = scores["snapshot"].take(pa.array(first)).to_pylist()
    place = {label: index for index, label in enumerate(order)}
    snapshots: list[list[str]] = [[] for _ in range(size)]
    for i, label in sorted(zip(row[first].tolist(), labels, strict=True), key=lambda pair: (place.get(pair[1], -1), pair[1])):
        snapshots[i].append(label)
    return snapshots


def _compute_rank_ranges(scores: pa.Table, ranked: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return `rank_low` and `rank_high` of each ranked row with enough clusters, with its identifying columns."""
    parts = [pd.DataFrame(columns=[*names, *MODEL, *_RANGES]).astype(dict.fromkeys(_RANGES, "float64"))]
    board_rows = dict(iter(ranked.groupby(list(names), sort=False))) if len(ranked) else {}
    for grid in iterate_board_grids(scores, names):
        rows = board_rows.get(tuple(grid.keys[name] for name in names))
        if rows is None:
            continue
        mask = pd.MultiIndex.from_frame(grid.rows).isin(pd.MultiIndex.from_frame(rows[list(MODEL)]))
        subgrid = grid._replace(rows=grid.rows[mask].reset_index(drop=True), means=grid.means[:, mask])
        pairs = compare_grid(subgrid)
        wins = pairs[pairs["verdict"] == BETTER] if len(pairs) else pd.DataFrame(columns=[*MODEL, *OTHER])
        place = pd.MultiIndex.from_frame(subgrid.rows)
        better, worse = (place.get_indexer(pd.MultiIndex.from_frame(wins[list(side)])) for side in (MODEL, OTHER))
        bounds = rank_bounds(better, worse, len(subgrid.rows))
        enough = subgrid.n_units() >= MIN_CLUSTERS
        parts.append(subgrid.rows.assign(**grid.keys, rank_low=bounds.low, rank_high=bounds.high)[enough])
    ranges = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    return ranges.astype({"rank_low": "Int64", "rank_high": "Int64"})


_ENOUGH_SCORED = 0.5
"""Share of the scored rows of a partition's fullest snapshot that a later one needs to count as the latest, so that a snapshot of a few
items, or a stopped run, hides no complete one."""


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


def list_mixed_served(connection: duckdb.DuckDBPyConnection, table: str, snapshot: str | None = None) -> Iterator[str]:
    """Yield a line for each model and snapshot whose responses in `table` come from several served models, with the count of each.

    `snapshot`: only this one; None for all.
    """
    columns = [column[0] for column in connection.sql(f"SELECT * FROM {table} LIMIT 0").description]
    number = "count(DISTINCT request_key)" if "request_key" in columns else "count(*)"
    rows = connection.execute(
        f"""
        SELECT any_value(model), snapshot, list(served_model ORDER BY number DESC, served_model),
            list(number ORDER BY number DESC, served_model)
        FROM (
            SELECT max(model) AS model, model_variant, snapshot::VARCHAR AS snapshot, served_model, {number} AS number
            FROM {table} WHERE served_model IS NOT NULL AND ($1 IS NULL OR snapshot::VARCHAR = $1) GROUP BY ALL
        ) GROUP BY model_variant, snapshot HAVING count(*) > 1 ORDER BY 1, 2
        """,
        [snapshot],
    ).fetchall()
    for model, label, names, numbers in rows:
        shares = " and ".join(f"{name} ({format_count(n, 'response')})" for name, n in zip(names, numbers, strict=True))
        yield f"{model} in snapshot {label} was served by {len(names)} models, whose responses are mixed here: {shares}"
