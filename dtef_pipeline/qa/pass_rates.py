"""pass@k of a model: the chance that of k programs for an item one or more pass, as a mean over items with an interval over items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dtef_pipeline.qa.mean_columns import PASS_COLUMNS
from dtef_pipeline.qa.mean_intervals import group_means, mean_intervals
from dtef_pipeline.qa.result_means import codes
from dtef_pipeline.statistics.cluster_robust import Codes, Floats
from dtef_pipeline.statistics.proportions import pass_at_k
from dtef_pipeline.text.counted import counted

PASS_KS = (1, 5, 10)
"""The k that are reported where there are draws enough."""


def pass_rates(scores: pa.Table, group_by: Sequence[str], ks: Sequence[int] = PASS_KS) -> pa.Table:
    """One row per group and k, groups in the order in which they first occur: the columns of `group_by`, and PASS_COLUMNS.

    `scores`: rows of `qa_scores` with `item_id`, `score` (1: passed; null: no answer, or it was not run) and the columns of `group_by`.
    Nothing is extrapolated: an item with fewer scored draws than k is left out, and counted.
    """
    group, first = codes(scores, group_by)
    item, first_of_item = codes(scores, [*group_by, "item_id"])
    score = scores["score"].cast(pa.float64()).to_numpy()
    known = ~np.isnan(score)
    draws = np.bincount(item[known], minlength=len(first_of_item))
    passed = np.bincount(item[known], score[known] == 1, len(first_of_item))
    of_item = group[first_of_item]
    named = scores.select(list(group_by)).take(pa.array(first))
    parts = [_rates_of_k(named, pass_at_k(draws, passed, k), draws, of_item, k) for k in ks]
    rows = pa.concat_tables(parts)
    return rows.take(pa.array(np.arange(len(rows)).reshape(len(ks), -1).T.ravel()))


def _rates_of_k(named: pa.Table, chance: Floats, draws: Codes, group: Codes, k: int) -> pa.Table:
    groups, enough = len(named), ~np.isnan(chance)
    values, of_value = chance[enough], group[enough]
    found = mean_intervals(values, of_value, groups, np.ones(groups, dtype=bool), "item")
    n_items = np.bincount(of_value, minlength=groups)
    too_few = np.bincount(group[~enough & (draws > 0)], minlength=groups)
    columns = {
        "k": np.full(groups, k),
        "n_items": n_items,
        "n_too_few": too_few,
        "pass_at_k": group_means(values, of_value, groups),
        "pass_low": found.low,
        "pass_high": found.high,
        "note": [_note(int(n), int(few), k, why) for n, few, why in zip(n_items, too_few, found.why_none, strict=True)],
    }
    for column in PASS_COLUMNS:
        named = named.append_column(column, pa.array(columns[column.name], from_pandas=True).cast(column.type))
    return named


def _note(n_items: int, too_few: int, k: int, why: str) -> str | None:
    if not n_items:
        return f"no item has {counted(k, 'scored draw')}"
    left_out = f"{counted(too_few, 'item')} with fewer than {counted(k, 'scored draw')} left out" if too_few else ""
    return "; ".join(filter(None, (left_out, why))) or None
