"""A series compared with the other models in the same snapshots: its own shift, and the shift that all share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.drift.evidence import Evidence, Outages, evidence
from dtef_pipeline.drift.paired import Paired, compute_known_means
from dtef_pipeline.drift.rule import MIN_ANSWERED, is_large

Floats = npt.NDArray[np.float64]
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
