"""The cells that all statistics are computed from, as columns.

A **pair** is one item of one partition. A **cell** is a pair in one setting, with its draws averaged; a row is the cell of one model
variant. An item of fifty partitions is one item (`same_item`). A **cluster** is the unit of independence: items that the family links, in
all partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import build_place_sql, snapshot_order
from dtef_pipeline.boards.board_subject import BoardSubject
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.tables import ANSWERED, STATUSES

TARGETS, CELLS = ("clean", "all"), ("own", "shared")
COUNT_COLUMNS = ("n_total", "n_ok", "n_answered", *(f"n_{status}" for status in STATUSES if status != "ok"))
"""Counts of draws: all, parsed, answered, and by status."""
_LACKING = re.compile(r'(?:[Cc]olumn (?:named )?|[Tt]able )"(\w+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOptions:
    """The scores that a board covers. Raises ConfigError with the option, its value and the allowed values.

    `subject`: whose scores. `targets`: `clean` leaves out what the keys leave out, `all` includes it. `cells`: `own` takes each model's own
    cells, `shared` only cells for which every model of the board has a score. `intervals`: whether boards have them; `seed`: of the samples
    of answers behind them. A family's options define `selected_values`.
    """

    subject: BoardSubject
    metric: str
    targets: str = "clean"
    cells: str = "own"
    snapshot: str | None = None
    intervals: bool = True
    seed: int = SEED

    def __post_init__(self) -> None:
        for name, choices in (("metric", self.subject.metrics), ("targets", TARGETS), ("cells", CELLS)):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} {getattr(self, name)!r}: allowed: {', '.join(choices)}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError(f"seed {self.seed!r}: allowed: a whole number of 0 or more")

    @property
    def people(self) -> list[str]:
        """The key columns that identify whose answers a cell is scored against: cells with equal values share people."""
        return [self.subject.keys.space[0]]

    @property
    def item_of_people(self) -> list[str]:
        """The key columns of an item as answered by the same people."""
        return list(dict.fromkeys([*self.subject.keys.shared_item, *self.people]))

    @property
    def selected_values(self) -> Mapping[str, Sequence[object]]:
        """The values of key columns that count, by column; empty for all."""
        return {}

    @property
    def extra_condition(self) -> str | None:
        """A further SQL condition for rows of `scores`, or None."""
        return None


def policy_sql(options: BoardOptions, metric: str | None = None) -> str:
    """Return the published policy under a metric (default: the board's) as an SQL expression over `scores` columns."""
    metric = metric or options.metric
    similarity = f"1 - {metric}" if metric in options.subject.distances else metric
    credits = options.subject.credits.items()
    fixed = " ".join(f"WHEN '{status}' THEN {score}" for status, score in credits if score is not None)
    return f"CASE status WHEN 'ok' THEN {similarity} {fixed} END"


def _cells_where_sql(options: BoardOptions) -> str:
    left_out = options.subject.keys.left_out
    conditions = [
        *(f"list_contains(${name}, {name})" for name, values in options.selected_values.items() if values),
        "snapshot = $snapshot" if options.snapshot is not None else None,
        options.extra_condition,
        f"NOT {left_out}" if left_out and options.targets == "clean" else None,
    ]
    return " AND ".join(condition for condition in conditions if condition) or "true"


def parameters(options: BoardOptions) -> dict[str, object]:
    """Return the parameters for queries of `cells_sql`."""
    named: dict[str, object] = {name: list(values) for name, values in options.selected_values.items() if values}
    return named if options.snapshot is None else {**named, "snapshot": options.snapshot}


def cells_sql(connection: duckdb.DuckDBPyConnection, options: BoardOptions, expressions: Sequence[str] = ()) -> str:
    """Return common table expressions ending in `cells`: one row per cell and model variant, of the latest snapshot with a score.

    `connection`: will execute them; its snapshot order is read. `expressions`: further aggregates of a row's draws.
    """
    keys = options.subject.keys
    cell, model, conditions = ", ".join(keys.cell), ", ".join(MODEL), ", ".join(keys.asked)
    statuses = ", ".join(f"'{status}'" for status in ANSWERED)
    condition = " AND ".join(f"v.{name} = own.{name}" for name in keys.asked)
    shared = f"""
    , variants AS (SELECT {conditions}, count(DISTINCT ({model})) AS models FROM own WHERE score IS NOT NULL GROUP BY ALL)
    , shared AS (
        SELECT {cell} FROM own WHERE score IS NOT NULL GROUP BY {cell}
        HAVING count(*) = (SELECT models FROM variants v WHERE {condition})
    )
    , cells AS (SELECT own.* FROM own SEMI JOIN shared USING ({cell}))"""
    descriptions = "".join(f"any_value({name}) AS {name}, " for name in keys.described)
    corrected = "".join(f"avg({name}) AS {name}, " for name in options.subject.corrected)
    score, place = policy_sql(options), _snapshot_place_sql(connection, options)
    return f"""
    WITH own AS (
        SELECT {cell}, {model}, snapshot, {descriptions}
            avg({score}) AS score, avg({score}) FILTER (status = 'ok') AS parsed_score, {corrected}
            count(*) AS n_total, count(*) FILTER (status = 'ok') AS n_ok, count(*) FILTER (status IN ({statuses})) AS n_answered,
            {", ".join((*(f"count(*) FILTER (status = '{outcome}') AS n_{outcome}" for outcome in STATUSES if outcome != "ok"), *expressions))}
        FROM scores WHERE {_cells_where_sql(options)} GROUP BY {cell}, {model}, snapshot
        QUALIFY row_number() OVER (
            PARTITION BY {cell}, {model} ORDER BY avg({score}) IS NULL, {place} DESC NULLS LAST
        ) = 1
    ){shared if options.cells == "shared" else ", cells AS (FROM own)"}
    """


def _snapshot_place_sql(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> str:
    """Return the place of a row's snapshot among all as an SQL expression; 0 if the options choose one."""
    if options.snapshot is not None:
        return "0"
    with require_current_scores(options.subject.keys):
        return build_place_sql(snapshot_order(connection))


@contextmanager
def require_current_scores(keys: Keys) -> Iterator[None]:
    """Raise WarehouseError, with the fix, if a query of a family's `scores` fails because the files predate a column."""
    try:
        yield
    except duckdb.Error as error:
        lacking = _LACKING.search(str(error))
        if not lacking:
            raise
        raise WarehouseError(
            f"some scores were made by an earlier version and have no column {lacking[1]}: {keys.score_again} "
            "(stored responses are reused; no request is sent for them)"
        ) from error


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Return whether the connection has a table, view or registered frame with that name."""
    # information_schema.tables says the same and takes four times as long, which a page of many tables feels.
    views = connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [name]).fetchall()
    return bool(views or connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall())


def register_missing_tables(connection: duckdb.DuckDBPyConnection, schemas: Mapping[str, pa.Schema | None]) -> None:
    """Register an empty table for each schema whose table the connection lacks, so that queries may name it."""
    for name, schema in schemas.items():
        if schema is not None and not has_table(connection, name):
            connection.register(name, schema.empty_table())


def load_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """Return one row per cell and model variant, in an order independent of the files.

    `connection` has a `scores` view and optionally `reference_scores`. Columns: those that identify a row, with its `snapshot`, `same_item`
    (equal for equal items) and `cluster` (equal for dependent rows), all categorical; `score` (under the policy, 0-1, higher is better;
    null if unscored), `parsed_score` (only parsed draws), the subject's `corrected` (lower is better, can be negative), COUNT_COLUMNS; its
    `facts` and, under the board's metric, its `references`: null without `reference_scores`, whose partitions must be ingested again.
    """
    connection.execute("SET threads = 1")
    subject, pair = options.subject, ", ".join(options.subject.keys.pair)
    facts, references = ", ".join(subject.facts), ", ".join(subject.references)
    if has_table(connection, "reference_scores"):
        scores = ", ".join(f"{name}.{options.metric} AS {name}" for name in subject.references)
        reference = f"SELECT {pair}, {facts}, {scores} FROM reference_scores"
    else:
        kinds = {**subject.facts, **dict.fromkeys(subject.references, "DOUBLE")}
        reference = f"SELECT DISTINCT {pair}, {', '.join(f'NULL::{kind} AS {name}' for name, kind in kinds.items())} FROM cells"
    named = ", ".join((*subject.keys.cell, *subject.keys.described, "snapshot", *MODEL))
    query = f"""
        {cells_sql(connection, options)}, reference AS ({reference})
        SELECT {named}, score, parsed_score, {", ".join((*subject.corrected, *COUNT_COLUMNS))}, {facts}, {references}
        FROM cells LEFT JOIN reference USING ({pair})
        ORDER BY {_order_by_sql(subject.keys)}
        """
    with require_current_scores(subject.keys):
        rows = _make_categorical(connection.sql(query, params=parameters(options)).to_arrow_table(), subject.keys)
    return add_clusters(rows, connection, subject)


def load_scores_by_metric(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """Return the `score` of `load_cells` under every metric, one column per metric, with the columns that identify a row.

    One query for all metrics takes a quarter of the time of one per metric. One row per cell and model variant, regardless of
    `options.cells` and `options.metric`. Under each metric the latest snapshot with a score counts.
    """
    connection.execute("SET threads = 1")
    subject = options.subject
    columns = ", ".join((*subject.keys.cell, *MODEL))
    means = ", ".join(f"avg({policy_sql(options, metric)}) AS {metric}" for metric in subject.metrics)
    latest = ", ".join(f"arg_max({metric}, place) AS {metric}" for metric in subject.metrics)
    place = _snapshot_place_sql(connection, options)
    query = f"""
        WITH of_snapshots AS (
            SELECT {columns}, {place} AS place, {means} FROM scores WHERE {_cells_where_sql(options)} GROUP BY {columns}, snapshot
        )
        SELECT {columns}, {latest} FROM of_snapshots GROUP BY {columns}
        ORDER BY {_order_by_sql(subject.keys)}
        """
    with require_current_scores(subject.keys):
        return _make_categorical(connection.sql(query, params=parameters(options)).to_arrow_table(), subject.keys)


def _order_by_sql(keys: Keys) -> str:
    """Return the SQL of the columns that sort cells, so that equal scores are added in the same order."""
    return ", ".join((*MODEL, *reversed(keys.asked), *keys.pair))


def _make_categorical(rows: pa.Table, keys: Keys) -> pd.DataFrame:
    """Return the rows with text columns as categories."""
    for name in {*keys.row, *keys.described} & set(rows.column_names):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(place).combine_chunks().dictionary_encode())
    frame: pd.DataFrame = rows.to_pandas()
    return frame


def add_clusters(rows: pd.DataFrame, connection: duckdb.DuckDBPyConnection, subject: BoardSubject) -> pd.DataFrame:
    """Add `same_item`, equal for equal items, and `cluster`, equal for dependent rows; both categorical.

    `rows` have the columns `Keys.shared_item`. An item unknown to `reference_scores` and the subject's `clusters` is its own item and
    cluster. Raises WarehouseError for tables of an earlier version.
    """
    names = list(subject.keys.shared_item)
    code, items = identify(rows[names].astype("category"), names)
    items = items.astype(str)
    references = pd.DataFrame(columns=[*names, "same_item"], dtype=str)
    with require_current_scores(subject.keys):
        if has_table(connection, "reference_scores"):
            item = ", ".join(names)
            references = connection.sql(f"SELECT {item}, min(cluster) AS same_item FROM reference_scores GROUP BY {item}").df()
        links = subject.clusters(connection)
    item_keys = items[names[0]] + "/" + items[names[1]]
    same_item = items.merge(references, on=names, how="left")["same_item"].fillna(item_keys)
    cluster = items.merge(links, on=names, how="left")["cluster"].fillna(same_item)
    return rows.assign(same_item=pd.Categorical(same_item).take(code), cluster=pd.Categorical(cluster).take(code))


def identify(cells: pd.DataFrame, columns: Sequence[str]) -> tuple[npt.NDArray[np.int64], pd.DataFrame]:
    """Return the number of each row's combination of categorical columns, and the combinations, in the order of their categories."""
    key, size = np.zeros(len(cells), dtype=np.int64), 1
    for name in columns:
        many = max(len(cells[name].cat.categories), 1)
        if size * many > np.iinfo(np.int64).max // 2:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = len(cells)
        key, size = key * many + cells[name].cat.codes.to_numpy(dtype=np.int64), size * many
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    return code.astype(np.int64), cells[list(columns)].iloc[first].reset_index(drop=True)
