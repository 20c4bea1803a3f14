"""Agreement of the scores of repeated draws of the same prompt, and the differences that can be detected.

One-way random-effects analysis: a draw's score = mean + cell effect + deviation of the draw. Only cells with at least two scored draws
inform the deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import fdtrc, fdtri, stdtrit

from dtef_pipeline.boards.cells import (
    BoardOptions,
    BoardSubject,
    cells_sql,
    load_cells,
    parameters,
    policy_sql,
    require_current_scores,
)
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, Floats, estimate_ratios, explain_missing
from dtef_pipeline.text.number_words import format_count

POWER = 0.8
"""Share of cases in which a detectable difference is found by a two-sided test at 5 %."""
_NOT_REPEATED = "no icc: no prompt was asked repeatedly"
_EQUAL = 1e-9
"""Difference of scores below which they differ by rounding only."""
_NO_VARIANCE = 1e-12
"""Variance within cells, relative to all, below which draws differ only by rounding."""


def compute_reliability(
    connection: duckdb.DuckDBPyConnection, options: BoardOptions, cells: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the table `reliability` (the subject's schema): one row per series with a score.

    `connection` has `scores` and optionally `reference_scores`; `cells`: see `load_cells`. Draws are those of the snapshot that counts for
    each cell, scored under the policy. `icc`: intraclass correlation of single draws, ICC(1), 0-1: the share of the variance between cells
    (1: a second draw adds nothing); `low`, `high`: its 95 % interval. `within_sd`, `between_sd`: standard deviations of the draws of a
    cell, and of the cells' own scores. `rerun_detectable`, `model_detectable`: see `compute_rerun_detectable` and
    `compute_model_detectable`; the second needs no repeated draws. `note` explains null values.
    """
    subject, series = options.subject, list(options.subject.keys.series)
    table = load_cells(connection, options) if cells is None else cells
    scored_cells = table[table["score"].notna()]
    scored_cells = scored_cells.assign(**{name: scored_cells[name].astype(str) for name in series})
    repeats = dict(iter(_load_repeated_cells(connection, options).groupby(series, sort=False)))
    rows = []
    for key, group in scored_cells.groupby(series, sort=True):
        agreement = _measure_agreement(repeats[key]) if key in repeats else {"n_cells": 0, "n_draws": 0, "note": _NOT_REPEATED}
        detectable = _estimate_model_difference(group, subject)
        notes = "; ".join(filter(None, (str(agreement["note"]), str(detectable.pop("note", "")))))
        rows.append(dict(zip(series, key, strict=True)) | agreement | detectable | {"note": notes})
    frame = pd.DataFrame(rows).assign(targets=options.targets, metric=options.metric)
    frame = frame.reindex(columns=subject.reliability.names)
    numbers = [field.name for field in subject.reliability if pa.types.is_floating(field.type)]
    return frame.astype(dict.fromkeys(numbers, "float64"))


def _load_repeated_cells(connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> pd.DataFrame:
    """Return cells with at least two scored draws: `draws`, `parsed` (readable draws), `mean`, `squares` about the mean."""
    connection.execute("SET threads = 1")
    keys = options.subject.keys
    cell, model = ", ".join(keys.cell), ", ".join(MODEL)
    query = f"""
        {cells_sql(connection, options)}
        , several AS (FROM cells WHERE n_answered > 1), repeated AS (
            SELECT {cell}, {model}, count(drawn) AS draws, avg(drawn) AS mean, var_pop(drawn) * count(drawn) AS squares,
                count(*) FILTER (status = 'ok') AS parsed
            FROM (SELECT *, {policy_sql(options)} AS drawn FROM scores SEMI JOIN several USING ({cell}, {model}, snapshot))
            GROUP BY ALL HAVING count(drawn) > 1
        )
        FROM repeated ORDER BY {", ".join(keys.series)}, {", ".join(keys.pair)}
        """
    with require_current_scores(keys):
        return connection.execute(query, parameters(options)).df()


def _measure_agreement(cells: pd.DataFrame) -> dict[str, object]:
    draws, means = cells["draws"].to_numpy(np.float64), cells["mean"].to_numpy(np.float64)
    count, freedom = len(cells), int(draws.sum()) - len(cells)
    within = float(cells["squares"].sum()) / freedom
    result: dict[str, object] = {"n_cells": count, "n_draws": int(draws.sum()), "note": ""}
    if not cells["parsed"].any():
        return result | {"note": "no answer could be read"}
    spread = float(means.var(ddof=1)) if count > 1 else 0.0
    if within <= _NO_VARIANCE * (within + spread + _NO_VARIANCE):
        always = {"icc": 1.0, "within_sd": 0.0, "rerun_detectable": 0.0}
        return result | always | {"note": "all draws of a pair score alike: no interval"}
    result |= {"within_sd": float(np.sqrt(within)), "rerun_detectable": compute_rerun_detectable(within, count)}
    if count < MIN_CLUSTERS:
        return result | {
            "note": f"no icc: {format_count(count, 'cell')} with repeated draws, at least {MIN_CLUSTERS} are needed"
        }

    def statistic(ratio: float) -> float:
        """Return the weighted mean square of the cell means over the mean square within: F at the true ratio of the variances."""
        weight = 1 / (ratio + 1 / draws)
        deviations = means - weight @ means / weight.sum()
        return float(weight @ deviations**2 / (count - 1) / within)

    ratio = estimate_variance_ratio(statistic, count - 1, freedom)
    icc, low, high = (part / (1 + part) for part in ratio[:3])
    return result | {"icc": icc, "low": low, "high": high}


def detectable_difference(se: float, degrees: float) -> float:
    """Return the difference detected in 80 % of cases by a two-sided t test at 5 %: (t.975 + t.80) se (Bloom 1995), 2.80 se for infinite
    degrees of freedom.
    """
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2) + stdtrit(degrees, POWER)) * se


def compute_rerun_detectable(within: float, cells: int) -> float:
    """Return the difference of the mean scores of two reruns detected in 80 % of cases, each with one draw of each of the same cells.

    `within` is the variance between draws of a cell: for the same prompts only the draws differ.
    """
    return detectable_difference(math.sqrt(2 * within / cells), math.inf)


def compute_model_detectable(differences: Floats, counts: Floats) -> float:
    """Return the difference of two models' mean scores on as many clusters detected in 80 % of cases, from cluster sums (clusters,).

    Uses the cluster-robust standard error of the mean difference and its degrees of freedom. The differences given are between the model
    and the reference (leave-one-out marginal, or population marginal): two models are assumed to differ between clusters as much.
    """
    estimates = estimate_ratios(differences[:, None], counts[:, None])
    return detectable_difference(float(estimates.se[0]), float(estimates.degrees[0]))


def _estimate_model_difference(cells: pd.DataFrame, subject: BoardSubject) -> dict[str, object]:
    reference = cells[list(subject.typical)].bfill(axis=1).iloc[:, 0]
    rows = cells[reference.notna()]
    if rows.empty:
        return {"note": f"no reference scores to compare with: {subject.reference_remedy}"}
    by_cluster = (rows["score"] - reference[rows.index]).groupby(rows["cluster"], sort=False, observed=True)
    sums, counts = np.asarray(by_cluster.sum(), dtype=np.float64), np.asarray(by_cluster.count(), dtype=np.float64)
    if len(counts) < MIN_CLUSTERS:
        return {"note": explain_missing(len(counts), subject.keys.cluster_noun, "detectable difference of models")}
    if (rows["score"] - reference[rows.index]).abs().max() < _EQUAL:
        return {"note": "no detectable difference of models: it is the reference that models are compared with"}
    return {"model_detectable": compute_model_detectable(sums, counts)}


class VarianceRatio(NamedTuple):
    """Component / residual, 0 or more, its 95 % interval, and the p of a zero ratio."""

    value: float
    low: float
    high: float
    p: float


def estimate_variance_ratio(statistic: Callable[[float], float], groups: int, freedom: int) -> VarianceRatio:
    """Estimate the ratio and its interval from `statistic`, which follows F with degrees of freedom `groups` and `freedom` at the true
    ratio.

    `statistic` falls as the ratio grows. The estimate is where it is 1 (0 if it starts below 1): in balanced data the classic (F - 1) / k
    with k values per group. The interval contains the ratios at which it is between the 2.5 % and 97.5 % points of F, which is exact for
    normal effects also in unbalanced data (Wald 1947; Searle, Casella & McCulloch 1992, ch. 3; Seely & El-Bassiouni 1983).
    """
    tails = [fdtri(groups, freedom, place) for place in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)]
    value, low, high = (_find_ratio(statistic, float(quantile)) for quantile in (1.0, *tails))
    return VarianceRatio(value, low, high, float(fdtrc(groups, freedom, statistic(0.0))))


def _find_ratio(statistic: Callable[[float], float], quantile: float) -> float:
    """Return the ratio at which the statistic is `quantile`; 0 if it is never above it."""
    from scipy.optimize import brentq

    if statistic(0.0) <= quantile:
        return 0.0
    top = 1.0
    while statistic(top) > quantile:
        top *= 4
    return float(brentq(lambda ratio: statistic(ratio) - quantile, 0.0, top, xtol=1e-15))
