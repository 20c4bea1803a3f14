"""Validity of scores of the qa family: bias by the order of options, and what a judge's scores depend on other than the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from scipy.special import ndtri

from dtef_pipeline.boards.cells import register_missing_tables
from dtef_pipeline.qa.scoring import load_latest_scores
from dtef_pipeline.qa.tables import QA_JUDGEMENTS, QA_RESPONSES, QA_VALIDITY
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, MIN_CLUSTERS, estimate_ratios, explain_missing
from dtef_pipeline.statistics.proportions import compute_wilson_interval
from dtef_pipeline.tables import convert_to_schema

Flags = npt.NDArray[np.bool_]
POSITION, JUDGE_AGAINST_NUMERIC, SELF_JUDGED, FAILURES, LENGTH = (
    *("position_bias", "judge_against_numeric", "self_judged", "judge_failures", "length_and_semantic"),
)
QA_VALIDITY_CHECKS = (POSITION, JUDGE_AGAINST_NUMERIC, SELF_JUDGED, FAILURES, LENGTH)
QA_VALIDITY_READS = ("qa_scores", "qa_judgements", "qa_responses")
MAX_DISAGREED, MAX_FAILED, MAX_BY_LENGTH = 0.05, 0.02, 0.3
"""Thresholds for warnings: shares of responses, shares of judgements, and a rank correlation with length."""
_ROTATED = r"^(.*),rotated-\d+$"
_MODEL_KEYS = ("suite", "condition", "model", "model_variant")
_TEXT_KEYS = ("suite", "part", "condition", "model", "model_variant", "snapshot")
_TEXTS = (*_TEXT_KEYS, "item_id")
_LEFT_UNJUDGED = ("skipped_sample", "skipped_budget", "budget")
"""Reasons for a missing score that are not failures of the judge."""


class ValidityFinding(NamedTuple):
    """The result of a check."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    is_suspect: bool
    note: str = ""


def qa_validity(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return QA_VALIDITY of the latest snapshots. `connection` has `qa_scores`, and optionally the other tables of QA_VALIDITY_READS."""
    register_missing_tables(connection, {"qa_judgements": QA_JUDGEMENTS, "qa_responses": QA_RESPONSES})
    connection.register("latest_of_parts", load_latest_scores(connection))
    rows = [
        *_iterate_findings(connection.execute(_OF_ORDERS).df(), POSITION, _measure_position_bias),
        *_iterate_findings(connection.execute(_JUDGE_AND_NUMERIC_SCORES).df(), JUDGE_AGAINST_NUMERIC, _measure_disagreement),
        *_iterate_findings(connection.execute(_EVERY_JUDGEMENT).df(), SELF_JUDGED, _measure_self_judged),
        *_iterate_findings(connection.execute(_EVERY_JUDGEMENT).df(), FAILURES, _measure_failures),
        *_iterate_findings(connection.execute(_LENGTHS_AND_SCORES).df(), LENGTH, _correlate_with_length),
    ]
    connection.unregister("latest_of_parts")
    frame = pd.DataFrame(rows, columns=QA_VALIDITY.names)
    frame = frame.assign(place=frame["check"].map(QA_VALIDITY_CHECKS.index))
    return convert_to_schema(
        frame.sort_values(["place", "suite", "condition", "metric", "measured_by", "model_variant"]), QA_VALIDITY
    )


def _iterate_findings(frame: pd.DataFrame, check: str, finding: Any) -> Iterator[dict[str, Any]]:
    """Yield one row per model, condition and measure of the frame."""
    keys = [*_MODEL_KEYS, "metric", "measured_by"]
    for values, group in frame.groupby(keys, sort=True):
        result: ValidityFinding | None = finding(group)
        if result is not None:
            yield {**dict(zip(keys, values, strict=True)), "check": check, **result._asdict()}


_OF_ORDERS = f"""
    SELECT suite, coalesce(nullif(regexp_extract(condition, '{_ROTATED}', 1), ''), condition::VARCHAR) AS condition, condition AS of_order,
        model, model_variant, metric, measured_by, item_id AS item, avg(score) AS score
    FROM latest_of_parts WHERE score IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_LATEST_JUDGEMENTS = f"""(
    SELECT {", ".join(f"{name}::VARCHAR AS {name}" for name in _TEXTS)}, draw, evaluator, judge_variant, score, reason, self_judged
    FROM qa_judgements AS judged WHERE EXISTS (
        FROM latest_of_parts AS latest WHERE {" AND ".join(f"latest.{name}::VARCHAR = judged.{name}::VARCHAR" for name in _TEXT_KEYS)}
    )
)"""
_EVERY_JUDGEMENT = f"""
    SELECT suite, condition, model, model_variant, evaluator AS metric, judge_variant AS measured_by, score, reason, self_judged
    FROM {_LATEST_JUDGEMENTS}
"""
_OF_ONE_ANSWER = " AND ".join(
    (*(f"judged.{name} = own.{name}::VARCHAR" for name in _TEXTS), "judged.draw = own.draw"),
)
_JUDGE_AND_NUMERIC_SCORES = f"""
    SELECT judged.suite, judged.condition, judged.model, judged.model_variant, evaluator AS metric, judge_variant AS measured_by,
        (judged.score >= 0.5) <> (own.score >= 0.5) AS disagrees
    FROM qa_scores AS own JOIN {_LATEST_JUDGEMENTS} AS judged ON {_OF_ONE_ANSWER}
    WHERE own.scorer = 'numeric' AND own.score IS NOT NULL AND judged.evaluator = 'factuality' AND judged.score IS NOT NULL
"""
_LENGTHS_AND_SCORES = f"""
    SELECT judged.suite, judged.condition, judged.model, judged.model_variant, evaluator AS metric, judge_variant AS measured_by,
        length(own.response) AS length, judged.score AS score, judged.part || '/' || judged.item_id AS item
    FROM qa_responses AS own JOIN {_LATEST_JUDGEMENTS} AS judged ON {_OF_ONE_ANSWER}
    WHERE judged.evaluator = 'semantic' AND judged.score IS NOT NULL AND own.response IS NOT NULL
    ORDER BY ALL
"""


def _measure_position_bias(frame: pd.DataFrame) -> ValidityFinding | None:
    """Measure the range of the means over orders of the options, on items scored in every order; None: there is only one order.

    It is the largest difference of two orders, |d|. With t at 95 % over all pairs of orders (Bonferroni) and s the standard error of a
    paired difference, its interval is the largest |d| - t s and |d| + t s; orders matter if the interval does not begin at 0.
    """
    if frame["of_order"].nunique() < 2:
        return None
    grid = frame.pivot_table(values="score", index="item", columns="of_order").dropna().to_numpy(dtype=np.float64)
    n, orders = grid.shape
    if n < MIN_CLUSTERS:
        return ValidityFinding(None, None, None, n, False, explain_missing(n, "item", "range"))
    first, second = np.triu_indices(orders, k=1)
    estimate = estimate_ratios(grid[:, first] - grid[:, second], np.ones((n, len(first))))
    size, reach = np.abs(estimate.value), estimate.interval(1 - (1 - CONFIDENCE) / len(first))[1] - estimate.value
    low, high = max(float((size - reach).max()), 0.0), min(float((size + reach).max()), 1.0)
    return ValidityFinding(float(size.max()), low, high, n, low > 0)


def _measure_share(is_so: Flags, limit: float, text: str) -> ValidityFinding:
    """Return a share of responses, flagged above `limit`."""
    n, count = len(is_so), int(is_so.sum())
    low, high = (float(end) for end in compute_wilson_interval(count, n))
    return ValidityFinding(count / n, low, high, n, count > limit * n, f"{count:,} of {n:,} {text}" if count else "")


def _measure_disagreement(frame: pd.DataFrame) -> ValidityFinding:
    return _measure_share(
        frame["disagrees"].to_numpy(dtype=np.bool_), MAX_DISAGREED, "responses are right by one and wrong by the other"
    )


def _measure_self_judged(frame: pd.DataFrame) -> ValidityFinding | None:
    rows = frame[frame["score"].notna()]
    if not len(rows):
        return None
    finding = _measure_share(
        rows["self_judged"].fillna(False).to_numpy(dtype=np.bool_), 0.0, "judgements are by a model of the same maker"
    )
    return finding._replace(low=None, high=None)


def _measure_failures(frame: pd.DataFrame) -> ValidityFinding | None:
    rows = frame[~frame["reason"].isin(_LEFT_UNJUDGED)]
    return _measure_share(rows["score"].isna().to_numpy(dtype=np.bool_), MAX_FAILED, "judgements failed") if len(rows) else None


def _correlate_with_length(frame: pd.DataFrame) -> ValidityFinding:
    """Return Spearman's correlation over items, draws averaged first.

    The interval is Fisher's transformation with the variance (1 + r^2 / 2) / (n - 3) of Bonett and Wright (2000).
    """
    items = frame.groupby("item")[["length", "score"]].mean()
    n = len(items)
    if n < MIN_CLUSTERS or (np.ptp(items.to_numpy(dtype=np.float64), axis=0) == 0).any():
        alike = "no correlation: all responses have the same length or the same score"
        return ValidityFinding(None, None, None, n, False, explain_missing(n, "item", "correlation") or alike)
    r = float(items["length"].corr(items["score"], method="spearman"))
    middle = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    reach = ndtri((1 + CONFIDENCE) / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    low, high = float(np.tanh(middle - reach)), float(np.tanh(middle + reach))
    return ValidityFinding(r, low, high, n, abs(r) >= MAX_BY_LENGTH and low * high > 0)
