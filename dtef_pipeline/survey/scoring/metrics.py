"""How close a predicted distribution is to the observed one: one function per metric, errors corrected for sampling, and the policy.

Every metric takes `predicted` and `observed` of one shape, (rows, k) or a single (k,), with k >= 2 options in the order of the scale, and
returns (rows,) or a single float. Rows may be fractions, percentages or counts: each is divided by its total first, as the DTEF methodology
(section 4) says. Zeros are exact: nothing is smoothed. Rejected with a ConfigError naming the row: another number of dimensions, two
shapes, fewer than two options, a value that is negative or not finite, a row whose total is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.tables import DISTANCES, METRICS
from dtef_pipeline.tables import STATUSES

Floats = npt.NDArray[np.float64]


def normalise_distributions(rows: npt.ArrayLike, name: str = "rows") -> Floats:
    """Check all input, and return rows divided by their totals. Shape (rows, k) or (k,), unchanged."""
    array = np.asarray(rows, dtype=np.float64, order="F")  # one column per option: sums run down the rows
    if array.ndim not in (1, 2) or array.shape[-1] < 2:
        raise ConfigError(f"{name}: got shape {array.shape}; allowed: (rows, options) or (options,), with 2 options or more")
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        total = sum_of_options(array)
    fine = np.isfinite(total) & (total > 0) & (array.min(axis=-1) >= 0)
    if not fine.all():
        row = int(np.flatnonzero(~np.atleast_1d(fine))[0])
        raise ConfigError(
            f"{name}: row {row} is not a distribution: got {np.atleast_2d(array)[row].tolist()}; allowed: finite values >= 0 with a "
            "total above 0"
        )
    return np.asarray(array / total[..., None])


def sum_of_options(array: Floats) -> Floats:
    """Return the sum over the options, from the first to the last: the same to the last bit for one row and for a million."""
    total = array[..., 0].copy()
    for option in range(1, array.shape[-1]):
        total += array[..., option]
    return total


def check_fractions(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return both arguments checked and as fractions, of one shape."""
    p, q = normalise_distributions(predicted, "predicted"), normalise_distributions(observed, "observed")
    if p.shape != q.shape:
        raise ConfigError(f"predicted and observed must have the same shape; got {p.shape} and {q.shape}")
    return p, q


class DistributionPair:
    """Predicted and observed fractions of one shape, with the terms that several formulas share."""

    def __init__(self, predicted: npt.ArrayLike, observed: npt.ArrayLike) -> None:
        self.predicted, self.observed = check_fractions(predicted, observed)
        self.options = self.predicted.shape[-1]

    @cached_property
    def difference(self) -> Floats:
        return np.asarray(self.predicted - self.observed)

    @cached_property
    def distance(self) -> Floats:
        """The sum of the absolute differences, 0..2."""
        return sum_of_options(np.abs(self.difference))

    @cached_property
    def observed_squares(self) -> Floats:
        """The sum of the squares of the observed fractions, 1/k..1."""
        return sum_of_options(self.observed * self.observed)

    @cached_property
    def work(self) -> Floats:
        """The sum of the absolute differences of the cumulative distributions, 0..k-1, in steps of the scale."""
        cumulative = self.difference[..., 0].copy()
        work = np.abs(cumulative)
        for option in range(1, self.options - 1):
            cumulative += self.difference[..., option]
            work += np.abs(cumulative)
        return np.asarray(work)

    def metrics(self) -> dict[str, Floats]:
        return {name: formula(self) for name, formula in _FORMULAS.items()}


Formula = Callable[[DistributionPair], Floats]
Metric = Callable[[npt.ArrayLike, npt.ArrayLike], Floats]
_FORMULAS: dict[str, Formula] = {}


def _make_metric(formula: Formula) -> Metric:
    """Return the metric of a formula over fractions, which checks its input and divides each row by its total first."""
    _FORMULAS[formula.__name__] = formula

    @wraps(formula)
    def metric(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> Floats:
        return formula(DistributionPair(predicted, observed))

    return metric


def measure(predicted: npt.ArrayLike, observed: npt.ArrayLike) -> dict[str, Floats]:
    """Return every metric by name, in the order of `tables.METRICS`: input checked once, each value (rows,) or a single float."""
    return DistributionPair(predicted, observed).metrics()


def _compute_entropy_to_middle(p: Floats, sums: Floats) -> Floats:
    """Return the Kullback-Leibler divergence in bits of p from the middle, half of the `sums`, with 0 log 0 = 0.

    As p > 0 makes them > 0, it is finite.
    """
    ratio, is_positive = p + p, p > 0
    if is_positive.all():
        ratio /= sums
    else:
        ratio = np.divide(ratio, sums, out=np.ones_like(p), where=is_positive)
    np.log2(ratio, out=ratio)
    ratio *= p
    return sum_of_options(ratio)


@_make_metric
def js(compared: DistributionPair) -> Floats:
    """Jensen-Shannon similarity, 1 - sqrt(JSD) with base-2 logarithms. Range 0..1, 1 = identical, 0 = no common option.

    JSD = KL(P || M) / 2 + KL(Q || M) / 2 with M = (P + Q) / 2. Symmetric; the order of the options does not matter. Source: DTEF
    methodology 4.1. Identical rows give exactly 1.

    >>> float(js([40, 35, 15, 10], [40, 35, 15, 10]))
    1.0
    """
    p, q = compared.predicted, compared.observed
    sums = p + q
    divergence = (_compute_entropy_to_middle(p, sums) + _compute_entropy_to_middle(q, sums)) / 2
    return np.asarray(1 - np.sqrt(np.clip(divergence, 0, 1)))


@_make_metric
def cosine(compared: DistributionPair) -> Floats:
    """Cosine of the angle between the two vectors of fractions. Range 0..1, 1 = same direction (so: identical).

    Symmetric; the order of the options does not matter. Source: DTEF methodology 4.2.
    """
    p, q = compared.predicted, compared.observed
    squares = sum_of_options(p * p) * compared.observed_squares
    return np.asarray(np.clip(sum_of_options(p * q) / np.sqrt(squares), 0, 1))


@_make_metric
def emd(compared: DistributionPair) -> Floats:
    """Earth mover's similarity, max(0, 1 - sum |CDF difference|). Range 0..1, 1 = identical, 0 = a step or more on average.

    As published, over all options in their order, regardless of the scale. Source: DTEF methodology 4.3.
    """
    return np.asarray(np.maximum(0, 1 - compared.work))


@_make_metric
def emd_normalized(compared: DistributionPair) -> Floats:
    """Earth mover's similarity on the whole scale, 1 - sum |CDF difference| / (k - 1). Range 0..1, 1 = identical.

    0 only if all mass is at opposite ends. Only for ordinal scales; reversing the scale changes nothing.
    """
    return np.asarray(np.clip(1 - compared.work / (compared.options - 1), 0, 1))


@_make_metric
def tv(compared: DistributionPair) -> Floats:
    """Total variation distance, sum |P - Q| / 2: the share that would have to change its answer. Range 0..1, 0 = identical."""
    return np.asarray(np.clip(compared.distance / 2, 0, 1))


@_make_metric
def mae(compared: DistributionPair) -> Floats:
    """Mean absolute error of the fractions, sum |P - Q| / k: a distance. Range 0..2/k, 0 = identical."""
    return np.asarray(compared.distance / compared.options)


@_make_metric
def top_hit(compared: DistributionPair) -> Floats:
    """Whether the predicted top option is an observed top option: 1 or 0, higher is better.

    If several options share the predicted top, the share of them that are an observed top (the probability of a hit if one of them is
    drawn), so a uniform prediction gets 1/k and not 1.
    """
    p, q = compared.predicted, compared.observed
    highest_p, highest_q = p.max(axis=-1), q.max(axis=-1)
    tops, hits = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    for option in range(compared.options):
        top = p[..., option] == highest_p
        tops += top
        hits += top & (q[..., option] == highest_q)
    return np.asarray(hits / tops)


def sum_by_rank(rows: Floats, ranks: npt.ArrayLike) -> Floats:
    """Return fractions (..., k) by place on the scale, (..., places): options of one rank add up, rank -1 is left out.

    `ranks` is (k,) integers: the place of each option on the scale, from 0.
    """
    places = np.asarray(ranks)
    fractions = np.zeros((*rows.shape[:-1], max(places.max(initial=-1) + 1, 0)), order="F")
    for option in np.flatnonzero(places >= 0):
        fractions[..., places[option]] += rows[..., option]
    return fractions


def emd_normalized_on_scale(predicted: npt.ArrayLike, observed: npt.ArrayLike, ranks: npt.ArrayLike) -> Floats:
    """Return `emd_normalized` among those who answered on the scale, or NaN if nothing can be compared.

    `ranks` is (k,) integers, one for all rows: the place of each option on the scale from 0, the same for options of one place, -1 off the
    scale. Neighbouring places are one step apart. Options off the scale (don't know, prefer not to say) are left out of both distributions
    and the rest is renormalised. NaN if there are fewer than two places, or if either distribution has no mass on the scale. With the ranks
    0, 1, ..., k - 1 it is `emd_normalized` itself.
    """
    p, q = (sum_by_rank(rows, ranks) for rows in check_fractions(predicted, observed))
    return _compute_where_usable(p, q, emd_normalized)


def _compute_where_usable(predicted: Floats, observed: Floats, formula: Callable[..., Floats], *more: Floats) -> Floats:
    """Return the formula of the rows with mass on a scale of several places, NaN of the others. `more`: its arguments (rows,)."""
    result = np.full(predicted.shape[:-1], np.nan)
    usable = (predicted.sum(axis=-1) > 0) & (observed.sum(axis=-1) > 0) & (predicted.shape[-1] > 1)
    if usable.any():
        result[usable] = formula(*(values[usable] for values in (predicted, observed, *more)))
    return result


Places = npt.NDArray[np.int64]
"""Row numbers."""


def build_matrix(lists: pa.Array, k: int, rows: Places) -> Floats:
    """Return (rows, k) values of those rows' lists, each of k values, stored with one column per option, as the metrics need."""
    starts = lists.offsets.to_numpy()[rows]
    flat = lists.values.to_numpy(zero_copy_only=False)
    if len(rows) and (np.diff(starts) == k).all():
        return np.asfortranarray(flat[starts[0] : starts[-1] + k].reshape(-1, k))
    values = np.empty((len(rows), k), order="F")
    for option in range(k):
        values[:, option] = flat[starts + option]
    return values


def compute_scale_ranks(dont_know: pa.Array, positions: pa.Array, k: int) -> npt.NDArray[np.int64]:
    """Return (rows, k) the place of each option on its scale, from 0, and -1 off the scale: ranks of the `positions` (null: off the scale).

    In a row without positions, the options that are not `dont_know` are ranked in their order.
    """
    off_scale = _read_dont_know_flags(dont_know, k)
    ranks = np.where(off_scale, -1, np.cumsum(~off_scale, axis=1) - 1)
    has_positions = pc.fill_null(pc.equal(pc.list_value_length(positions), k), False).to_numpy(zero_copy_only=False)
    if has_positions.any():
        values = pc.fill_null(positions.filter(pa.array(has_positions)).flatten(), np.inf).to_numpy(zero_copy_only=False)
        lists, code = np.unique(values.reshape(-1, k), axis=0, return_inverse=True)
        # `np.unique` sorts infinity, which stands for no position, last.
        dense = np.array([np.unique(row, return_inverse=True)[1] for row in lists])
        ranks[has_positions] = np.where(np.isfinite(lists), dense, -1)[code.reshape(-1)]
    return ranks


def has_listed_order(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return (rows,) whether all options are on the scale, in the order in which they are listed, as plain metrics assume."""
    return np.asarray((ranks == np.arange(ranks.shape[-1])).all(axis=-1))


def sample_sizes(survey: pa.Table) -> Floats:
    """Return (rows,) the sample size of a row's answers: effective respondents if stated, else n; NaN: unknown."""
    sizes = pc.coalesce(survey["n_effective"], survey["n"].cast(pa.float64()))
    return np.asarray(sizes.to_numpy(), dtype=np.float64)


def _read_dont_know_flags(lists: pa.Array, k: int) -> npt.NDArray[np.bool_]:
    """Return (rows, k) flags, False in a row without flags."""
    flags = np.zeros((len(lists), k), dtype=bool)
    has_flags = pc.fill_null(pc.equal(pc.list_value_length(lists), k), False).to_numpy(zero_copy_only=False)
    values = pc.fill_null(lists.filter(pa.array(has_flags)).flatten(), False)
    flags[has_flags] = values.to_numpy(zero_copy_only=False).reshape(-1, k)
    return flags


def compute_corrected_rps_on_scale(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, n: npt.ArrayLike, ranks: npt.ArrayLike
) -> Floats:
    """Return `rps_corrected` (see `compute_corrected_errors`) among those who answered on the scale, or NaN if nothing can be compared.

    `ranks` is (k,) integers, one for all rows, as in `emd_normalized_on_scale`: the options of rank -1 are left out of both
    distributions, the others are ordered by rank. n becomes the respondents on the scale: n times their share, to the nearest whole person
    (published shares are rounded).
    """
    pair = DistributionPair(predicted, observed)
    q, p = pair.predicted, pair.observed
    places = np.asarray(ranks)
    if has_listed_order(places):
        return _correct_rps(pair, _subtract_one(n, p))
    has_place = places >= 0
    mass = sum_of_options(p[..., has_place]) if has_place.any() else np.zeros(p.shape[:-1])
    respondents = np.rint((_subtract_one(n, p) + 1) * mass)
    q, p = sum_by_rank(q, places), sum_by_rank(p, places)
    return _compute_where_usable(
        q, p, lambda q, p, n: compute_corrected_errors(DistributionPair(q, p), n)["rps_corrected"], respondents
    )


def compute_corrected_errors(pair: DistributionPair, n: npt.ArrayLike) -> dict[str, Floats]:
    """Return the unbiased errors against the segment's true distribution by name, in the order of `tables.CORRECTED`.

    Each is (rows,) or a single float, 0 for the truth on average, below 0 by chance; NaN if n < 2 or unknown. `n` is the number of
    respondents of the observed distribution, (rows,) or a number; answers are assumed to be independent (multinomial): the sampling variance
    of a share p of n is p (1 - p) / n, and observed p (1 - p) / (n - 1) estimates it without bias. With predicted q and observed p, and Q and
    F cumulative: `l2_corrected` = sum (q - p)^2 - (1 - sum p^2) / (n - 1), about -1/(n-1)..2; `rps_corrected` = sum (Q - F)^2 - sum F (1 - F)
    / (n - 1), about -(k-1)/(4(n-1))..k-1, only for ordered options, and the same if the order is reversed (Ferro, Richardson & Weigel 2008).
    Raises ConfigError for an n that is negative, infinite, or not one number or one per row.
    """
    degrees = _subtract_one(n, pair.observed)
    return {name: formula(pair, degrees) for name, formula in _CORRECTED_FORMULAS.items()}


def compute_gini(observed: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the unbiased 1 - sum p^2 of the true distribution: chance that two people differ. Range 0..1; NaN if n < 2 or unknown."""
    p = normalise_distributions(observed, "observed")
    degrees = _subtract_one(n, p)
    return np.asarray((1 - sum_of_options(p * p)) * ((degrees + 1) / degrees))


def _correct_l2(pair: DistributionPair, degrees: Floats) -> Floats:
    return np.asarray(sum_of_options(pair.difference**2) - (1 - pair.observed_squares) / degrees)


def _correct_rps(pair: DistributionPair, degrees: Floats) -> Floats:
    q, p = pair.predicted, pair.observed
    cumulative, real = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    score, spread = np.zeros(p.shape[:-1]), np.zeros(p.shape[:-1])
    for option in range(p.shape[-1] - 1):
        cumulative = cumulative + q[..., option]
        real = real + p[..., option]
        score += (cumulative - real) ** 2
        spread += real * (1 - real)
    return np.asarray(score - spread / degrees)


_CORRECTED_FORMULAS = {"l2_corrected": _correct_l2, "rps_corrected": _correct_rps}


def _subtract_one(n: npt.ArrayLike, observed: Floats) -> Floats:
    """Check n, and return n - 1 for each row (rows,); NaN if n is unknown or too small."""
    size = np.asarray(n, dtype=np.float64)
    if size.ndim and size.shape != observed.shape[:-1]:
        raise ConfigError(
            f"n: got shape {size.shape} for distributions of shape {observed.shape}; allowed: a number, or one per row"
        )
    wrong = np.isinf(size) | (size < 0)
    if wrong.any():
        row = int(np.flatnonzero(np.atleast_1d(wrong))[0])
        raise ConfigError(f"n: row {row} is {np.atleast_1d(size)[row]}; allowed: a finite number of respondents >= 0")
    return np.broadcast_to(np.where(size >= 2, size - 1, np.nan), observed.shape[:-1])


class Credit(NamedTuple):
    """The score of every row of one status, or None if the row is left out of every mean."""

    status: str
    score: float | None
    reason: str


CREDITS = (
    Credit("unparseable", 0.0, "methodology 4.4: parsing failed entirely"),
    Credit("refused", 0.0, "the model answered, but gave no distribution"),
    Credit("wrong_length", 0.1, "methodology 4.4: partial credit for attempting a response"),
    Credit("error", None, "the call failed, so the model cannot be scored"),
    Credit("missing", None, "no request was possible, so the model cannot be scored"),
    Credit("budget", None, "no request was sent, because a budget was reached"),
)
"""Status `ok` is scored by the metric; where the metric has no value (emd_normalized on a nominal scale) neither has the score."""

_CREDIT = {credit.status: np.nan if credit.score is None else credit.score for credit in CREDITS}


def check_metric_name(metric: str) -> str:
    """Return the metric's name. Raises ConfigError, with all names, for another."""
    if metric not in METRICS:
        raise ConfigError(f"no metric {metric!r}; allowed: {', '.join(METRICS)}")
    return metric


def apply_policy(
    status: pa.Array | npt.NDArray[np.str_] | list[str], values: npt.ArrayLike, metric: str
) -> npt.NDArray[np.float64]:
    """Return scores (rows,) under the published policy, always similarities: 1 - distance for a distance; NaN without score.

    `status` is (rows,), `values` (rows,) the metric's values, which are used only if the status is ok (NaN: no value).
    """
    check_metric_name(metric)
    similarity = np.asarray(values, dtype=np.float64)
    if metric in DISTANCES:
        similarity = 1 - similarity
    statuses = status if isinstance(status, pa.Array) else pa.array(list(status), pa.string())
    if pc.all(pc.equal(statuses, "ok"), min_count=0, skip_nulls=False).as_py():
        return similarity
    states = statuses.dictionary_encode()
    named = states.dictionary.to_pylist()
    if strange := sorted(set(named) - set(STATUSES)):
        raise ConfigError(f"no status {strange[0]!r}; allowed: {', '.join(STATUSES)}")
    code = states.indices.to_numpy(zero_copy_only=False)
    credit = np.array([np.nan if name == "ok" else _CREDIT[name] for name in named])
    is_ok = np.array([name == "ok" for name in named], dtype=bool)
    return np.where(is_ok[code], similarity, credit[code]) if len(code) else np.zeros(0)


def measure_on_scale(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, *, ordinal: bool, ranks: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Return every metric of one question's rows (rows, k) or of a single (k,), NaN without a value.

    `emd_normalized` has no value on a nominal scale, and uses the `ranks` (k,) of the options on the scale, -1 off it.
    """
    values = measure(predicted, observed)
    if not ordinal:
        values["emd_normalized"] = np.full_like(values["emd_normalized"], np.nan)
    elif not has_listed_order(ranks):
        values["emd_normalized"] = emd_normalized_on_scale(predicted, observed, ranks)
    return values


def compute_similarities(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, *, ordinal: bool, ranks: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Return `measure_on_scale` as similarities, higher is better: a distance becomes 1 - distance."""
    values = measure_on_scale(predicted, observed, ordinal=ordinal, ranks=ranks)
    return {name: 1 - value if name in DISTANCES else value for name, value in values.items()}
