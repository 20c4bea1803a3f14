"""How often a shift of a single model could be found at best: a test that knows more than the pipeline can.

The test knows the size of the shift, how much nights differ and how they take after each other. Of a series without drift it knows neither how
much nights differ nor their autocorrelation, as the pipeline: its likelihood is the highest over both. Its threshold is the one that holds 5 %
over 100 nights, whatever the autocorrelation. Run: `python benchmarks/drift_oracle.py [SETS]`; docs/drift.md has what it prints.
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
    """(nights,) log likelihood with a shift of this size up or down, at a night after the baseline as the pipeline weighs them, or none yet."""
    nights, still = len(path), _still(path, lag, _WOBBLE)
    _, steps, ones, crossed, _ = (part[:nights] for part in _design(lag))
    steps, crossed = steps[:, :nights], crossed[:, :nights]
    likelihood, white, sums = still
    gained = np.cumsum(steps * white[:, None], axis=0) - crossed * (sums / ones)[:, None]
    size = np.cumsum(steps**2, axis=0) - crossed**2 / ones[:, None]
    each = np.abs(shift * gained) / _WOBBLE**2 - shift**2 * size / (2 * _WOBBLE**2) - math.log(2)
    change, n = np.arange(nights), np.arange(1, nights + 1)[:, None]
    weights = np.where(change >= BASELINE, weight(np.maximum(change, BASELINE), BASELINE), -np.inf)
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


def main(sets: int) -> None:
    print("A shift of .08 within 10 nights and of .05 within 20, wobble .02, by nights before it (5, 10, 40)")
    for lag in (0.0, 0.5):
        for shift, within in ((0.08, 10), (0.05, 20)):
            null = ((one, paths(sets, 1, _MOST, one)) for one in (0.0, 0.3, 0.5, 0.8))
            threshold = max(float(np.quantile([highest(path, lag, shift) for path in made], 0.95)) for _, made in null)
            found = [
                np.mean(
                    [highest(one, lag, shift) >= threshold for one in paths(sets, 2, n + within, lag, shift=-shift, since=n)]
                )
                for n in (5, 10, 40)
            ]
            print(f"| AR {lag} | {shift} within {within} | {' / '.join(f'{100 * one:.0f}' for one in found)} % |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
