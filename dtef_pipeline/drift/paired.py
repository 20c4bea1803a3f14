"""Snapshots compared by cluster with a frozen baseline, and with the other models in the same snapshots: the input of the drift evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.evidence import Evidence, Outages, evidence
from dtef_pipeline.drift.rule import MIN_ANSWERED, is_large, select_answered

Floats = npt.NDArray[np.float64]
_MOST_CHANGES = 5


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences to the baseline, in units of the score; one place per comparable snapshot, in the order given.

    `means`: (snapshots,) mean difference over the items scored in the snapshot and in the baseline. `spread`: (snapshots,) its standard
    error from the differences between whole clusters, without the baseline's own share; 0 if there is one cluster or one snapshot in the
    baseline. `sampling`: (snapshots,) the same if each item were a cluster, at most `spread`: the scatter of single responses. `by_item`:
    (items, snapshots) mean differences, NaN if an item has none. `baseline`: number of first snapshots in the baseline; fewer than
    requested if there are fewer. `level`: mean score of the items in the baseline.
    """

    snapshots: tuple[str, ...]
    means: Floats
    spread: Floats
    sampling: Floats
    by_item: pd.DataFrame
    baseline: int
    level: float

    @property
    def is_large(self) -> bool:
        """Whether the range of the snapshots, each at the baseline's level plus its mean difference, reaches the rule's thresholds.

        If every prompt has a score in every snapshot this is the documented rule; prompts with missing scores are included.
        """
        if not len(self.means):
            return False
        return is_large(self.level + float(self.means.min()), float(np.ptp(self.means)))

    @property
    def begin(self) -> int:
        """The first snapshot after the baseline, or after the first one if there are no more than the baseline."""
        return self.baseline if len(self.snapshots) > self.baseline else 1

    @property
    def split(self) -> int:
        """The first snapshot after the single change that fits the means best by least squares, from `begin` on. No test."""
        sums, n = np.cumsum(self.means), len(self.means)
        if n <= self.begin:
            return self.begin
        after = np.arange(self.begin, n)
        jumps = (sums[-1] - sums[after - 1]) / (n - after) - sums[after - 1] / after
        return int(after[np.argmax(after * (n - after) * jumps**2)])

    def list_top_changes(self, first: int, until: int | None = None, *, without: Collection[int] = ()) -> list[dict[str, Any]]:
        """Return the five `item`s whose mean difference changed most at snapshot `first`, the largest `shift` first, in units of the score.

        `until`: number of first snapshots to use. `without`: places of excluded snapshots.
        """
        if not 0 < first < len(self.snapshots):
            return []
        values = self.by_item.to_numpy(copy=True)
        values[:, list(without)] = np.nan
        values = values[:, :until]
        both = np.isfinite(values[:, :first]).any(axis=1) & np.isfinite(values[:, first:]).any(axis=1)
        shifts = np.nanmean(values[both, first:], axis=1) - np.nanmean(values[both, :first], axis=1)
        order = np.argsort(-np.abs(shifts), kind="stable")[:_MOST_CHANGES]
        names = self.by_item.index.to_numpy()[both]
        return [{"item": str(names[i]), "shift": float(shifts[i])} for i in order]


def pair_with_baseline(
    values: pd.DataFrame, clusters: Sequence[str], *, baseline: int, items: Sequence[str] | None = None
) -> Paired:
    """Compare each snapshot with the mean of the item's values in the first `baseline` snapshots.

    `values`: (items, snapshots), scores 0-1 in chronological order, NaN if an item has none; snapshots with too few answers
    (`select_answered`), or that share no item with the baseline, are left out. `clusters`: (items,) each item's cluster: items of one
    cluster are not independent. `items`: (items,) names for reported items, equal across partitions, by default the clusters. A snapshot's
    values depend only on it and the baseline, never on later snapshots.
    """
    values = select_answered(values)
    frozen = min(baseline, len(values.columns))
    scores = values.to_numpy(dtype=np.float64)
    reference = compute_known_means(scores[:, :frozen], axis=1)
    differences = scores - reference[:, None]
    shared = np.isfinite(differences)
    mask = np.asarray(shared.any(axis=0))
    parts = [part[:, mask] for part in (np.where(shared, differences, 0.0), shared.astype(np.float64))]
    (sums, counts), _ = _sum_by_label(parts, clusters)
    (item_sums, item_counts), names = _sum_by_label(parts, clusters if items is None else items)
    labels = tuple(str(label) for label, shares in zip(values.columns, mask.tolist(), strict=True) if shares)
    means = _compute_ratio(sums.sum(axis=0), counts.sum(axis=0))
    # Removes the noise of the baseline's mean: the variance of a later snapshot's difference is (k + 1) / k times its own, within the
    # baseline (k - 1) / k times.
    is_baseline = np.arange(len(labels)) < frozen
    factor = np.sqrt(np.where(is_baseline, frozen / max(frozen - 1, 1), frozen / (frozen + 1)))
    spread, single = (_compute_standard_error(*values, means) * factor for values in ((sums, counts), (parts[0], parts[1])))
    by_item = pd.DataFrame(_compute_ratio(item_sums, item_counts), index=names, columns=list(labels))
    level = float(reference[np.isfinite(reference)].mean()) if np.isfinite(reference).any() else math.nan
    return Paired(labels, means, spread, np.minimum(spread, single), by_item, min(frozen, len(labels)), level)


def _sum_by_label(parts: Sequence[Floats], labels: Sequence[str]) -> tuple[list[Floats], pd.Index]:
    """Return, for each (items, snapshots) part, the sums over the items of each label; and the labels."""
    codes, names = pd.factorize(np.asarray(labels, dtype=object), sort=True)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names)))
    sums = [np.add.reduceat(part[order], starts, axis=0) if len(names) else part for part in parts]
    return sums, pd.Index(names)


def _compute_standard_error(sums: Floats, counts: Floats, means: Floats) -> Floats:
    """Return the (snapshots,) standard error of the mean over items when whole clusters are drawn: sqrt(Q / (Q - 1) sum (sum - n mean)^2) /
    N.

    With clusters of equal size this is the standard deviation of cluster means / sqrt(Q). Cochran (1977), Sampling Techniques, 6.4, for a
    ratio of sums over clusters.
    """
    n_clusters = (counts > 0).sum(axis=0)
    squares = ((sums - counts * means) ** 2).sum(axis=0)
    return np.asarray(np.nan_to_num(np.sqrt(_compute_ratio(n_clusters * squares, n_clusters - 1)) / counts.sum(axis=0)))


def compute_known_means(values: Floats, *, axis: int) -> Floats:
    """Return the means of known values along an axis, NaN where there are none."""
    is_known = np.isfinite(values)
    return _compute_ratio(np.where(is_known, values, 0.0).sum(axis=axis), is_known.sum(axis=axis))


def _compute_ratio(above: Floats, below: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Floats:
    """Divide; NaN unless `below` is above 0."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0))


_MEDIAN_FROM = 3
"""Number of models from which their median is used, which one moving model does not affect."""
_PRESENT = 0.8
"""Share of the snapshots, and of those of the baseline, that a control must have."""
_MAX_MODELS = 2 / 3
"""Share of the models that must have moved, by at least half of the common shift, for a shared shift."""


class Scores(NamedTuple):
    """The scores of one series, each (items, snapshots): under the published policy, and the mean of the parsed draws (None if unknown)."""

    policy: pd.DataFrame
    parsed: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The other models of the same snapshots. `models`: their names.

    `excess`: (snapshots,) how much further a series is from its baseline than they are from theirs, on the items that both have in the
    snapshot: the median over them (the mean of two); NaN if no model has it. `beyond`: (snapshots,) the same, but with two others the
    distance to the nearer one.
    """

    models: tuple[str, ...]
    excess: Floats
    beyond: Floats

    def spread(self, series_spread: Floats) -> Floats:
        """Return the (snapshots,) standard error of `excess`, if others' responses scatter like those of the series (`series_spread`)."""
        return np.asarray(series_spread * math.sqrt(1 + 1 / len(self.models)))


def choose_control(values: pd.DataFrame, pairs: Paired, peers: Mapping[str, pd.DataFrame]) -> Control | None:
    """Return the models among `peers` (items, snapshots) that have nearly all snapshots of a series, or None if there is none.

    `values`, `pairs`: of the series.
    """
    labels, excesses = list(pairs.snapshots), dict[str, Floats]()
    scores = values[labels].to_numpy(dtype=np.float64)
    for model, peer in peers.items():
        path = _compute_excess(
            scores - peer.reindex(index=values.index, columns=labels).to_numpy(dtype=np.float64), pairs.baseline
        )
        is_known = np.isfinite(path)
        if is_known.mean() >= _PRESENT and is_known[: pairs.baseline].mean() >= _PRESENT:
            excesses[model] = path
    if not excesses:
        return None
    paths = np.array(list(excesses.values()))
    # With two others, 0 if the series is between them, else the distance to the nearer one: the middle of three.
    zeros = np.where(np.isfinite(paths).sum(axis=0) == 2, 0.0, np.nan)
    return Control(tuple(excesses), _compute_middle(paths), _compute_middle(np.vstack([paths, zeros])))


def _compute_excess(differences: Floats, baseline: int) -> Floats:
    """Return the (snapshots,) mean over items of the difference beyond that of the baseline; NaN if too few items are shared."""
    shared = np.isfinite(differences)
    mask = shared.mean(axis=0) >= MIN_ANSWERED if len(differences) else np.zeros(differences.shape[1], dtype=bool)
    differences = np.where(mask, differences, np.nan)
    reference = compute_known_means(differences[:, :baseline], axis=1)
    return compute_known_means(differences - reference[:, None], axis=0)


def _compute_middle(paths: Floats) -> Floats:
    """Return the (snapshots,) median over models if a snapshot has three or more, else the mean; NaN without any."""
    ranked = pd.DataFrame(paths)
    counts = ranked.notna().sum(axis=0)
    return np.asarray(ranked.median(axis=0).where(counts >= _MEDIAN_FROM, ranked.mean(axis=0)), dtype=np.float64)


def compute_known_evidence(
    means: Floats, spread: Floats, sampling: Floats, *, baseline: int, threshold: float | None
) -> Evidence:
    """Return `evidence` of means that may be NaN: these are skipped, and places count all means."""
    index = np.flatnonzero(np.isfinite(means))
    result = evidence(means[index], spread[index], sampling[index], baseline=int((index < baseline).sum()), threshold=threshold)
    counts = np.searchsorted(index, np.arange(len(means)), side="right")
    path = np.where(counts > 0, np.append(0.0, result.log10_e)[counts], 0.0)
    if result.first is None or result.until is None:
        return Evidence(path)
    outages = Outages(*(tuple(index[list(part)].tolist()) for part in (result.outages.ended, result.outages.pending)))
    return replace(
        result, log10_e=path, first=int(index[result.first]), until=int(index[result.until - 1]) + 1, outages=outages
    )


class SharedShift(NamedTuple):
    """The common shift of all models of a panel: a field for each column of SHARED, described there."""

    shared_verdict: Literal["none", "watch"] | None = None
    shared_shift: float | None = None
    shared_first_snapshot: str | None = None


def compute_shared_shift(models: Mapping[str, Paired], order: Sequence[str], *, baseline: int, threshold: float) -> SharedShift:
    """Return whether the models moved together. `models`: by name, each against its own baseline. `order`: of all snapshots, in time.

    The verdict is at most `watch`, since nothing constant is available for comparison. The shift is dated if the evidence on the middle of
    the models (`_compute_middle`), of snapshots with two or more, reaches the threshold, and more than two thirds of the models moved in
    that direction by at least half of the common shift: otherwise only some drifted.
    """
    if len(models) < 2:
        return SharedShift()
    frame = _build_snapshot_frame(models, lambda pairs: pairs.means)
    places = [label for label in order if label in frame.index]
    frame = frame.loc[places]
    frame = frame[frame.notna().sum(axis=1) > 1]
    if len(frame) < 2:
        return SharedShift()
    means = _compute_middle(frame.to_numpy(dtype=np.float64).T)
    level = float(np.nanmean([pairs.level for pairs in models.values()]))
    large = is_large(level + float(means.min()), float(np.ptp(means)))
    spread, sampling = (
        _build_snapshot_frame(models, part).loc[frame.index].median(axis=1).to_numpy(dtype=np.float64) / math.sqrt(len(models))
        for part in (lambda pairs: pairs.spread, lambda pairs: pairs.sampling)
    )
    result = evidence(means, spread, sampling, baseline=baseline, threshold=threshold if large else None)
    verdict: Literal["none", "watch"] = "watch" if large else "none"
    if result.first is None or result.until is None or result.shift is None:
        return SharedShift(verdict)
    is_reached = large and result.highest is not None and result.highest >= threshold
    values = frame.to_numpy(dtype=np.float64)[: result.until].T
    moves = (
        (compute_known_means(values[:, result.first :], axis=1) - compute_known_means(values[:, : result.first], axis=1))
        / result.shift
        if result.shift
        else np.zeros(1)
    )
    dated = is_reached and float(np.mean(moves[np.isfinite(moves)] >= 0.5)) > _MAX_MODELS
    return SharedShift(verdict, result.shift, str(frame.index[result.first]) if dated else None)


def _build_snapshot_frame(models: Mapping[str, Paired], part: Callable[[Paired], Floats]) -> pd.DataFrame:
    """Return `part` of each model as (snapshots, models)."""
    return pd.DataFrame({name: pd.Series(part(pairs), index=list(pairs.snapshots)) for name, pairs in models.items()})
