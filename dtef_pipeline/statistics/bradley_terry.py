"""Scores of players from paired comparisons (Bradley & Terry 1952), by maximum likelihood, with their errors.

Player i beats j with probability exp(beta_i) / (exp(beta_i) + exp(beta_j)). Scores without a finite maximum are NaN. Ties are half wins,
or an outcome with a parameter of its own (Davidson 1970).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dtef_pipeline.errors import ConfigError

Outcomes = npt.NDArray[np.int64]
"""(rows,): 1 the left one won, -1 the right one, 0 a tie."""


class OutcomeTerms(NamedTuple):
    """Log-likelihood of each row and its derivatives by the difference of scores d and by theta = ln(nu), (rows,) each."""

    value: Floats
    by_difference: Floats
    by_theta: Floats
    information: Floats
    """Minus the second derivative by d; of `crossed` by d and theta, of `of_theta` by theta twice."""
    crossed: Floats
    of_theta: Floats


def half_win_terms(difference: Floats, outcome: Outcomes) -> OutcomeTerms:
    """Return Bradley and Terry's terms (1952): left wins with probability 1 / (1 + exp(-d)); a tie is half a win for each."""
    points = (outcome + 1) / 2
    # Never 1 - won: of a nearly sure win nothing would be left of it but rounding.
    win, loss = _logistic(difference), _logistic(-difference)
    value = points * -np.logaddexp(0, -difference) + (1 - points) * -np.logaddexp(0, difference)
    zeros = np.zeros_like(difference)
    return OutcomeTerms(value, points * loss - (1 - points) * win, zeros, win * loss, zeros, zeros)


def davidson_terms(difference: Floats, outcome: Outcomes, theta: float) -> OutcomeTerms:
    """Return Davidson's terms (1970): left, right, tie are likely as exp(d/2) to exp(-d/2) to nu, that is p_i to p_j to nu sqrt(p_i p_j)."""
    half = difference / 2
    utilities = np.stack([half, -half, np.full_like(half, theta)])
    total = np.logaddexp.reduce(utilities, axis=0)
    left, right, tie = np.exp(utilities - total)
    lead = (left - right) / 2
    return OutcomeTerms(
        value=outcome * half + np.where(outcome == 0, theta, 0.0) - total,
        by_difference=np.where(outcome > 0, right + tie / 2, np.where(outcome < 0, -left - tie / 2, -lead)),
        by_theta=np.where(outcome == 0, left + right, -tie),
        information=left * right + tie * (left + right) / 4,
        crossed=-tie * lead,
        of_theta=tie * (left + right),
    )


def _logistic(difference: Floats) -> Floats:
    return np.exp(-np.logaddexp(0, -difference))


_RISES = 1e-7
"""What a linear program must gain to count: its tolerance is 1e-9, and a direction that gains at all can be made to gain 1."""


def number_components(players: int, left: Codes, right: Codes) -> Codes:
    """Return (players,) the connected component of each, numbered from 0 in the order of their first players.

    `left` and `right` (rows,): players that were compared. Scores of different components cannot be compared.
    """
    return _number_in_order(_label_components(players, left, right, "weak"))


def number_strong_groups(players: int, better: Codes, worse: Codes) -> Codes:
    """Return (players,) the strongly connected component of each, numbered like components.

    `better` and `worse` (rows,): who beat or tied whom; a tie is listed in both directions. Scores have a finite maximum-likelihood value
    if and only if a connected component is one such group (Zermelo 1929; Ford 1957).
    """
    return _number_in_order(_label_components(players, better, worse, "strong"))


def find_unbeaten(groups: Codes, better: Codes, worse: Codes) -> npt.NDArray[np.bool_]:
    """Return (players,) whether no player outside a player's group (see `number_strong_groups`) ever beat or tied a member."""
    beaten = groups[worse][groups[better] != groups[worse]]
    return ~np.isin(groups, beaten)


def has_growing_direction(constraints: Floats) -> bool:
    """Return whether some direction satisfies constraints @ direction >= 0, at least one strictly.

    `constraints` (constraints, parameters): each row is what must not fall for the likelihood not to fall. In such a direction the
    likelihood rises without end, so there is no finite maximum. Method: linear program (Konis 2007, ch. 4).
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if not constraints.size:
        return False
    rows = -csr_array(constraints)
    result = linprog(-constraints.sum(axis=0), A_ub=rows, b_ub=np.zeros(len(constraints)), bounds=(-1, 1), method="highs")
    return bool(result.status != 0 or -result.fun > _RISES)


def _label_components(players: int, first: Codes, second: Codes, connection: str) -> Codes:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(first)), (first, second)), shape=(players, players))
    return np.asarray(connected_components(edges, connection=connection)[1], dtype=np.int64)


def _number_in_order(labels: Codes) -> Codes:
    """Return the same groups, numbered in order of first occurrence."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first)))[inverse]


Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TIES = ("half", "davidson", "drop")
Ties = Literal["half", "davidson", "drop"]
_MAX_STEPS = 200
_CLOSE = 1e-8
"""The last step of Newton's method: what is left after it is of the order of its square."""
_FLAT = 1e-10
"""Of an information matrix with 1 on its diagonal: an eigenvalue that rounding makes of 0 is below it."""


@dataclass(frozen=True, slots=True)
class PairedOutcomes:
    """Outcomes of comparisons of two players; arrays are (rows,) unless stated otherwise."""

    players: int
    left: Codes
    """Players from 0; left and right of a row differ."""
    right: Codes
    outcome: Codes
    """1: the left one won, -1: the right one, 0: a tie."""
    weight: Floats
    """How much one comparison of the row counts, above 0."""
    times: Floats
    """Number of equal comparisons that the row represents, above 0."""
    cluster: Codes | None
    """Who made it, from 0; None: not known."""
    covariates: Floats
    """(rows, covariates): differences, left less right, of what else may decide; of none (rows, 0)."""
    item: Codes | None = None
    """The item that was compared, from 0; None: unknown."""

    def where(self, rows: Flags) -> PairedOutcomes:
        """Return the rows that are true in `rows` (rows,)."""
        arrays = {name: getattr(self, name) for name in self.__slots__ if name != "players"}
        return replace(self, **{name: values[rows] for name, values in arrays.items() if values is not None})


@dataclass(frozen=True, slots=True)
class StrengthFit:
    """Scores and the basis of their errors. NaN: no finite value; `no_answer` gives the reason for each player, in one word."""

    beta: Floats
    """(players,) in logits, 0 on average over each component; higher is better."""
    share: Floats
    """(players,) exp(beta) over the sum of its component, 0-1."""
    component: Codes
    """(players,) from 0; betas of different components cannot be compared."""
    no_answer: tuple[str, ...]
    """`separable`, `unidentified` (covariates cannot be separated from the players), `unconverged`, or empty."""
    coefficients: Floats
    """(covariates,) logits per unit of each."""
    nu: float | None
    """Davidson's tie parameter, 0 or more: two equal players tie with probability nu / (2 + nu). None: none was fitted."""
    rows: PairedOutcomes
    """The rows that decide: those between players that have a beta."""
    inverse: Floats
    """(parameters, parameters) inverse of the information about betas, coefficients and ln(nu), in this order; 0 where there is no beta.
    Of equal and independent comparisons it is the covariance."""
    terms: OutcomeTerms
    """Of `rows`, at the maximum."""

    @property
    def separable(self) -> bool:
        return "separable" in self.no_answer

    @property
    def estimates(self) -> Floats:
        """(parameters,) betas, coefficients, ln(nu)."""
        theta = np.nan if self.nu is None else np.log(self.nu)
        parameters = np.concatenate([self.beta, self.coefficients])
        return np.concatenate([parameters, np.full(len(self.inverse) - len(parameters), theta)])

    @property
    def model_errors(self) -> Floats:
        """(parameters,) standard errors as if every comparison were independent and the model true; NaN without a score."""
        variance = np.diag(self.inverse)
        return np.where(variance > 0, np.sqrt(np.abs(variance)), np.nan)


def fit_strengths(outcomes: PairedOutcomes, *, ties: Ties = "half", l2: float = 0.0) -> StrengthFit:
    """Fit the betas that maximize the likelihood, and with `ties` davidson also nu.

    `ties`: half a win for each player, Davidson's model (1970), or dropped. `l2` is the penalty l2 * sum(beta^2), a normal prior of
    variance 1 / (2 l2), which makes all betas finite. Without it, a component has finite betas if each of its players can be reached from
    each by "beat or tied"; with nu or covariates there must also be no direction in which these and the betas grow without end. A component
    without finite betas is left out and does not affect the others (nu is fitted to the others). Raises ConfigError if `ties` is unknown or
    the penalty is negative or infinite.
    """
    if ties not in TIES:
        raise ConfigError(f"ties {ties!r}: allowed: {', '.join(TIES)}")
    if not (np.isfinite(l2) and l2 >= 0):
        raise ConfigError(f"l2 {l2}: allowed: 0 or more")
    rows = outcomes.where(outcomes.outcome != 0) if ties == "drop" else outcomes
    component = number_components(rows.players, rows.left, rows.right)
    finite = np.ones(rows.players, dtype=bool)
    if not l2:  # a component has finite betas if it is strongly connected
        group = number_strong_groups(rows.players, *list_better_and_worse(rows))
        pairs = np.unique(np.stack([component, group]), axis=1)
        finite = np.bincount(pairs[0], minlength=rows.players)[component] == 1
    rows = rows.where(finite[rows.left])
    has_theta = ties == "davidson" and bool((rows.outcome == 0).any())
    reasons = np.where(finite, "", "separable").astype("<U12")
    if fault := _find_fault(rows, component, has_theta, l2):
        rows, has_theta = rows.where(np.zeros(len(rows.left), dtype=bool)), False
        reasons[finite & (np.bincount(component)[component] > 1)] = fault
    newton = _Newton(_merge_equal_rows(rows), component, has_theta, l2)
    if not newton.converge():
        reasons[finite & (np.bincount(component)[component] > 1)] = "unconverged"
    return _build_strength_fit(newton, rows, component, reasons, davidson=ties == "davidson")


def _find_fault(rows: PairedOutcomes, component: Codes, has_theta: bool, l2: float) -> str:
    """Return why nu or the coefficients have no finite maximum, in one word; empty if they have."""
    if not len(rows.left) or not (has_theta or rows.covariates.size):
        return ""
    distinct = _merge_equal_rows(rows)
    wins = distinct.where(distinct.outcome != 0)
    pairs = wins.left * wins.players + wins.right
    if not rows.covariates.size and len(np.unique(pairs)) < len(pairs):
        return ""  # two players beat each other: wins that no score explains bound nu
    if has_growing_direction(_build_constraints(distinct, has_theta, fixed=l2 > 0)):
        return "separable"
    return "" if _Newton(rows, component, has_theta, l2).has_one_maximum() else "unidentified"


def list_better_and_worse(rows: PairedOutcomes) -> tuple[Codes, Codes]:
    """Return who beat or tied whom; a tie is listed in both directions."""
    wins, losses = rows.outcome >= 0, rows.outcome <= 0
    better = np.concatenate([rows.left[wins], rows.right[losses]])
    return better, np.concatenate([rows.right[wins], rows.left[losses]])


def _build_constraints(rows: PairedOutcomes, has_theta: bool, *, fixed: bool) -> Floats:
    """Return what must not fall in each row, by betas, coefficients and theta; `fixed`: betas do not move, because a prior bounds them."""
    contrasts = np.column_stack(
        [np.zeros((len(rows.left), rows.players)), rows.covariates, np.zeros((len(rows.left), int(has_theta)))]
    )
    if not fixed:
        index = np.arange(len(rows.left))
        contrasts[index, rows.left], contrasts[index, rows.right] = 1.0, -1.0
    sign, is_tie = rows.outcome[:, None], rows.outcome == 0
    if not has_theta:
        return np.concatenate([(sign * contrasts)[~is_tie], contrasts[is_tie], -contrasts[is_tie]])
    theta = np.zeros(contrasts.shape[1])
    theta[-1] = 1.0
    wins = (sign * contrasts)[~is_tie]
    return np.concatenate([wins, wins / 2 - theta, theta - contrasts[is_tie] / 2, theta + contrasts[is_tie] / 2])


def _merge_equal_rows(rows: PairedOutcomes) -> PairedOutcomes:
    """Merge equal comparisons, regardless of who made them; the likelihood is the same."""
    if rows.covariates.size:
        return rows
    swap = rows.left > rows.right
    low, high = np.where(swap, rows.right, rows.left), np.where(swap, rows.left, rows.right)
    cells = (low * rows.players + high) * 3 + np.where(swap, -rows.outcome, rows.outcome) + 1
    kinds, place = np.unique(cells, return_inverse=True)
    total = np.bincount(place, weights=rows.weight * rows.times, minlength=len(kinds)).astype(np.float64)
    pair = kinds // 3
    none = np.zeros((len(kinds), rows.covariates.shape[1]))
    return PairedOutcomes(
        rows.players, pair // rows.players, pair % rows.players, kinds % 3 - 1, total, np.ones(len(kinds)), None, none
    )


class _Newton:
    """Newton's method on the log-likelihood, with steps that are halved until they rise."""

    def __init__(self, rows: PairedOutcomes, component: Codes, has_theta: bool, l2: float) -> None:
        self.rows, self.has_theta, self.l2 = rows, has_theta, l2
        self.counts = rows.weight * rows.times
        together = component[:, None] == component[None, :]
        self.means = together / together.sum(axis=1)
        """(players, players): the mean over each component, which no comparison says anything of."""
        self.at = np.zeros(rows.players + rows.covariates.shape[1] + has_theta)
        if has_theta:
            n_ties = float(self.counts[rows.outcome == 0].sum())
            self.at[-1] = np.log(2 * n_ties / max(float(self.counts.sum()) - n_ties, n_ties / 1e3))

    @property
    def theta(self) -> float | None:
        return float(self.at[-1]) if self.has_theta else None

    @property
    def betas(self) -> Floats:
        return self.at[: self.rows.players]

    @property
    def coefficients(self) -> Floats:
        return self.at[self.rows.players : self.rows.players + self.rows.covariates.shape[1]]

    def converge(self) -> bool:
        """Move to the maximum; return whether it was reached."""
        for _ in range(_MAX_STEPS):
            terms = self.terms(self.rows)
            try:
                step: Floats = np.asarray(np.linalg.solve(self._hold_means(self.information(terms)), self._gradient(terms)))
            except np.linalg.LinAlgError:
                return False
            if not np.isfinite(step).all():
                return False
            if np.abs(step).max(initial=0.0) <= _CLOSE * (1 + np.abs(self.at).max(initial=0.0)):
                self.at = self.at + step
                return True
            if not self._take_step(step, self._value(terms)):
                return False
        return False

    def has_one_maximum(self) -> bool:
        """Return whether every parameter is identified: except for shifts of the means, every change of parameters changes some row."""
        information = self.information(self.terms(self.rows))
        if (np.diag(information)[self.rows.players :] <= 0).any():
            return False
        matrix = self._hold_means(information)
        scale = np.sqrt(np.diag(matrix))
        return bool(np.linalg.eigvalsh(matrix / np.outer(scale, scale)).min() > _FLAT)

    def terms(self, rows: PairedOutcomes) -> OutcomeTerms:
        """Return the terms of any rows at the current parameters."""
        difference = self.betas[rows.left] - self.betas[rows.right] + rows.covariates @ self.coefficients
        if self.theta is None:
            return half_win_terms(difference, rows.outcome)
        return davidson_terms(difference, rows.outcome, self.theta)

    def information(self, terms: OutcomeTerms) -> Floats:
        """Return the information (parameters, parameters) with the penalty; without it, 0 along the mean of each component."""
        rows, k = self.rows, self.rows.players
        strength = self.counts * terms.information
        links = np.bincount(rows.left * k + rows.right, weights=strength, minlength=k * k).reshape(k, k)
        links = links + links.T
        matrix = np.zeros((len(self.at), len(self.at)))
        matrix[:k, :k] = np.diag(links.sum(axis=1) + 2 * self.l2) - links
        columns = np.column_stack([rows.covariates * strength[:, None], *[self.counts * terms.crossed] * self.has_theta])
        for place, values in enumerate(columns.T, k):
            matrix[:k, place] = matrix[place, :k] = _sum_by_player(rows, values)
        c = k + rows.covariates.shape[1]
        matrix[k:c, k:c] = rows.covariates.T @ columns[:, : c - k]
        if self.has_theta:
            matrix[k:c, -1] = matrix[-1, k:c] = rows.covariates.T @ columns[:, -1]
            matrix[-1, -1] = (self.counts * terms.of_theta).sum()
        return matrix

    def inverse(self) -> Floats:
        """Return the inverse of the information at the current parameters, without the direction of the component means."""
        matrix = np.linalg.inv(self._hold_means(self.information(self.terms(self.rows))))
        k = self.rows.players
        matrix[:k] -= self.means @ matrix[:k]
        matrix[:, :k] -= matrix[:, :k] @ self.means
        return np.asarray(matrix)

    def _hold_means(self, information: Floats) -> Floats:
        """Return the information with the mean of each component fixed at 0."""
        k = self.rows.players
        diagonal = np.diag(information)
        size = diagonal[:k].mean() if diagonal[:k].any() else 1.0
        # What no row is about stays where it is.
        matrix: Floats = information + np.diag(np.where(diagonal == 0, size, 0.0))
        matrix[:k, :k] += self.means * size
        return matrix

    def _gradient(self, terms: OutcomeTerms) -> Floats:
        pull = self.counts * terms.by_difference
        beta_gradient = _sum_by_player(self.rows, pull) - 2 * self.l2 * self.betas
        return np.concatenate(
            [beta_gradient, self.rows.covariates.T @ pull, [(self.counts * terms.by_theta).sum()] * self.has_theta]
        )

    def _value(self, terms: OutcomeTerms) -> float:
        return float((self.counts * terms.value).sum() - self.l2 * (self.betas**2).sum())

    def _take_step(self, step: Floats, before: float) -> bool:
        """Take the step, halved until the likelihood does not fall by more than rounding."""
        start = self.at
        for _ in range(60):
            self.at = start + step
            if self._value(self.terms(self.rows)) >= before - 1e-12 * (1 + abs(before)):
                return True
            step = step / 2
        return False


def _sum_by_player(rows: PairedOutcomes, values: Floats) -> Floats:
    sums = np.bincount(rows.left, weights=values, minlength=rows.players)
    return np.asarray(sums - np.bincount(rows.right, weights=values, minlength=rows.players))


def _build_strength_fit(
    newton: _Newton, rows: PairedOutcomes, component: Codes, reasons: npt.NDArray[np.str_], *, davidson: bool
) -> StrengthFit:
    if has_failed := "unconverged" in reasons:
        rows = rows.where(np.zeros(len(rows.left), dtype=bool))
    is_known, has_rows = reasons == "", len(rows.left) > 0
    beta = np.where(is_known, newton.betas - newton.means @ newton.betas, np.nan)
    inverse = np.zeros((len(newton.at), len(newton.at)))
    if not has_failed:
        mask = np.concatenate([is_known & has_rows, np.full(len(inverse) - len(is_known), has_rows)])
        inverse = np.where(mask[:, None] & mask[None, :], newton.inverse(), 0.0)
    return StrengthFit(
        beta=beta,
        share=_compute_strength_shares(beta, component),
        component=component,
        no_answer=tuple(reasons.tolist()),
        coefficients=newton.coefficients if has_rows else np.full_like(newton.coefficients, np.nan),
        nu=(0.0 if newton.theta is None else float(np.exp(newton.theta))) if davidson and has_rows else None,
        rows=rows,
        inverse=inverse,
        terms=newton.terms(rows),
    )


def _compute_strength_shares(beta: Floats, component: Codes) -> Floats:
    is_known = np.isfinite(beta)
    highest = np.full(len(beta), -np.inf)
    np.maximum.at(highest, component[is_known], beta[is_known])
    strength = np.where(is_known, np.exp(np.where(is_known, beta - highest[component], 0.0)), 0.0)
    total = np.bincount(component, weights=strength, minlength=len(beta))[component]
    return np.where(is_known, strength / np.where(is_known, total, 1.0), np.nan)
