"""How far the scores of repeated draws of the same prompt agree, and what differences can be found because of it.

One-way random-effects analysis: a draw's score = mean + cell effect + deviation of the draw. Only cells with two scored draws or more say
something of the deviation.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import ndtri, stdtrit

from dtef_pipeline.boards.cells import (
    BoardOptions,
    cells_sql,
    has_table,
    parameters,
    policy_sql,
    scores_of_this_version,
    with_clusters,
)
from dtef_pipeline.boards.scored import Scored
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.resampling import CONFIDENCE, MIN_CLUSTERS, Floats, why_none
from dtef_pipeline.statistics.variance_ratio import variance_ratio
from dtef_pipeline.text.counted import counted

POWER = 0.8
"""Share of cases in which a detectable difference is found by a two-sided test at 5 %."""
_NO_VARIANCE = 1e-12
"""Variance within cells, relative to all, below which draws differ by rounding alone."""


def reliability(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """The table `reliability` (the subject's schema): one row per series with repeated draws.

    `connection` has `scores` and, or not, `reference_scores`. Draws are those of the snapshot that counts for each cell, scored under the
    policy. `icc`: intraclass correlation of single draws, ICC(1), 0-1: the share of the variance that is between cells, 1 = a second draw
    says nothing new; `low`, `high`: its 95 % interval. `within_sd`, `between_sd`: standard deviations of the draws of a cell, and of the
    cells' own scores. `rerun_detectable`, `model_detectable`: see the functions of these names. `note` says why something is null.
    """
    subject, series = options.subject, list(options.subject.keys.series)
    cells = _repeated_cells(connection, options)
    rows = [
        dict(zip(series, key, strict=True)) | _agreement(group) | _model_difference(group, subject)
        for key, group in cells.groupby(series, sort=False)
    ]
    frame = pd.DataFrame(rows).assign(targets=options.targets, metric=options.metric, seed=options.seed)
    if rows:
        frame["note"] = ["; ".join(filter(None, notes)) for notes in zip(frame["note"], frame["model_note"], strict=True)]
    frame = frame.reindex(columns=subject.reliability.names)
    numbers = [field.name for field in subject.reliability if pa.types.is_floating(field.type)]
    return frame.astype(dict.fromkeys(numbers, "float64"))


def _repeated_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """Cells with two scored draws or more: `draws` (`parsed` ones), `mean`, `squares` about it, `cluster`, `reference` score."""
    connection.execute("SET threads = 1")
    keys = options.subject.keys
    cell, model, pair = ", ".join(keys.cell), ", ".join(MODEL), ", ".join(keys.pair)
    reference = f"SELECT {pair}, NULL::DOUBLE AS reference FROM repeated WHERE false"
    if has_table(connection, "reference_scores"):
        scores = ", ".join(f"{name}.{options.metric}" for name in options.subject.typical)
        reference = f"SELECT {pair}, coalesce({scores}) AS reference FROM reference_scores"
    query = f"""
        {cells_sql(connection, options)}
        , several AS (FROM cells WHERE n_answered > 1), repeated AS (
            SELECT {cell}, {model}, count(drawn) AS draws, avg(drawn) AS mean, var_pop(drawn) * count(drawn) AS squares,
                count(*) FILTER (status = 'ok') AS parsed
            FROM (SELECT *, {policy_sql(options)} AS drawn FROM scores SEMI JOIN several USING ({cell}, {model}, snapshot))
            GROUP BY ALL HAVING count(drawn) > 1
        ), reference AS ({reference})
        FROM repeated LEFT JOIN reference USING ({pair})
        ORDER BY {", ".join(keys.series)}, {pair}
        """
    with scores_of_this_version(keys):
        found = connection.execute(query, parameters(options)).df()
    return with_clusters(found, connection, options.subject)


def _agreement(cells: pd.DataFrame) -> dict[str, object]:
    draws, means = cells["draws"].to_numpy(np.float64), cells["mean"].to_numpy(np.float64)
    count, freedom = len(cells), int(draws.sum()) - len(cells)
    within = float(cells["squares"].sum()) / freedom
    found: dict[str, object] = {"n_cells": count, "n_draws": int(draws.sum()), "note": ""}
    if not cells["parsed"].any():
        return found | {"note": "no answer could be read"}
    spread = float(means.var(ddof=1)) if count > 1 else 0.0
    if within <= _NO_VARIANCE * (within + spread + _NO_VARIANCE):
        always = {"icc": 1.0, "within_sd": 0.0, "between_sd": float(np.sqrt(spread)), "rerun_detectable": 0.0}
        return found | always | {"note": "all draws of a pair score alike: no interval"}
    found |= {"within_sd": float(np.sqrt(within)), "rerun_detectable": rerun_detectable(within, count)}
    if count < MIN_CLUSTERS:
        return found | {"note": f"no icc: {counted(count, 'cell')} with repeated draws, at least {MIN_CLUSTERS} are needed"}

    def statistic(ratio: float) -> float:
        """Weighted mean square of the cell means over the mean square within: F at the true ratio of the variances."""
        weight = 1 / (ratio + 1 / draws)
        off = means - weight @ means / weight.sum()
        return float(weight @ off**2 / (count - 1) / within)

    ratio = variance_ratio(statistic, count - 1, freedom)
    icc, low, high = (part / (1 + part) for part in ratio[:3])
    return found | {"icc": icc, "low": low, "high": high, "between_sd": float(np.sqrt(ratio.value * within))}


def rerun_detectable(within: float, cells: int) -> float:
    """Difference of the mean scores of two reruns that is found in 80 % of cases, each with one draw of each of the same cells.

    (z.975 + z.80) sqrt(2 within / cells), `within` the variance between draws of a cell: for the same prompts only the draws differ.
    """
    return float((ndtri((1 + CONFIDENCE) / 2) + ndtri(POWER)) * np.sqrt(2 * within / cells))


def model_detectable(differences: Floats, counts: Floats) -> float:
    """Difference of two models' mean scores on as many clusters that is found in 80 % of cases, from cluster sums (clusters,).

    (t.975 + t.80) s, with C - 1 degrees of freedom and s^2 = C / (C - 1) sum (d_c - D m_c)^2 / (sum m_c)^2 the clustered variance of the mean
    difference D, d_c being a cluster's sum of differences and m_c their count. The differences at hand are the model's to the reference
    (leave-one-out marginal, or population marginal): two models are assumed to differ from cluster to cluster as much as these.
    """
    clusters, total = len(counts), counts.sum()
    off = differences - differences.sum() / total * counts
    error = np.sqrt(clusters / (clusters - 1) * (off @ off)) / total
    return float((stdtrit(clusters - 1, (1 + CONFIDENCE) / 2) + stdtrit(clusters - 1, POWER)) * error)


def _model_difference(cells: pd.DataFrame, subject: Scored) -> dict[str, object]:
    known = cells[cells["reference"].notna()]
    if known.empty:
        return {"model_note": f"no reference scores to compare with: {subject.reference_again}"}
    by_cluster = (known["mean"] - known["reference"]).groupby(known["cluster"], sort=False, observed=True)
    sums, counts = np.asarray(by_cluster.sum(), dtype=np.float64), np.asarray(by_cluster.count(), dtype=np.float64)
    if len(counts) < MIN_CLUSTERS:
        return {"model_note": why_none(len(counts), subject.keys.cluster_noun, "detectable difference of models")}
    return {"model_detectable": model_detectable(sums, counts), "model_note": ""}
