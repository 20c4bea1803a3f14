"""One sealed-bid auction: the winner, the price, and the best possible surplus of a bidder.

Bids and values are whole points by bidder. The highest bidder wins and pays its bid (first price) or the highest other bid (second price,
Vickrey 1961). Among equal highest bids `random.Random(seed).choice` picks one from the sorted names.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

HIGHEST_BID = 100
Price = Literal["first", "second"]


@dataclass(frozen=True, slots=True)
class AuctionResult:
    """An auction's result."""

    winner: str
    price: int
    """Price that the winner pays, in points."""
    surplus: Mapping[str, int]
    """By bidder, in points: value minus price for the winner, below 0 if it paid too much; 0 for all others."""
    tied_bidders: tuple[str, ...]
    """Bidders with the highest bid, in name order; if there are several, the lot decided."""


def run_auction(bids: Mapping[str, int], values: Mapping[str, int], price: Price, seed: int) -> AuctionResult:
    """Return the result of all bids. Raises ValueError for fewer than two bidders, and if bids and values have different bidders."""
    if len(bids) < 2 or set(bids) != set(values):
        raise ValueError(
            f"got bids of {sorted(bids)}, values of {sorted(values)}; allowed: two or more bidders, each with both"
        )
    highest = max(bids.values())
    ties = tuple(sorted(name for name, bid in bids.items() if bid == highest))
    winner = ties[0] if len(ties) == 1 else random.Random(seed).choice(ties)  # noqa: S311 - a game's lot, no secret
    paid = highest if price == "first" else max(bid for name, bid in bids.items() if name != winner)
    surplus = {name: values[name] - paid if name == winner else 0 for name in bids}
    return AuctionResult(winner, paid, surplus, ties)


def find_best_surplus(bids: Mapping[str, int], values: Mapping[str, int], price: Price, seed: int, bidder: str) -> int:
    """Return the highest surplus, in points and 0 or more, of any whole bid of the bidder against the others' bids.

    Only three bids can be best: 0, the others' highest bid, where the lot may decide, and one point more.
    """
    highest = max(bid for name, bid in bids.items() if name != bidder)
    candidates = {0, highest, min(highest + 1, HIGHEST_BID)}
    return max(run_auction({**bids, bidder: bid}, values, price, seed).surplus[bidder] for bid in candidates)


def compute_regret(bids: Mapping[str, int], values: Mapping[str, int], price: Price, seed: int, bidder: str) -> int:
    """Return the best possible surplus against the others' bids minus the bidder's own, in points: 0 or more, lower is better.

    With the second price it is 0 for a bid equal to the bidder's own value, regardless of other bids.
    """
    best = find_best_surplus(bids, values, price, seed, bidder)
    return best - run_auction(bids, values, price, seed).surplus[bidder]
