"""The cells that every statistic is made of, as columns.

A **pair** is one item of one partition. A **cell** is a pair asked in one way, with its draws averaged; a row is a cell as one model variant
answered it. An item of fifty partitions is one item (`same_item`). A **cluster** is what results are independent by: items that hang together,
as the family links them, in all partitions.
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
COUNTED = ("n_total", "n_ok", "n_answered", *(f"n_{status}" for status in STATUSES if status != "ok"))
"""Counts of draws: all, parsed, answered, and by status."""
_LACKING = re.compile(r'(?:[Cc]olumn (?:named )?|[Tt]able )"(\w+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOptions:
    """Which scores a board is made of. Raises ConfigError naming the option, what arrived and what is allowed.

    `subject`: whose scores. `targets`: `clean` leaves out what the keys leave out, `all` keeps it. `cells`: `own` takes each model's own cells,
    `shared` only the cells that every model of the board has a score for. `intervals`: whether boards have them; `seed`: of the
    samples of answers behind them. A family's own options say what `chosen` are.
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
        """The key columns that tell apart whose answers a cell is scored against: cells that are equal in them share people."""
        return [self.subject.keys.space[0]]

    @property
    def item_of_people(self) -> list[str]:
        """The key columns of an item as the same people answered it."""
        return list(dict.fromkeys([*self.subject.keys.shared_item, *self.people]))

    @property
    def chosen(self) -> Mapping[str, Sequence[object]]:
        """The values of key columns that count, by column; none: all."""
        return {}

    @property
    def besides(self) -> str | None:
        """SQL: which rows of `scores` count, besides what is chosen; None: all."""
        return None


def policy_sql(options: BoardOptions, metric: str | None = None) -> str:
    """The published policy under a metric (none given: the board's), as an SQL expression over `scores` columns."""
    metric = metric or options.metric
    similarity = f"1 - {metric}" if metric in options.subject.distances else metric
    credits = options.subject.credits.items()
    fixed = " ".join(f"WHEN '{status}' THEN {score}" for status, score in credits if score is not None)
    return f"CASE status WHEN 'ok' THEN {similarity} {fixed} END"


def _cells_where_sql(options: BoardOptions) -> str:
    left_out = options.subject.keys.left_out
    conditions = [
        *(f"list_contains(${name}, {name})" for name, values in options.chosen.items() if values),
        "snapshot = $snapshot" if options.snapshot is not None else None,
        options.besides,
        f"NOT {left_out}" if left_out and options.targets == "clean" else None,
    ]
    return " AND ".join(condition for condition in conditions if condition) or "true"


def parameters(options: BoardOptions) -> dict[str, object]:
    """What the queries of `cells_sql` are executed with."""
    named: dict[str, object] = {name: list(values) for name, values in options.chosen.items() if values}
    return named if options.snapshot is None else {**named, "snapshot": options.snapshot}


def cells_sql(connection: duckdb.DuckDBPyConnection, options: BoardOptions, more: Sequence[str] = ()) -> str:
    """Common table expressions ending in `cells`: one row per cell and model variant, of the latest snapshot with a score.

    `connection`: what they will be executed on; the order of its snapshots is looked up. `more`: further aggregates of a row's draws.
    """
    keys = options.subject.keys
    cell, model, ways = ", ".join(keys.cell), ", ".join(MODEL), ", ".join(keys.asked)
    statuses = ", ".join(f"'{status}'" for status in ANSWERED)
    condition = " AND ".join(f"v.{name} = own.{name}" for name in keys.asked)
    shared = f"""
    , variants AS (SELECT {ways}, count(DISTINCT ({model})) AS models FROM own WHERE score IS NOT NULL GROUP BY ALL)
    , shared AS (
        SELECT {cell} FROM own WHERE score IS NOT NULL GROUP BY {cell}
        HAVING count(*) = (SELECT models FROM variants v WHERE {condition})
    )
    , cells AS (SELECT own.* FROM own SEMI JOIN shared USING ({cell}))"""
    descriptions = "".join(f"any_value({name}) AS {name}, " for name in keys.described)
    corrected = "".join(f"avg({name}) AS {name}, " for name in options.subject.corrected)
    score = policy_sql(options)
    return f"""
    WITH own AS (
        SELECT {cell}, {model}, snapshot, {descriptions}
            avg({score}) AS score, avg({score}) FILTER (status = 'ok') AS parsed_score, {corrected}
            count(*) AS n_total, count(*) FILTER (status = 'ok') AS n_ok, count(*) FILTER (status IN ({statuses})) AS n_answered,
            {", ".join((*(f"count(*) FILTER (status = '{outcome}') AS n_{outcome}" for outcome in STATUSES if outcome != "ok"), *more))}
        FROM scores WHERE {_cells_where_sql(options)} GROUP BY {cell}, {model}, snapshot
        QUALIFY row_number() OVER (
            PARTITION BY {cell}, {model} ORDER BY avg({score}) IS NULL, {_snapshot_place_sql(connection, options)} DESC NULLS LAST
        ) = 1
    ){shared if options.cells == "shared" else ", cells AS (FROM own)"}
    """


def _snapshot_place_sql(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> str:
    """SQL: by what the snapshots of a cell are sorted. Of a single snapshot no order is needed."""
    if options.snapshot is not None:
        return "0"
    with require_current_scores(options.subject.keys):
        return build_place_sql(snapshot_order(connection))


@contextmanager
def require_current_scores(keys: Keys) -> Iterator[None]:
    """For queries of a family's `scores`: files written before a column was there are a WarehouseError that says how to mend them."""
    try:
        yield
    except duckdb.Error as error:
        lacking = _LACKING.search(str(error))
        if not lacking:
            raise
        raise WarehouseError(
            f"some scores were made by an earlier version and have no column {lacking[1]}: {keys.score_again} "
            "(answers are replayed, no model is asked for what it has answered)"
        ) from error


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether the connection has a table, view or registered frame of that name."""
    # information_schema.tables says the same and takes four times as long, which a page of many tables feels.
    views = connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [name]).fetchall()
    return bool(views or connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall())


def load_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """One row per cell and model variant, in an order that does not depend on how the files lie.

    `connection` has a `scores` view, and `reference_scores` or not. Columns: those that say what and who a row is, with its
    `snapshot`, `same_item` (equal in rows of equal items) and `cluster` (equal in rows that are not independent), all categorical; `score`
    (under the policy, 0-1, higher is better; null: unscored), `parsed_score` (over parsed draws alone), the subject's `corrected` (lower is
    better, can be below 0), COUNTED; its `facts` and, under the board's metric, its `references`: null without `reference_scores`, whose
    partitions must be ingested again.
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
        SELECT {named}, score, parsed_score, {", ".join((*subject.corrected, *COUNTED))}, {facts}, {references}
        FROM cells LEFT JOIN reference USING ({pair})
        ORDER BY {_order_by_sql(subject.keys)}
        """
    with require_current_scores(subject.keys):
        rows = connection.sql(query, params=parameters(options)).to_arrow_table()
    return add_clusters(_make_categorical(rows, subject.keys), connection, subject)


def add_clusters(rows: pd.DataFrame, connection: duckdb.DuckDBPyConnection, subject: BoardSubject) -> pd.DataFrame:
    """The rows with `same_item`, equal in rows of equal items, and `cluster`, equal in rows that are not independent; both categorical.

    `rows` have the columns `Keys.shared_item`. What `reference_scores` and the subject's `clusters` know nothing of is an item, and a cluster,
    of its own. Raises WarehouseError for tables of an earlier version.
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
    alone = items[names[0]] + "/" + items[names[1]]
    same_item = items.merge(references, on=names, how="left")["same_item"].fillna(alone)
    cluster = items.merge(links, on=names, how="left")["cluster"].fillna(same_item)
    return rows.assign(same_item=pd.Categorical(same_item).take(code), cluster=pd.Categorical(cluster).take(code))


def load_scores_by_metric(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """The `score` of `load_cells` under every metric at once, one column per metric; its other columns are those that say what and who a row is.

    One row per cell and model variant, whatever `options.cells` and `options.metric` say. Under each metric the latest snapshot with a score
    counts.
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
    """SQL: the columns by which cells are sorted, so that equal scores are added in one order."""
    return ", ".join((*MODEL, *reversed(keys.asked), *keys.pair))


def _make_categorical(rows: pa.Table, keys: Keys) -> pd.DataFrame:
    """The rows with their text columns as categories."""
    for name in {*keys.row, *keys.described} & set(rows.column_names):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows.column(place).combine_chunks().dictionary_encode())
    frame: pd.DataFrame = rows.to_pandas()
    return frame


def identify(cells: pd.DataFrame, columns: Sequence[str]) -> tuple[npt.NDArray[np.int64], pd.DataFrame]:
    """Which of the distinct combinations of categorical columns each row has, and the combinations, in the order of their categories."""
    key, size = np.zeros(len(cells), dtype=np.int64), 1
    for name in columns:
        many = max(len(cells[name].cat.categories), 1)
        if size * many > np.iinfo(np.int64).max // 2:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = len(cells)
        key, size = key * many + cells[name].cat.codes.to_numpy(dtype=np.int64), size * many
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    return code.astype(np.int64), cells[list(columns)].iloc[first].reset_index(drop=True)
