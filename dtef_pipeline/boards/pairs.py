"""Two models paired on shared items: the only path from sums over clusters to a difference, its test and its verdict; and the families of
pairs within which p is adjusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import BoardOptions, BoardSubject
from dtef_pipeline.boards.item_means import codes, describe_few_clusters
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.differences import (
    MARGIN,
    Codes,
    Floats,
    compute_paired_statistics,
    places,
    remove_rounding,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm
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


Floating = TypeVar("Floating", bound=np.floating)


def product(left: npt.NDArray[Floating], right: npt.NDArray[Floating]) -> npt.NDArray[Floating]:
    """Return `left` @ `right`, (..., rows, inner) and (..., inner, columns), computed by the BLAS in the calling thread."""
    _use_one_thread()
    return np.asarray(left @ right)


@cache
def _use_one_thread() -> None:
    """Limit the BLAS of this process to one thread from now on.

    Its threads wait for each other at every product, which on a busy machine takes many times as long as multiplying; and the last digits
    of single-precision products depend on the number of threads, so an interval would depend on the machine.
    """
    threadpool_limits(limits=1, user_api="blas")


OTHER = ("other_model", "other_variant")
AMONG_MODELS, OF_REFERENCE, OF_BASELINES = "models", "reference", "baselines"
COMPARED_FAMILIES = (OF_REFERENCE, AMONG_MODELS, OF_BASELINES)
"""In the order in which they are shown."""
BETTER, WORSE, ALIKE, UNTESTED = "better", "worse", "no clear difference", "not tested"
_IN_WORDS = {
    BETTER: "this model is better",
    WORSE: "the other model is better",
    ALIKE: "no difference is found",
    UNTESTED: "nothing can be tested",
}


def add_families(table: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """Add the columns `adjusted_over`, `p_adjusted`, `verdict`, `parsed_p_adjusted`, `parsed_verdict`; `parsed_note` says where verdicts differ.

    `table`: as in `compare_all_pairs`, with all settings. p is adjusted by Holm over the rows of a family in the same setting;
    a verdict follows from the adjusted p and SIGNIFICANCE.
    """
    sides = [table[name].astype(str) for name in ("model_variant", "other_variant")]
    is_first_computed, is_other_computed = (side.map(is_computed).astype(bool) for side in sides)
    is_of_reference = (sides[0] == options.subject.reference) | (sides[1] == options.subject.reference)
    cases = [~is_first_computed & ~is_other_computed, (is_first_computed ^ is_other_computed) & is_of_reference]
    names = np.select(cases, [AMONG_MODELS, OF_REFERENCE], OF_BASELINES).astype(object)
    result = table.assign(adjusted_over=names)
    groups = [result["adjusted_over"], *(table[name].astype(str) for name in options.subject.keys.asked)]
    for p, adjusted, difference, verdict in (
        ("p", "p_adjusted", "difference", "verdict"),
        ("parsed_p", "parsed_p_adjusted", "parsed_difference", "parsed_verdict"),
    ):
        result[adjusted] = table[p].astype(np.float64).groupby(groups).transform(lambda values: holm(values))
        words = np.where(result[difference] > 0, BETTER, np.where(result[difference] < 0, WORSE, ALIKE))
        words = np.where(result[adjusted] < SIGNIFICANCE, words, ALIKE)
        result[verdict] = np.where(result[adjusted].isna(), UNTESTED, words).astype(object)
    # Rows of which all was read say one thing, whatever p of other rows is adjusted with theirs.
    all_read = (result["n_parsed_pairs"] == result["n_pairs"]) & (result["parsed_p"] == result["p"])
    for column in ("parsed_p_adjusted", "parsed_verdict"):
        result[column] = result[column].mask(all_read, result[column.removeprefix("parsed_")])
    return result.assign(parsed_note=describe_disagreement(result, options.subject, "both answered readably", _IN_WORDS))


def describe_disagreement(table: pd.DataFrame, subject: BoardSubject, where: str, words: Mapping[str, str]) -> list[str]:
    """Return, for each row, a note if the verdict of parsed scores differs from the policy's; empty if they agree or are unknown.

    `table` has `verdict`, `parsed_verdict` and, as `parsed_note`, why parsed scores have no verdict (null if not examined). `where`
    describes the cells with parsed scores, and `words` states their verdicts.
    """
    credits = [score for score in subject.credits.values() if score is not None]
    policy = f"by the published policy, which gives unread responses {min(credits):g} to {max(credits):g}"
    notes = []
    for verdict, parsed_verdict, note in zip(table["verdict"], table["parsed_verdict"], table["parsed_note"], strict=True):
        if verdict == parsed_verdict or pd.isna(note) or pd.isna(verdict):
            notes.append("")
            continue
        reason = f" ({note})" if note else ""
        notes.append(f"{verdict} {policy}; on the pairs that {where}: {words.get(parsed_verdict, parsed_verdict)}{reason}")
    return notes


class BoardGrid(NamedTuple):
    """The items of one board and the models with a score for any."""

    keys: dict[str, str]
    """The values that identify the board, by column."""
    rows: pd.DataFrame
    """(models,): model and model_variant, in the order of the text."""
    means: Floats
    """(items, models), each the mean over the draws that have a score; NaN: none. Items are in the order of their clusters, then of the text."""
    unit: Codes
    """(items,): equal for items of one cluster, from 0, rising."""
    noun: str
    """The name of such a group: `cluster`, or `item` if each item is its own."""
    scope: str = ""
    """What intervals cover, in words, if there are too few clusters and items are taken as independent."""

    def n_units(self) -> Codes:
        """Return (models,), the number of units in which each has a score."""
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        return np.asarray((np.add.reduceat(~np.isnan(self.means), starts, axis=0, dtype=np.int64) > 0).sum(axis=0))


def iterate_board_grids(scores: pa.Table, names: Sequence[str]) -> Iterator[BoardGrid]:
    """Yield a grid for each combination of `names` with a score, in order of first occurrence.

    `scores`: rows with `item_id`, `cluster`, `score`, `model`, `model_variant` and the columns of `names`.
    """
    scores = scores.filter(pc.is_valid(scores["score"]))
    group, first = codes(scores, names)
    frame = scores.select(["item_id", "cluster", *MODEL, "score"]).to_pandas()
    model, models = places(frame, list(MODEL))
    item, cluster = (places(frame, [name])[0] for name in ("item_id", "cluster"))
    rows = pd.DataFrame({"item": item, "cluster": cluster, "model": model, "score": frame["score"].astype(np.float64)})
    named = scores.select(list(names)).take(pa.array(first)).to_pylist()
    for code, part in rows.groupby(group, sort=True):
        yield _build_board_grid(named[code], part, models)


def _build_board_grid(named: dict[str, str], rows: pd.DataFrame, models: pd.DataFrame) -> BoardGrid:
    n_items, n_clusters = rows["item"].nunique(), rows["cluster"].nunique()
    several = MIN_CLUSTERS <= n_clusters < n_items
    means = rows.pivot_table("score", ["cluster", "item"] if several else ["item"], "model")
    unit = pd.factorize(means.index.get_level_values(0))[0].astype(np.int64)
    note = describe_few_clusters(n_clusters) if n_clusters < n_items else ""
    board_models = models.iloc[means.columns].reset_index(drop=True)
    return BoardGrid(named, board_models, means.to_numpy(), unit, "cluster" if several else "item", note)


_MAX_UNITS = 1_000
"""Number of units above which they are grouped into that many lots, each a cluster, to bound memory and time."""


def compare_boards(scores: pa.Table, boards: tuple[str, ...], *, margin: float = MARGIN) -> pd.DataFrame:
    """Return one row per two model variants of a board that share an item, better one first, largest difference first; see COMPARISONS.

    `scores`: as in `iterate_board_grids`, of one snapshot per partition; `boards`: columns that identify boards. A model's score for an
    item is the mean over its draws; `difference` is the mean over shared items. Intervals (95 %) and `p` take clusters as independent, or
    items if there are fewer than 5 clusters or each item is its own. `p_adjusted` is adjusted over all pairs of the board (Holm 1979). The
    verdict is that of `compare_models`, but always undecided with 2 to 4 clusters, because their items do not represent others.
    """
    tables = [compare_grid(grid, margin).assign(**grid.keys) for grid in iterate_board_grids(scores, boards)]
    parts = [part for part in tables if len(part)]
    return sort_by_difference(pd.concat(parts, ignore_index=True), boards) if parts else pd.DataFrame()


def compare_grid(grid: BoardGrid, margin: float = MARGIN) -> pd.DataFrame:
    """Apply `compare_models` to one board."""
    statistics = compare_models(grid.rows, grid.means, grid.unit % _MAX_UNITS, noun=grid.noun, margin=margin)
    if not grid.scope or not len(statistics):
        return statistics
    is_open = (statistics["note"] == "") & statistics["low"].notna()
    note = statistics["note"].mask(is_open, f"{grid.scope}, so the verdict stays open")
    return statistics.assign(verdict=UNDECIDED, note=note)
