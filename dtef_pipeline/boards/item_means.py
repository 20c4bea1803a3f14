"""Mean scores of one model in one setting: over items and over clusters of items, with intervals and parse rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.mean_columns import MEAN_COLUMNS, PASS_COLUMNS, PASSED_METRIC, RIGHT_METRIC
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, Codes, Floats, estimate_groups, explain_missing
from dtef_pipeline.statistics.proportions import compute_unit_interval, compute_wilson_interval, estimate_pass_at_k
from dtef_pipeline.tables import METRIC_FIELD
from dtef_pipeline.text.number_words import format_count

WILSON_KIND, T_KIND, CLUSTERED_KIND = "wilson", "t", "clustered"


class MeanIntervals(NamedTuple):
    """Intervals of group means, (groups,) each: low, high (95 %, 0-1; NaN if none), the kind (None if none), and why there is none."""

    low: Floats
    high: Floats
    kind: npt.NDArray[np.object_]
    """`wilson`, `t` or `clustered`."""
    why_none: list[str]
    """Empty where there is an interval, or nothing to make one of."""


def group_means(values: Floats, group: Codes, groups: int) -> Floats:
    """Return (groups,) the mean of the known values of each group, NaN if there are none. `values` (n,): NaN if unknown; `group` (n,)."""
    is_known = np.isfinite(values)
    counts = np.bincount(group[is_known], minlength=groups)
    sums = np.bincount(group[is_known], values[is_known], groups)
    return np.asarray(np.divide(sums, counts, out=np.full(groups, np.nan), where=counts > 0))


def compute_mean_intervals(
    values: Floats,
    group: Codes,
    groups: int,
    is_item_group: npt.NDArray[np.bool_],
    noun: str,
    label: str = "interval",
    *,
    sizes: Floats | None = None,
) -> MeanIntervals:
    """Return 95 % intervals of the means of `values` by `group`, (n,) each, without NaN: one value per independent cluster, 0-1.

    `is_item_group` (groups,): whether each value belongs to one item, which is right or wrong. If so and all values are 0 or 1, for any number
    of draws, the interval is Wilson's; otherwise `compute_unit_interval` of the jackknife over clusters, from 5 clusters on. `sizes` (n,):
    number of items behind each value, if the mean is over items; None weights values equally. `noun`: name of a cluster in reasons,
    `label`: name of the interval.
    """
    counts = np.bincount(group, minlength=groups)
    binary = is_item_group & (np.bincount(group, (values != 0) & (values != 1), groups) == 0) & (counts > 0)
    weights = np.ones(len(values)) if sizes is None else sizes
    low, high = compute_unit_interval(estimate_groups(values * weights, weights, group, groups))
    exact = compute_wilson_interval(np.where(binary, np.bincount(group, values, groups), 0), np.where(binary, counts, 0))
    kind = np.full(groups, None, dtype=object)
    kind[counts >= MIN_CLUSTERS] = T_KIND if sizes is None else CLUSTERED_KIND
    kind[binary] = WILSON_KIND
    whys = [
        explain_missing(int(count), noun, label) if count and k is None else "" for count, k in zip(counts, kind, strict=True)
    ]
    return MeanIntervals(np.where(binary, exact[0], low), np.where(binary, exact[1], high), kind, whys)


def compute_result_means(scores: pa.Table, group_by: Sequence[str], *, macro_noted: bool = True) -> pa.Table:
    """Return one row per group, in order of first occurrence: the columns of `group_by`, and MEAN_COLUMNS.

    `scores`: rows with `item_id`, `cluster`, `status`, `value`, `score` and the columns of `group_by`, one per response of one metric; an
    optional `metric` tells right-or-wrong metrics (Wilson's interval) from graded ones. The groups must separate metrics, models and
    conditions, which are never averaged together. Responses without a score are counted but excluded from means. `macro_noted`:
    whether notes explain a missing interval of the mean over clusters.
    """
    group, first = codes(scores, group_by)
    groups = len(first)
    numbers = {name: codes(scores, [*group_by, column])[0] for name, column in (("item", "item_id"), ("cluster", "cluster"))}
    values = {name: scores[name].cast(pa.float64()).to_numpy() for name in ("value", "score")}
    responses = pd.DataFrame({"group": group, **numbers, **values})
    items, parsed_items = (_average(responses, name, "item") for name in ("score", "value"))
    clusters = _average(items, "mean", "cluster")
    has_score = responses["score"].notna().to_numpy()
    n_scored, n_items, n_clusters = (
        np.bincount(part, minlength=groups) for part in (group[has_score], items["group"], clusters["group"])
    )
    n_skipped = np.bincount(group, pc.starts_with(scores["status"], "skipped").to_numpy(), groups)
    read = np.bincount(group, (scores["status"].to_numpy() == "ok") & has_score, groups)
    # Whether each cluster of a group is one item.
    lone = n_items == n_clusters
    two_valued = _has_two_values(scores, first)
    micro = _compute_item_intervals(items, clusters, lone, two_valued)
    macro = compute_mean_intervals(
        *_split_means(clusters), groups, lone & two_valued, "cluster", "interval for the mean of groups"
    )
    n_total = np.bincount(group, minlength=groups)
    whys = zip(n_scored, micro.why_none, macro.why_none if macro_noted else [""] * groups, lone.tolist(), strict=True)
    notes = (("" if n else "no response has a score", _join_reasons(*why)) for n, *why in whys)
    columns: dict[str, Any] = {
        "n_total": n_total,
        "n_scored": n_scored,
        "n_skipped": n_skipped,
        "n_failed": n_total - n_scored - n_skipped,
        "n_items": n_items,
        "n_clusters": n_clusters,
        "parse_rate": np.divide(read, n_scored, out=np.full(groups, np.nan), where=n_scored > 0),
        "score": group_means(*_split_means(items), groups),
        "score_low": micro.low,
        "score_high": micro.high,
        "interval_kind": micro.kind,
        "score_given_parsed": group_means(*_split_means(parsed_items), groups),
        "macro_score": group_means(*_split_means(clusters), groups),
        "macro_low": macro.low,
        "macro_high": macro.high,
        "note": ["; ".join(filter(None, reasons)) or None for reasons in notes],
    }
    rows = scores.select(list(group_by)).take(pa.array(first))
    for column in MEAN_COLUMNS:
        # NaN is null.
        rows = rows.append_column(column, pa.array(columns[column.name], from_pandas=True).cast(column.type))
    return rows


def _average(rows: pd.DataFrame, column: str, by: str) -> pd.DataFrame:
    """Return the `mean` of the known values of a column for each number in `by`, its `size`, and its `group` and `cluster`."""
    known = rows[rows[column].notna()]
    return known.groupby(by, sort=True).agg(
        mean=(column, "mean"), size=(column, "size"), group=("group", "first"), cluster=("cluster", "first")
    )


def codes(rows: pa.Table, names: Sequence[str]) -> tuple[Codes, Codes]:
    """Return a number for each row, equal where the columns are, in order of first occurrence; and the first row of each number.

    Null is a value like any other.
    """
    different = list(dict.fromkeys(names))
    frame = rows.select(different).to_pandas()
    number = frame.groupby(different, sort=False, dropna=False, observed=True).ngroup().to_numpy(dtype=np.int64)
    return number, np.unique(number, return_index=True)[1].astype(np.int64)


def _split_means(rows: pd.DataFrame) -> tuple[Floats, Codes]:
    """Return the means of `_average` and their groups, (rows,) each."""
    return rows["mean"].to_numpy(np.float64), rows["group"].to_numpy(np.int64)


def _compute_item_intervals(
    items: pd.DataFrame,
    clusters: pd.DataFrame,
    lone: npt.NDArray[np.bool_],
    two_valued: npt.NDArray[np.bool_],
) -> MeanIntervals:
    """Return intervals of the mean over items of each group, by whole clusters, because items of a cluster fail together.

    Items are the independent units if each cluster is one item (`lone`), or if the group is a single cluster. With 2 to 4 clusters the
    spread between them cannot be estimated: the interval is over items, and `why_none` says so.
    """
    n_clusters = np.bincount(clusters["group"], minlength=len(lone))
    together = ~lone & (n_clusters >= MIN_CLUSTERS)
    items, clusters = items[~together[items["group"]]], clusters[together[clusters["group"]]]
    sizes = clusters["size"].to_numpy(np.float64)
    by_item = compute_mean_intervals(*_split_means(items), len(lone), two_valued, "item")
    by_cluster = compute_mean_intervals(*_split_means(clusters), len(lone), np.zeros_like(lone), "cluster", sizes=sizes)
    low, high, kind = (np.where(together, *pair) for pair in zip(by_cluster[:3], by_item[:3], strict=True))
    few_notes = ["" if single else describe_few_clusters(n) for n, single in zip(n_clusters.tolist(), lone, strict=True)]
    whys = zip(together, by_cluster.why_none, by_item.why_none, few_notes, strict=True)
    return MeanIntervals(low, high, kind, [reason if use else item_reason or note for use, reason, item_reason, note in whys])


def describe_few_clusters(n_clusters: int) -> str:
    """Describe what an interval by items covers with 2 to 4 clusters; empty for other numbers."""
    few = 1 < n_clusters < MIN_CLUSTERS
    return f"the interval covers only other items of these {format_count(n_clusters, 'cluster')}" if few else ""


def _has_two_values(scores: pa.Table, first: Codes) -> npt.NDArray[np.bool_]:
    """Return (groups,) whether the metric is right or wrong by nature: a weighted score can be 1 everywhere and still is no share.

    Rows without a metric count as right or wrong.
    """
    if METRIC_FIELD.name not in scores.column_names:
        return np.ones(len(first), dtype=bool)
    metrics = scores[METRIC_FIELD.name].take(pa.array(first))
    return np.asarray(pc.is_in(metrics, pa.array([RIGHT_METRIC, PASSED_METRIC])).to_numpy(zero_copy_only=False), dtype=bool)


def _join_reasons(micro: str, macro: str, lone: bool) -> str:
    """Explain why means have no interval; a shared reason is given once. `lone`: the means are the same."""
    (quantity, _, reason), (other_what, _, other_why) = micro.partition(": "), macro.partition(": ")
    if micro and macro and (lone or reason == other_why):
        return f"{quantity}, {other_what}: {reason}"
    return "; ".join(filter(None, (micro, macro)))


PASS_KS = (1, 5, 10)
"""The k that are reported where there are draws enough."""


def compute_pass_rates(scores: pa.Table, group_by: Sequence[str], ks: Sequence[int] = PASS_KS) -> pa.Table:
    """Return one row per group and k, groups in order of first occurrence: the columns of `group_by`, and PASS_COLUMNS.

    `scores`: rows with `item_id`, `score` (1 if passed; null if there was no answer or no run) and the columns of `group_by`. Nothing is
    extrapolated: an item with fewer scored draws than k is left out, and counted.
    """
    group, first = codes(scores, group_by)
    item, first_of_item = codes(scores, [*group_by, "item_id"])
    score = scores["score"].cast(pa.float64()).to_numpy()
    is_known = ~np.isnan(score)
    draws = np.bincount(item[is_known], minlength=len(first_of_item))
    n_passed = np.bincount(item[is_known], score[is_known] == 1, len(first_of_item))
    item_groups = group[first_of_item]
    named = scores.select(list(group_by)).take(pa.array(first))
    parts = [_compute_rates_of_k(named, estimate_pass_at_k(draws, n_passed, k), draws, item_groups, k) for k in ks]
    rows = pa.concat_tables(parts)
    return rows.take(pa.array(np.arange(len(rows)).reshape(len(ks), -1).T.ravel()))


def _compute_rates_of_k(named: pa.Table, chance: Floats, draws: Codes, group: Codes, k: int) -> pa.Table:
    groups, enough = len(named), ~np.isnan(chance)
    values, value_groups = chance[enough], group[enough]
    intervals = compute_mean_intervals(values, value_groups, groups, np.ones(groups, dtype=bool), "item")
    n_items = np.bincount(value_groups, minlength=groups)
    too_few = np.bincount(group[~enough & (draws > 0)], minlength=groups)
    draws_of_k = format_count(k, "scored draw")
    left_out = [f"{format_count(few, 'item')} with fewer than {draws_of_k} left out" if few else "" for few in too_few.tolist()]
    notes = [
        ("; ".join(filter(None, parts)) or None) if n else f"no item has {draws_of_k}"
        for n, *parts in zip(n_items, left_out, intervals.why_none, strict=True)
    ]
    columns = {
        "k": np.full(groups, k),
        "n_items": n_items,
        "n_too_few": too_few,
        "pass_at_k": group_means(values, value_groups, groups),
        "pass_low": intervals.low,
        "pass_high": intervals.high,
        "note": notes,
    }
    for column in PASS_COLUMNS:
        named = named.append_column(column, pa.array(columns[column.name], from_pandas=True).cast(column.type))
    return named
