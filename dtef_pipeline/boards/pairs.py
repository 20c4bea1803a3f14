"""Two models paired on shared items: the only path from sums over clusters to a difference, its test and its verdict."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.families import BETTER, OTHER, WORSE
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.differences import MARGIN, Codes, Floats, compute_paired_statistics, remove_rounding, verdicts
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.statistics.products import product
from dtef_pipeline.tables import COMPARISONS

EQUIVALENT, UNDECIDED = "equivalent", "undecided"


class PairSums(NamedTuple):
    """Sums over each cluster's items that both models of a pair have a score for, (clusters, pairs) each."""

    scores: Floats
    other_scores: Floats
    counts: Floats
    """Items, or their weights."""

    @property
    def differences(self) -> Floats:
        return remove_rounding(self.scores - self.other_scores, self.scores + self.other_scores)

    def average_clusters(self) -> PairSums:
        """Replace each cluster's sums by its means, so that each counts once."""
        has_score = self.counts > 0
        scores, other_scores = (
            np.divide(part, self.counts, out=np.zeros(part.shape), where=has_score) for part in (self.scores, self.other_scores)
        )
        return PairSums(scores, other_scores, has_score.astype(np.float64))


def sum_shared_items(scores: Floats, cluster: Codes, left: Codes, right: Codes, weight: Floats | None = None) -> PairSums:
    """Sum `scores` (items, models), NaN if unscored, by `cluster` (items,), from 0, for the model positions `left`, `right` (pairs,).

    `weight` (items,): of each item; None for equal weights. Sums are products of a cluster's scores with the mask of scored items.
    """
    has_score = ~np.isnan(scores)
    mask, values = has_score.astype(np.float64), np.where(has_score, scores, 0.0)
    weighted = mask if weight is None else mask * weight[:, None]
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(cluster.max() + 2))
    sums = PairSums(*np.empty((3, len(starts) - 1, len(left))))
    for place, (start, end) in enumerate(pairwise(starts)):
        rows = order[start:end]
        shared = product(values[rows].T, weighted[rows])
        sums.scores[place], sums.other_scores[place] = shared[left, right], shared[right, left]
        sums.counts[place] = product(mask[rows].T, weighted[rows])[left, right]
    return sums


def compare_pairs(
    sums: PairSums, *, noun: str, shared: Floats | float = 0.0, turned: npt.NDArray[np.bool_] | None = None
) -> pd.DataFrame:
    """Return one row per pair, seen from the model with the higher mean: `compute_paired_statistics`, `score`, `other_score`, and `turned`.

    `turned` (pairs,): the pairs seen from the right model, by default those where its mean is higher; `shared`: see
    `compute_paired_statistics`; `noun`: name of a cluster in notes. Without a shared item a mean is NaN.
    """
    differences, total = sums.differences, sums.counts.sum(axis=0)
    if turned is None:
        turned = remove_rounding(differences.sum(axis=0), np.abs(differences).sum(axis=0)) < 0
    statistics = compute_paired_statistics(np.where(turned, -differences, differences), sums.counts, shared=shared, noun=noun)
    with np.errstate(invalid="ignore"):
        means, second = (part.sum(axis=0) / total for part in (sums.scores, sums.other_scores))
    return statistics.assign(score=np.where(turned, second, means), other_score=np.where(turned, means, second), turned=turned)


def add_model_columns(statistics: pd.DataFrame, models: pd.DataFrame, left: Codes, right: Codes) -> pd.DataFrame:
    """Add to `statistics` (from `compare_pairs`) the columns of `models` for the model that a row is seen from, and `other_...` for the
    other one.
    """
    turned = statistics["turned"].to_numpy()
    sides = {"": np.where(turned, right, left), "other_": np.where(turned, left, right)}
    named = {
        f"{side}{name}": models[name].to_numpy(dtype=object)[place] for side, place in sides.items() for name in models.columns
    }
    return statistics.assign(**named).rename(columns={"other_model_variant": OTHER[1]})


def compare_models(
    models: pd.DataFrame,
    scores: Floats,
    cluster: Codes,
    *,
    noun: str,
    weight: Floats | None = None,
    alike: bool = False,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Return one row per two models that share an item, better one first: columns of `compare_pairs`, `n_items`, the models, the verdict.

    `models` (models,) names them; `scores`, `cluster` and `weight`: see `sum_shared_items`; `alike`: each cluster counts once, by its mean.
    Intervals (95 %) and `p` take clusters as independent. `p_adjusted` is adjusted over all pairs (Holm 1979).

    `verdict`: better if p_adjusted is below .05, else equivalent if the 90 % interval is within +-`margin`, else undecided.
    """
    left, right = np.triu_indices(len(models), k=1)
    has_score = (~np.isnan(scores)).astype(np.int64)
    n_items = (has_score.T @ has_score)[left, right]
    left, right, n_items = left[n_items > 0], right[n_items > 0], n_items[n_items > 0]
    if not len(left):
        return pd.DataFrame()
    sums = sum_shared_items(scores, cluster, left, right, weight)
    statistics = compare_pairs(sums.average_clusters() if alike else sums, noun=noun)
    statistics = statistics.assign(n_items=n_items, n_pairs=n_items, p_adjusted=holm(statistics["p"]))
    statistics["verdict"] = verdicts(statistics, (BETTER, WORSE, EQUIVALENT, UNDECIDED), margin)
    return add_model_columns(statistics, models, left, right)


def sort_by_difference(pairs: pd.DataFrame, boards: tuple[str, ...] = ()) -> pd.DataFrame:
    """Sort the rows for publication: by board, largest difference first, with the columns of COMPARISONS and `boards`."""
    order = [*boards, "difference", *(name for name in (*MODEL, *OTHER) if name in pairs)]
    rows = pairs.sort_values(order, ascending=[name != "difference" for name in order], ignore_index=True)
    return rows[[name for name in dict.fromkeys((*boards, *COMPARISONS.names)) if name in rows]]
