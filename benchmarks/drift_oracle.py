"""How often a shift of a single model could be found at best: a test that knows more than the pipeline can.

The test knows the size of the shift, how much nights differ and how they take after each other. Of a series without drift it knows neither how
much nights differ nor their autocorrelation, as the pipeline: its likelihood is the highest over both. Its threshold is the one that holds 5 %
over 100 nights, whatever the autocorrelation. A second test knows the night of the shift instead, and neither its size nor how nights scatter.
Run: `python benchmarks/drift_oracle.py [SETS]`; docs/drift.md has what it prints.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from benchmarks.drift_panels import Panel, wandering
from dtef_pipeline.drift.autocorrelation import weight
from dtef_pipeline.drift.evidence import BASELINE

Floats = npt.NDArray[np.float64]
_WOBBLE = 0.02
_AUTOCORRELATIONS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85)
_SPREADS = tuple(_WOBBLE * times for times in (0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5))
_MOST = 100
_BEFORE = (1, 2, 3, 4, 5, 10, 40)
"""Nights before the shift."""


@lru_cache
def _design(lag: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The whitening of the nights, the steps whitened, and sums up to each night: of the mean squared, mean times step, log determinant."""
    night = np.arange(_MOST)
    factor = np.linalg.cholesky(lag ** np.abs(night[:, None] - night))
    whiten = np.linalg.inv(factor)
    steps = whiten @ np.tril(np.ones((_MOST, _MOST)))
    ones, crossed = np.cumsum(steps[:, 0] ** 2), np.cumsum(steps * steps[:, :1], axis=0)
    return whiten, steps, ones, crossed, np.cumsum(np.log(np.diag(factor)))


def _still(path: Floats, lag: float, spread: float) -> tuple[Floats, Floats, Floats]:
    """(nights,) log likelihood without a shift, with a flat prior on the mean; the whitened path, and its sums with the mean's column."""
    whiten, steps, ones, _, volume = (part[: len(path)] for part in _design(lag))
    white = whiten[:, : len(path)] @ (path - path[0])
    sums = np.cumsum(white * steps[:, 0])
    total = np.cumsum(white**2) - sums**2 / ones
    n = np.arange(1, len(path) + 1)
    likelihood = -volume - 0.5 * np.log(ones) - total / (2 * spread**2) - (n - 1) * math.log(spread)
    return np.asarray(likelihood), white, sums


def _shifted(path: Floats, lag: float, shift: float) -> Floats:
    """(nights,) log likelihood with a shift of this size up or down, at a night from the second on as the pipeline weighs them, or none yet."""
    nights, still = len(path), _still(path, lag, _WOBBLE)
    _, steps, ones, crossed, _ = (part[:nights] for part in _design(lag))
    steps, crossed = steps[:, :nights], crossed[:, :nights]
    likelihood, white, sums = still
    gained = np.cumsum(steps * white[:, None], axis=0) - crossed * (sums / ones)[:, None]
    size = np.cumsum(steps**2, axis=0) - crossed**2 / ones[:, None]
    each = np.abs(shift * gained) / _WOBBLE**2 - shift**2 * size / (2 * _WOBBLE**2) - math.log(2)
    change, n = np.arange(nights), np.arange(1, nights + 1)[:, None]
    weights = np.where(change >= 1, weight(np.maximum(change, 1), BASELINE), -np.inf)
    rest = np.log(np.maximum(1 - np.cumsum(np.exp(weights)), 1e-12))
    terms = np.where(change < n, each + weights, -np.inf)
    return np.asarray(likelihood + np.logaddexp(np.logaddexp.reduce(terms, axis=1), rest))


def highest(path: Floats, lag: float, shift: float) -> float:
    """Of the log likelihood ratio, over the nights after the baseline."""
    still = np.max([_still(path, one, spread)[0] for one in _AUTOCORRELATIONS for spread in _SPREADS], axis=0)
    return float((_shifted(path, lag, shift) - still)[BASELINE:].max())


def paths(sets: int, seed: int, nights: int, lag: float, *, shift: float = 0.0, since: int = 0) -> Sequence[Floats]:
    rng = np.random.default_rng(seed)
    panel = Panel(autocorrelation=lag)
    moved = shift * (np.arange(nights) >= since)
    return [_WOBBLE * wandering(rng, nights, panel) + moved for _ in range(sets)]


def dated_ratios(drawn: Floats, change: int) -> Floats:
    """(series,) log ratio of the restricted likelihoods with and without a shift at `change`, each the highest over the autocorrelations.

    `drawn`: (series, nights). Mean, size of the shift and scatter of the nights are unknown (Harville 1974, Biometrika 61:383).
    """
    night = np.arange(drawn.shape[1])
    highest_of = []
    for columns in (np.ones((len(night), 1)), np.column_stack([np.ones(len(night)), night >= change])):
        each = []
        for lag in _AUTOCORRELATIONS:
            whiten = _design(lag)[0][: len(night), : len(night)]
            white, explained = drawn @ whiten.T, whiten @ columns
            left = (white**2).sum(axis=1) - ((white @ np.linalg.qr(explained)[0]) ** 2).sum(axis=1)
            volume = np.log(np.diag(whiten)).sum() - 0.5 * np.linalg.slogdet(explained.T @ explained)[1]
            each.append(volume - (len(night) - columns.shape[1]) / 2 * np.log(left))
        highest_of.append(np.max(each, axis=0))
    return np.asarray(highest_of[1] - highest_of[0])


def dated_power(before: int, within: int, sets: int) -> float:
    """Share of shifts of .08 that are found after so many nights if their night is known, at 5 % times its prior weight."""
    nights, alpha = before + within, 0.05 * math.exp(float(weight(before, BASELINE)))
    null = (dated_ratios(np.array(paths(sets, 3, nights, lag)), before) for lag in (0.0, 0.3, 0.5, 0.8))
    threshold = max(float(np.quantile(ratios, 1 - alpha)) for ratios in null)
    drawn = np.array(paths(sets, 4, nights, 0.0, shift=-0.08, since=before))
    return float((dated_ratios(drawn, before) >= threshold).mean())


def main(sets: int) -> None:
    print(f"A shift of .08 whose night is known, within 10 and within 20 nights, by nights before it {_BEFORE}")
    for within in (10, 20):
        print(" / ".join(f"{dated_power(before, within, 50 * sets):.0%}" for before in _BEFORE), flush=True)
    print(f"A shift of .08 within 10 nights and of .05 within 20, wobble .02, by nights before it {_BEFORE}")
    for lag in (0.0, 0.5):
        for shift, within in ((0.08, 10), (0.05, 20)):
            null = ((one, paths(sets, 1, _MOST, one)) for one in (0.0, 0.3, 0.5, 0.8))
            threshold = max(float(np.quantile([highest(path, lag, shift) for path in made], 0.95)) for _, made in null)
            found = [
                np.mean(
                    [highest(one, lag, shift) >= threshold for one in paths(sets, 2, n + within, lag, shift=-shift, since=n)]
                )
                for n in _BEFORE
            ]
            print(f"| AR {lag} | {shift} within {within} | {' / '.join(f'{100 * one:.0f}' for one in found)} % |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
