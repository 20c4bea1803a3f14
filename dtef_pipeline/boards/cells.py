"""The cells that all statistics are computed from, as columns, and what a family provides for them.

A **pair** is one item of one partition. A **cell** is a pair in one setting, with its draws averaged; a row is the cell of one model
variant. An item of fifty partitions is one item (`same_item`). A **cluster** is the unit of independence: items that the family links, in
all partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import build_place_sql, snapshot_order
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.statistics.cluster_robust import CORRELATION, OF_OBSERVED
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.tables import ANSWERED, STATUSES
from dtef_pipeline.text.number_words import format_plural

if TYPE_CHECKING:
    from dtef_pipeline.boards.intervals import Grid, Measures
from collections.abc import Collection

from dtef_pipeline.asking.snapshot_order import TIMES_TABLE, build_times_sql

Codes = npt.NDArray[np.int64]
Deviations = npt.NDArray[np.float32]


class Noise(Protocol):
    """How far the scores of cells deviate from their mean when their reference data are observed again."""

    @property
    def score(self) -> Deviations:
        """(cells, replicates), 0 on average, and 0 for unscored cells."""

    def select_cells(self, rows: Codes) -> Self:
        """Return the noise of some of the cells."""


@dataclass(frozen=True, slots=True, eq=False)
class BoardSubject:
    """A family's key columns, its metrics, and the other content of its boards. The examples are as in `Keys`.

    Names of count columns come from the keys: `n_blueprints` and `n_tasks`, if those are the second level of the space and the noun for an
    item.
    """

    keys: Keys
    metrics: tuple[str, ...]
    """Columns of `scores` that a board can rank by, 0-1."""
    distances: tuple[str, ...]
    """The metrics of which lower is better; their score is 1 - distance."""
    credits: Mapping[str, float | None]
    """The score of rows of each status other than `ok`, 0-1; None: means exclude the row."""
    corrected: tuple[str, ...]
    """Other columns of `scores` that come with each cell as their means, lower is better."""
    references: tuple[str, ...]
    """Columns of `reference_scores` that are structs with one score per metric."""
    typical: tuple[str, ...]
    """References. In estimates of the smallest detectable difference, the first one with a score takes the place of a second model."""
    facts: Mapping[str, str]
    """Other columns of `reference_scores` that come with each cell, and their SQL types."""
    size: Callable[[str], float]
    """Sort key of the first column of the setting."""
    observed_baselines: frozenset[str]
    """Models whose predictions are computed from observed answers, and so change with a new sample of people."""
    marginal: str
    """The model whose predictions contain the answers that they are scored against; it does not show how easy a cell is."""
    reference: str
    """The computed model that every language model is compared with."""
    ranked_from: int
    """Number of values of the space's second level in which a model needs a score to be ranked, or all if there are fewer."""
    reliability: pa.Schema
    """RELIABILITY: one row per series with repeated draws."""
    reference_remedy: str
    """Advice to users when reference scores are missing: `"load the suite again"`."""
    clusters: Callable[[duckdb.DuckDBPyConnection], pd.DataFrame]
    """Returns the clusters of items, given a connection to the tables: `cluster` of each `Keys.shared_item`. Equal items without a row are
    one cluster."""
    noise: Callable[[duckdb.DuckDBPyConnection, pd.DataFrame, BoardOptions], Any]
    """Returns the noise of the cells' scores, given a connection to the tables; None: unknown."""
    measures: Callable[[Grid], Measures]
    """Returns the further statistics of a board's rows, given the cells."""
    columns: tuple[str, ...]
    """Columns that intervals and measures add to a board, in order."""

    @property
    def parts(self) -> str:
        """The column that counts values of the space's second level: `n_blueprints`."""
        return f"n_{self.keys.space[1]}s"

    @property
    def items(self) -> str:
        """The column that counts distinct items: `n_tasks`."""
        return f"n_{format_plural(self.keys.noun)}"

    @property
    def independent(self) -> str:
        """The column that counts clusters: `n_topics`."""
        return f"n_{format_plural(self.keys.cluster_noun)}"

    def correlation(self, models: pd.Series) -> npt.NDArray[np.float64]:
        """Return (models,), the correlation of the noise of each model's scores between two items."""
        return np.where(models.isin(self.observed_baselines), OF_OBSERVED, CORRELATION)


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


_SCHEMA = "held"


def copy_into_memory(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Sequence[str]], coded_columns: Collection[str], keys: Keys
) -> None:
    """Copy tables into memory for `open_memory_copy`, so that files are read once for all boards.

    A million scores take about 200 MB.

    Args:
        connection: has the tables as views; only the first is required.
        columns: columns to copy, by table; `*` stands for all.
        coded_columns: text columns of the first table that repeat. As codes they are grouped and sorted several times faster.
        keys: the family's, for the message about scores of an earlier version.
    """
    connection.execute(f"CREATE SCHEMA {_SCHEMA}")
    first = next(iter(columns))
    with require_current_scores(keys):
        connection.execute(f"CREATE TABLE {_SCHEMA}.{TIMES_TABLE} AS {build_times_sql(first)}")
    for table, names in columns.items():
        if not has_table(connection, table):
            continue
        coded_names = coded_columns if table == first else ()
        for name in coded_names:
            # In the order of the text, which is that of the codes.
            with require_current_scores(keys):
                connection.execute(
                    f"CREATE TYPE {_SCHEMA}.{name}_code AS ENUM (SELECT DISTINCT {name} FROM {table} ORDER BY ALL)"
                )
        fields = ", ".join(f"{name}::{_SCHEMA}.{name}_code AS {name}" if name in coded_names else name for name in names)
        with require_current_scores(keys):
            connection.execute(f"CREATE TABLE {_SCHEMA}.{table} AS SELECT {fields} FROM {table}")


@contextmanager
def open_memory_copy(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to the tables of `copy_into_memory`, for use like one to the originals."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path = '{_SCHEMA}'")
        yield cursor
