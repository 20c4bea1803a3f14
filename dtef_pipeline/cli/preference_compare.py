"""What `dtef preference board --metric` does; the words are in `dtef_pipeline/cli/preference_board_group.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pandas as pd

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.preference_board import group_label, partition_among, score_frame
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.cli.view_table import print_rows
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.preference.beside_metrics import BESIDE_COLUMNS, BESIDE_METRIC, beside_metrics, of_judges
from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.text.counted import counted
from resources.warehouse import Warehouse

_EACH_AGREEMENT = ["family", "partition", "reviewer_kind", "judge", "metric"]


@dataclass(frozen=True, slots=True)
class BesideView:
    """How players with both scores are shown."""

    columns: tuple[str, ...] = (
        *("family", "partition", "reviewer_kind", "judge", "metric", "player", "preferred_place", "beta", "interval"),
        *("metric_place", "value", "value_low", "value_high", "n"),
    )
    kept: tuple[str, ...] = ("player", "preferred_place", "metric_place")
    first_out: tuple[str, ...] = ("value_low", "value_high", "n", "partition", "reviewer_kind", "family", "judge")
    estimate: str = "beta"
    notes: str = "note"
    who: tuple[str, ...] = ("player",)


@reads_tables
def compare(
    warehouse: Warehouse,
    family: str | None,
    partition: str,
    metric: str,
    reviewer_kind: str | None,
    output: str,
) -> None:
    scores = score_frame(warehouse)
    scores = scores[(scores["family"] == family) | (family is None)]
    if not len(scores):
        raise WarehouseError(f"nothing to compare: no votes on responses of {family}")
    scores = scores[scores["partition"] == partition_among(scores, partition)]
    tables = [
        beside_metrics(rows, _fitting(_metrics(warehouse, str(group[0]), partition, rows_of_family, str(group[1])), metric))
        for group, rows in scores.groupby(["family", "reviewer_kind", "judge"], dropna=False)
        for rows_of_family in [scores[scores["family"] == group[0]]]
        if reviewer_kind in (None, group[1])
    ]
    found = [table for table in tables if len(table)]
    if not found:
        raise WarehouseError(
            "nothing to compare: no player has both votes and a metric that fits; the boards of the families have the metrics"
        )
    shown = pd.concat(found, ignore_index=True)
    with_tau = shown if output != "table" else shown[shown["tau"].notna()].reset_index(drop=True)
    lines = [*_lines(with_tau), *_without_tau(shown[shown["tau"].isna()])]
    if len(with_tau):
        print_rows(BesideView(), with_tau, output, lines, BESIDE_COLUMNS)
        return
    for line in lines:
        say(line)


def _metrics(warehouse: Warehouse, family: str, partition: str, scores: pd.DataFrame, kind: str) -> pd.DataFrame:
    """All that preference can be compared with in a partition; of people's also that of judges."""
    sources = [source for one in FAMILIES if one.name == family and one.paired for source in one.paired.metrics]
    tables = [
        _read_metrics(warehouse, source) for source in sources if len(warehouse.tables(source.tables)) == len(source.tables)
    ]
    if kind == "person":
        tables.append(of_judges(scores))
    filled = [table for table in tables if len(table)]
    found = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(BESIDE_METRIC))
    return found if partition == EVERY_PARTITION else found[found["partition"] == partition]


def _read_metrics(warehouse: Warehouse, source: MetricSource) -> pd.DataFrame:
    columns = ", ".join(BESIDE_METRIC)
    chosen = f"SELECT {columns} FROM ({source.query})"
    found: pd.DataFrame = warehouse.query(lambda connection: connection.sql(chosen).df(), only=source.tables)
    return found


def _fitting(metrics: pd.DataFrame, pattern: str) -> pd.DataFrame:
    return metrics[metrics["metric"].map(lambda name: fnmatchcase(str(name), pattern)).astype(bool)]


def _without_tau(rows: pd.DataFrame) -> Iterator[str]:
    """How many metrics cannot be compared, for which reason."""
    for reason, some in rows.drop_duplicates(_EACH_AGREEMENT).groupby("reason", sort=True):
        metrics = counted(some["metric"].nunique(), "metric")
        yield f"not shown: {metrics}, as there is {reason}; --format csv names {'it' if metrics.startswith('1 ') else 'them'}"


def _lines(shown: pd.DataFrame) -> Iterator[str]:
    """The agreement of each two orders."""
    for group, rows in shown.groupby(_EACH_AGREEMENT, sort=False, dropna=False):
        one = rows.iloc[0]
        said = f"{group_label(group)}: {counted(int(one['n_players']), 'player')}"
        tau = "" if pd.isna(one["tau"]) else f", Kendall's tau {one['tau']:.2f}"
        ends = "" if pd.isna(one["tau_low"]) else f" ({one['tau_low']:.2f} to {one['tau_high']:.2f})"
        yield f"{said}{tau}{ends}{'; ' if one['reason'] else ''}{one['reason']}"
