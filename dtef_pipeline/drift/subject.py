"""The input of a family to drift detection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.keys import Keys

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnchorSubject:
    """The stored answers that a family's judges score again in every snapshot, and their use."""

    n: int
    """Usual number of anchors."""
    reads: tuple[str, ...]
    """The tables from which anchors are chosen."""
    pool: Callable[[duckdb.DuckDBPyConnection], pd.DataFrame]
    """Returns the answers that can become anchors, sorted, with the columns `anchor`, `partition`, `item` and `score` of ANCHOR_ITEMS."""
    add_texts: Callable[[pd.DataFrame, duckdb.DuckDBPyConnection], pd.DataFrame]
    """Adds `shown` to chosen rows of `pool`."""
    stratum: Callable[[pd.DataFrame], pd.Series]
    """Returns the stratum of each row of ANCHOR_ITEMS, over which anchors are spread."""
    read: Callable[[Any, EpisodeResult], Row]
    """Returns the columns of ANCHORS on the judge and its judgement, given an episode and its result."""
    judgements: Callable[[Row, pd.DataFrame], pd.DataFrame | None]
    """Selects from rows of ANCHORS those by the judges of a series (`ModelDrift.rows`); None: no judge scored the series."""
    weight: float = 1.0
    """Change of a score when all its judged points change by 1."""
    note: str = ""
    """Limit of the result, for `judges_note`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A family's key columns, the tables of its drift, and its words for people."""

    family: str
    keys: Keys
    describe_setting: Callable[[Row], str]
    """Returns the setting of a row, in words that differ if any of `Keys.asked` does: `system 2`."""
    truth: str
    """The kind of change when items are scored against another truth: `"rubric"`."""
    truths: str
    """The plural noun for the truths of items: `"rubrics"`."""
    reads: tuple[str, ...]
    """The tables that drift is computed from."""
    statements: tuple[str, ...] = ()
    """SQL that makes temporary tables `scores` and `predictions` of them; none: two tables have these names.

    `scores` has the columns of `keys`, and `test` (text) if snapshots of a partition may belong to several tests.
    """
    rule: Callable[[duckdb.DuckDBPyConnection], Iterable[Row]] | None = None
    """Returns the results of the documented rule for each partition, as rows of DRIFT_RULE without family and `is_largest_gap`; None:
    `watched.iterate_rule_rows`.
    """
    rule_tables: tuple[str, ...] = ()
    """The tables that `rule` reads; empty: `reads`."""
    anchors: AnchorSubject | None = None
    computed_sql: str = "false"
    """SQL that is true in rows without a model response: `starts_with(model, 'baseline/')`."""
    in_order: Callable[[str], Any] = str.casefold
    """Sort key of the values of the space's first level."""
    clusters: Callable[[duckdb.DuckDBPyConnection], pd.DataFrame] | None = None
    """Returns the clusters of items, given a connection to the tables: `cluster` of each `Keys.shared_item`. An item without a row is its own.

    None: every item is a cluster of its own, because the same items are repeated and their scores vary independently between snapshots.
    """
    add_texts: Callable[[pa.Table, duckdb.DuckDBPyConnection], pa.Table] | None = None
    """Adds the texts of items that moved; None: there are none."""
    left_out_sql: str = "false"
    """SQL on the space's last level that is true in partitions without verdicts; `false`: there are none."""
    reason_left_out: str = "had too few comparable prompts"
    """Why a snapshot is left out, as a phrase that follows one or several labels."""

    @property
    def watched_sql(self) -> str:
        """SQL that is true in rows of `scores` which a verdict may use: model responses in fair tests."""
        fair = f"NOT {self.keys.left_out} AND " if self.keys.left_out else ""
        return f"{fair}NOT ({self.computed_sql}) AND NOT ({self.left_out_sql})"

    def series_columns(self, row: Row) -> dict[str, Any]:
        """Return the columns that identify a row's series. The row has those of `Keys.series`."""
        return {
            "family": self.family,
            **{name: row[name] for name in ("model", "model_variant")},
            "setting": self.describe_setting(row),
        }

    def query_clusters(self, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
        """Return the clusters of items by name regardless of partition: `first level/item`."""
        if self.clusters is None:
            return {}
        clusters, (first, item) = self.clusters(connection), self.keys.shared_item
        names = clusters[first].astype(str) + "/" + clusters[item].astype(str)
        return dict(zip(names, clusters["cluster"].astype(str), strict=True))


def build_statements(
    scores: str, responses: str, first: str, conditions: Sequence[str], response_columns: Sequence[str]
) -> tuple[str, str]:
    """Return the statements of a `Subject`, which make the temporary tables `scores` and `predictions`.

    `scores`: SQL of all scores, with the columns of the family's keys; `responses`: the table of responses, whose column `first` is the
    first level of partitions; `conditions`: see `Keys.asked`; `response_columns`: those that the responses also have.
    """
    shared = ("model", "model_variant", "snapshot")
    keys = ", ".join((first, *response_columns, *shared))
    columns = ", ".join(f"{name}::VARCHAR AS {name}" for name in (first, *response_columns, *shared))
    score_columns = ", ".join(dict.fromkeys((first, *conditions, *shared)))
    return (
        f"CREATE OR REPLACE TEMP TABLE scores AS SELECT *, '' AS test FROM ({scores})",
        f"""
        CREATE OR REPLACE TEMP TABLE predictions AS
        SELECT DISTINCT {score_columns}, served_model, fingerprint FROM (SELECT DISTINCT {score_columns} FROM scores)
        JOIN (SELECT DISTINCT {columns}, served_model, fingerprint FROM {responses}) USING ({keys})
        """,
    )
