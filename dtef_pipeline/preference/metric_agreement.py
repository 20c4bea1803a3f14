"""Comparison of preference with automated metrics: both scores of each player that has them, and the agreement of the two orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.statistics.ranks import TAU_INTERVAL, order_agreement, rank_numbers

METRIC_QUERY_COLUMNS = ("partition", "metric", "player", "direction", "value", "low", "high", "n")
"""Columns of a `MetricSource` query. direction: higher or lower, whichever is better; low and high: 95 % interval or null."""
AGREEMENT_COLUMNS: Mapping[str, str] = {
    "family": "Family of evaluations",
    "partition": "First level of the items' partitions that were voted on; all: the whole family",
    "reviewer_kind": "Kind of reviewers: person or judge",
    "judge": "Judge who cast all of these votes; empty: people voted",
    "metric": "Automated metric, with what it was measured on",
    "direction": "Better side of the metric: higher or lower",
    "player": "Player that has both: a model variant, or persona@variant",
    "beta": "Preference in logits: higher is preferred",
    "low": "Lower end of the 95 % interval of beta",
    "high": "Upper end of the 95 % interval of beta",
    "preferred_place": "Place by preference among the players that have both, 1 is best",
    "value": "Value of the metric",
    "value_low": "Lower end of the 95 % interval of the metric",
    "value_high": "Upper end of the 95 % interval of the metric",
    "metric_place": "Place by the metric among the same players, 1 is best",
    "n": "Items or episodes that the metric is over",
    "tau": "Kendall's tau-b of the two orders: 1 the same, 0 nothing to do with each other, -1 reversed",
    "tau_low": "Lower end of its 95 % interval over players",
    "tau_high": "Upper end of its 95 % interval over players",
    "tau_interval": "Method of the interval: jackknife over players on the scale atanh(tau), Fisher's z; empty: there is none",
    "n_players": "Players that tau is over",
    "reason": "Reason why there is no tau, or no interval of it; empty: there are both",
}


def compare_with_metrics(scores: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row per metric and player of one fit that has both, with `AGREEMENT_COLUMNS`; metrics sorted by name.

    `scores`: rows of `preference_scores` of one family, partition, kind of reviewers and judge. `metrics`: METRIC_QUERY_COLUMNS; the first row
    of each metric and player counts. Betas of different components cannot be compared: only the component with the most players is, and the
    reason says so.
    """
    rows = scores[scores["beta"].notna()]
    parts = rows["component"].value_counts().sort_index()
    largest = rows[rows["component"] == parts.idxmax()] if len(parts) else rows
    left_out = len(rows) - len(largest)
    tables = list(_compare_each_metric(largest, metrics, left_out))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(AGREEMENT_COLUMNS))


def read_metrics(connection: duckdb.DuckDBPyConnection, sources: Iterable[MetricSource]) -> pd.DataFrame:
    """METRIC_QUERY_COLUMNS of all sources, whose tables the connection has."""
    columns = ", ".join(METRIC_QUERY_COLUMNS)
    tables = [connection.sql(f"SELECT {columns} FROM ({source.query}) ORDER BY ALL").df() for source in sources]
    return _stack_metrics(tables)


def add_judges(metrics: pd.DataFrame, scores: pd.DataFrame, partition: str, kind: str) -> pd.DataFrame:
    """Return the metrics that scores by votes of this kind of reviewers are compared with; scores by people also with scores by judges.

    `scores`: rows of `preference_scores` of the family.
    """
    values = metrics if partition == EVERY_PARTITION else metrics[metrics["partition"] == partition]
    judges = [convert_judge_scores(scores[scores["partition"] == partition])] if kind == "person" else []
    return _stack_metrics([values, *judges])


def _stack_metrics(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    parts = [table for table in tables if len(table)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(METRIC_QUERY_COLUMNS))


def convert_judge_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores by each judge's votes as a metric to compare with people's: METRIC_QUERY_COLUMNS from rows of `preference_scores`."""
    rows = scores[(scores["reviewer_kind"] == "judge") & scores["beta"].notna()]
    table = rows.rename(columns={"beta": "value", "n_votes": "n"}).assign(
        metric=[f"preference of {judge}" for judge in rows["judge"]], direction="higher"
    )
    return table[list(METRIC_QUERY_COLUMNS)]


def _compare_each_metric(scores: pd.DataFrame, metrics: pd.DataFrame, left_out: int) -> Iterator[pd.DataFrame]:
    for metric, rows in metrics.groupby("metric", sort=True):
        values = rows.drop_duplicates("player").rename(columns={"low": "value_low", "high": "value_high"})
        players = scores.merge(values.drop(columns=["partition", "metric"]), on="player")
        if not len(players):
            continue
        better = players["value"] * players["direction"].map({"lower": -1.0}).fillna(1.0)
        agreement = order_agreement(players["beta"].to_numpy(float), better.to_numpy(float))
        note = f"{left_out} in other components are left out" if left_out else ""
        comparison_rows = players.assign(
            metric=metric,
            preferred_place=_rank_values(players["beta"]),
            metric_place=_rank_values(better),
            tau=agreement.tau,
            tau_low=agreement.low,
            tau_high=agreement.high,
            tau_interval=None if agreement.low is None else TAU_INTERVAL,
            n_players=agreement.n,
            reason="; ".join(part for part in (agreement.reason, note) if part),
        )
        yield comparison_rows[list(AGREEMENT_COLUMNS)].sort_values(["preferred_place", "player"], ignore_index=True)


def _rank_values(values: pd.Series[float]) -> pd.Series[int]:
    """Rank values: 1 is the highest, ties share the better place, null for no value."""
    return pd.Series(rank_numbers(values.to_numpy(float, na_value=float("nan"))), index=values.index).astype("Int64")
