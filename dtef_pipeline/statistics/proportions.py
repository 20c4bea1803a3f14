"""Intervals of independent proportions and of means within 0-1, and the chance that some of several draws succeed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE, Estimates, Floats


def compute_wilson_interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, *, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Return low and high, of the shape of the counts, of the proportion successes / trials of independent trials; NaN without trials.

    With p the proportion, n the trials and z the normal quantile of `confidence`: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1
    + z^2 / n). It is within 0-1 and has a width even if all or none succeed. Raises ConfigError unless 0 <= successes <= trials.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    wins, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    _require(bool(((wins >= 0) & (wins <= n)).all()), "interval of a proportion", wins, n)
    z = ndtri((1 + confidence) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = wins / n
        middle = share + z**2 / (2 * n)
        reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        low, high = (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)
    # At both ends the formula gives 0 and 1 but for rounding.
    return np.clip(np.where(wins == 0, 0.0, low), 0, 1) + 0 * share, np.clip(np.where(wins == n, 1.0, high), 0, 1) + 0 * share


def compute_unit_interval(estimates: Estimates) -> tuple[Floats, Floats]:
    """Return low and high, each (columns,), of means m of scores within 0-1; NaN if `estimates` has no interval.

    With s the standard error: t on the logit scale, logit m -+ t s / (m (1 - m)), transformed back, which stays within 0-1 and is longer
    towards the far end. If the clusters are so similar that one more, at the far end of the scale, would move the mean further than the
    width of the plain t interval, these few do not rule out that others fail (or pass): the interval then also covers Wilson's, with
    successes by the mean among the effective clusters. No scores within 0-1 with this mean spread more, so this is conservative.

    Source: Korn & Graubard (1998), Confidence intervals for proportions with small expected number of positive counts, for the logit.
    """
    low, high = estimates.interval()
    mean, n = np.clip(np.nan_to_num(estimates.value), 0, 1), estimates.degrees + 1
    alike = high - low < np.maximum(mean, 1 - mean) / (n + 1)
    spread = mean * (1 - mean)
    reach = np.divide((high - low) / 2, spread, out=0 * low, where=spread > 0)
    low, high = expit(logit(mean) - reach), expit(logit(mean) + reach)
    widest = compute_wilson_interval(mean * n, n)
    return np.where(alike, np.minimum(low, widest[0]), low), np.where(alike, np.maximum(high, widest[1]), high)


def estimate_pass_at_k(draws: npt.ArrayLike, passes: npt.ArrayLike, k: int) -> Floats:
    """Estimate the chance, 0-1, that one or more of k draws pass, from n `draws` of which c `passes`; NaN if n < k, without extrapolation.

    1 - C(n - c, k) / C(n, k), which is unbiased; 1 if n - c < k. Computed as 1 - the product over j < k of (n - c - j) / (n - j), to avoid
    large binomial coefficients. The result has the shape of the counts. Raises ConfigError for k below 1, and unless 0 <= c <= n.

    Source: Chen et al. (2021), Evaluating large language models trained on code, equation 1.
    """
    n, c = np.asarray(draws, dtype=np.float64), np.asarray(passes, dtype=np.float64)
    if k < 1:
        raise ConfigError(f"pass@k: got k {k}; allowed: 1 or more")
    _require(bool(((c >= 0) & (c <= n)).all()), "pass@k", c, n)
    none = np.ones(np.broadcast_shapes(n.shape, c.shape))
    for j in range(k):
        none = none * np.divide(np.maximum(n - c - j, 0), n - j, out=np.zeros_like(none), where=n - j > 0)
    return np.asarray(np.where(n >= k, 1 - none, np.nan))


def _require(is_allowed: bool, label: str, part: Floats, total: Floats) -> None:
    if not is_allowed:
        raise ConfigError(f"{label}: got {part.tolist()} of {total.tolist()}; allowed: from 0 to as many as there are")
