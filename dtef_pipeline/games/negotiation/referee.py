"""The referee of a division of items: validity of a proposal, and its values and fairness for all parties.

`values` has the value of each item by party: whole numbers of 0 or more, which add up over the items of a bundle. A `Division` has the
items of each party. All formulas are pure functions; none needs a language model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PartyValues = Mapping[str, Mapping[str, int]]
Division = Mapping[str, Collection[str]]
NO_PROPOSAL = "not a proposal"
UNKNOWN_PARTY = "unknown party"
UNKNOWN_ITEM = "unknown item"
ITEM_TWICE = "item twice"
MISSING_ITEM = "missing item"


@dataclass(frozen=True, slots=True)
class Fairness:
    """The referee's numbers on one division, some of them by party."""

    utility: Mapping[str, int]
    """Points, 0 or more; higher is better."""
    normalised: Mapping[str, float | None]
    """Share of the total value of all items to the party, 0 to 1; higher is better; None if the total is 0."""
    envy: Mapping[str, int]
    """Points, 0 or more; lower is better."""
    ef1: Mapping[str, bool]
    """Whether the party envies nobody by more than one item."""
    jain: float | None
    """1/n to 1; higher is more even; None if all utilities are 0."""
    nash: float
    """Geometric mean of the utilities, in points, 0 if one party has nothing; higher is better."""
    efficiency: float | None
    """Sum of the utilities over the highest possible sum, in which each item goes to the party that values it most, 0 to 1; higher is better;
    None if all values are 0."""
    pareto: bool
    """Whether no party could get more without another getting less."""


def measure_fairness(values: PartyValues, division: Division) -> Fairness:
    """Compute all numbers on a division. Raises ValueError if it is not a division of the items among the parties."""
    items = list(next(iter(values.values())))
    if fault := find_proposal_fault({party: list(bundle) for party, bundle in division.items()}, items, list(values)):
        raise ValueError(f"{fault}: {division}")
    utility = {party: sum_bundle_value(points, division.get(party, ())) for party, points in values.items()}
    best_sum = sum(max(points[item] for points in values.values()) for item in items)
    normalised = {party: compute_share(points, sum(values[party].values())) for party, points in utility.items()}
    return Fairness(
        utility,
        normalised,
        envy={party: compute_envy(values[party], division, party) for party in values},
        ef1={party: is_envy_free_but_one(values[party], division, party) for party in values},
        jain=compute_jain_index([share or 0.0 for share in normalised.values()]),
        nash=math.pow(math.prod(utility.values()), 1 / len(utility)),
        efficiency=compute_share(sum(utility.values()), best_sum),
        pareto=is_pareto(values, list(utility.values())),
    )


def find_proposal_fault(proposal: Any, items: Sequence[str], parties: Sequence[str]) -> str | None:
    """Return why a decoded JSON value is not a proposal, or None.

    A proposal is an object with a list of items by party, and each item exactly once. A party that is left out gets nothing.
    """
    if not isinstance(proposal, Mapping) or not proposal:
        return NO_PROPOSAL
    bundles = list(proposal.values())
    if not all(isinstance(bundle, list) and all(isinstance(item, str) for item in bundle) for bundle in bundles):
        return NO_PROPOSAL
    all_items = [item for bundle in bundles for item in bundle]
    if not set(proposal) <= set(parties):
        return UNKNOWN_PARTY
    if not set(all_items) <= set(items):
        return UNKNOWN_ITEM
    if len(all_items) > len(set(all_items)):
        return ITEM_TWICE
    return None if len(all_items) == len(items) else MISSING_ITEM


def sum_bundle_value(values: Mapping[str, int], bundle: Collection[str]) -> int:
    """Return the sum of the values of the items of a bundle, in points."""
    return sum(values[item] for item in bundle)


def compute_share(part: int, total: int) -> float | None:
    """Return part / whole, from 0 to 1; None if the whole is 0."""
    return part / total if total else None


def compute_envy(values: Mapping[str, int], division: Division, party: str) -> int:
    """Return max(0, value of another party's best bundle - value of the own bundle), in points by the party's own values; 0 is best."""
    return max(0, *(sum_bundle_value(values, bundle) for bundle in division.values())) - sum_bundle_value(
        values, division.get(party, ())
    )


def is_envy_free_but_one(values: Mapping[str, int], division: Division, party: str) -> bool:
    """Return EF1: whether every other party's bundle has one item without which it is worth at most the party's own. (Budish 2011.)"""
    mine = sum_bundle_value(values, division.get(party, ()))
    bundles = (bundle for owner, bundle in division.items() if owner != party and bundle)
    return all(mine >= sum_bundle_value(values, bundle) - max(values[item] for item in bundle) for bundle in bundles)


def compute_jain_index(shares: Sequence[float]) -> float | None:
    """Return (sum u)^2 / (n sum u^2), 1/n (one has all) to 1 (all are equal); None if all are 0. (Jain, Chiu and Hawe 1984.)"""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def is_pareto(values: PartyValues, points: Sequence[int]) -> bool:
    """Return whether no other division gives all parties at least these utilities and one more; tries n ** items divisions."""
    target = tuple(points)
    totals = {(0,) * len(target)}
    for item in next(iter(values.values())):
        gains = [party_values[item] for party_values in values.values()]
        totals = {(*total[:i], total[i] + gain, *total[i + 1 :]) for total in totals for i, gain in enumerate(gains)}
    return not any(total != target and all(map(int.__ge__, total, target)) for total in totals)
