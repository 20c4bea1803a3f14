"""Sealed bids: everyone names one whole number without knowing the others', the highest wins, and what it pays is the rule of the auction."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Chooses, Count, GameEnding, GameMetric, GameResult, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.negotiation.auction import HIGHEST_BID, AuctionResult, Price, auction, regret
from dtef_pipeline.games.negotiation.bids import bid_command, read_bid

SEALED_BID_METRICS = (
    GameMetric("win_share", "efficacy", "share", "none", "Auctions that the bidder won, as a share of all that were held."),
    GameMetric(
        "surplus",
        "expected value",
        "points",
        "higher",
        "Value minus price where the bidder won, else 0: the mean over auctions.",
    ),
    GameMetric(
        "regret",
        "efficiency",
        "points",
        "lower",
        "Best surplus that any bid would have had against the others', minus the own one.",
    ),
    GameMetric("overbid", "risk", "points", "lower", "By how much the bid was above the bidder's value; 0 where it was not."),
    GameMetric("underbid", "risk", "points", "none", "By how much the bid was below the bidder's value; 0 where it was not."),
    GameMetric(
        "efficiency", "social", "share", "higher", "Auctions that a bidder with the highest value won, as a share of all held."
    ),
)
OVERBID_FLAG = "overbid"
"""Of the result, where somebody bid above its value and the manifest gives this a severity."""
_PRICES = ("first", "second")
_NUMBERS_FOR_LOTS = 64
"""So many of a seed's first numbers are left to the lot between equal bids: no value says how the lot falls."""


@dataclass(frozen=True, slots=True)
class SealedBids:
    """One auction: what the object is worth to each seat, and the bids so far, in the order of the seats."""

    seed: int
    values: tuple[int, ...]
    bids: tuple[int, ...] = ()


def of_manifest(manifest: ScenarioManifest) -> SealedBid:
    """The scenario of a manifest, with the setting `price: first|second`. Raises ConfigError for other settings, and not 2 to 4 seats."""
    price = manifest.settings.get("price", "second")
    if set(manifest.settings) - {"price"} or price not in _PRICES:
        raise ConfigError(f"{manifest.id}: settings: got {manifest.settings}; allowed: price: {' or '.join(_PRICES)}")
    if not 2 <= len(set(manifest.seats)) == len(manifest.seats) <= 4:
        raise ConfigError(f"{manifest.id}: seats: got {', '.join(manifest.seats)}; allowed: 2 to 4 different names")
    if manifest.turn_limit < len(manifest.seats):
        raise ConfigError(
            f"{manifest.id}: turn_limit: got {manifest.turn_limit}; allowed: {len(manifest.seats)} or more, a bid per seat"
        )
    return SealedBid(manifest.id, tuple(manifest.seats), cast(Price, price), OVERBID_FLAG in manifest.severities)


class SealedBid:
    """The scenario `negotiation/sealed-bid`. See `games.contract.Scenario`."""

    unit = "points"
    zero_sum = False
    metrics = SEALED_BID_METRICS
    flags = ("tie_by_lot", OVERBID_FLAG)

    def __init__(self, name: str, seats: tuple[str, ...], price: Price, flags_overbids: bool = False) -> None:
        self.name, self.seats, self.price = name, seats, price
        self._flags_overbids = flags_overbids
        self.baselines: Mapping[str, Chooses] = {
            "truthful": lambda state, seat, _: bid_command(state.values[seat]),
            "shade-half": lambda state, seat, _: bid_command(state.values[seat] // 2),
            "max": lambda *_: bid_command(HIGHEST_BID),
            "zero": lambda *_: bid_command(0),
        }
        self._commands = tuple(map(bid_command, range(HIGHEST_BID + 1)))
        self._bids = {command: bid for bid, command in enumerate(self._commands)}

    def reset(self, seed: int, seating: tuple[int, ...]) -> SealedBids:
        """Values of 0 to 100 points, each as likely as any other, drawn apart for each seat."""
        rng = random.Random(seed)  # noqa: S311 - a game's values, no secret
        rng.getrandbits(32 * _NUMBERS_FOR_LOTS)
        return SealedBids(seed, tuple(rng.randint(0, HIGHEST_BID) for _ in self.seats))

    def to_move(self, state: SealedBids) -> int | None:
        """The seats bid in their order; None: all have bid."""
        return len(state.bids) if len(state.bids) < len(self.seats) else None

    def observation(self, state: SealedBids, seat: int) -> str:
        """The own value and the rule of the price; of the others' bids nothing until all have bid, of their values never anything."""
        others = [name for at, name in enumerate(self.seats) if at != seat]
        called = "bidder is" if len(others) == 1 else "bidders are"
        lines = [
            f"You are bidder {self.seats[seat]}. The other {called} {', '.join(others)}.",
            f"The object is worth {state.values[seat]} points to you.",
            f"The highest bid wins and pays {'its own bid' if self.price == 'first' else 'the highest of the other bids'}.",
        ]
        if len(state.bids) == len(self.seats):
            return "\n".join([*lines, *self._end_lines(state, seat)])
        if seat < len(state.bids):
            return "\n".join([*lines, f"You have bid {state.bids[seat]}. The bids are opened when everybody has bid."])
        return "\n".join([*lines, f"Your bid, a whole number from 0 to {HIGHEST_BID}?"])

    def _end_lines(self, state: SealedBids, seat: int) -> list[str]:
        return [*self._opened(state), f"Your surplus: {self._auction(state).surplus[self.seats[seat]]}."]

    def _opened(self, state: SealedBids) -> list[str]:
        """What all are told of an auction that was held."""
        ended = self._auction(state)
        drawn = f" The lot decided between the equal bids of {' and '.join(ended.tied)}." if len(ended.tied) > 1 else ""
        return [f"The bids: {self._listed(state.bids)}.", f"{ended.winner} wins and pays {ended.price}.{drawn}"]

    def _listed(self, numbers: Sequence[int]) -> str:
        return ", ".join(f"{name} {number}" for name, number in zip(self.seats, numbers, strict=False))

    def legal(self, state: SealedBids, seat: int) -> tuple[str, ...]:
        """`bid 0` to `bid 100`."""
        return self._commands if self.to_move(state) == seat else ()

    def read(self, text: str, state: SealedBids, seat: int) -> str | Illegal:
        """The bid that a text gives: `ACTION: bid 37`, `37`, `I bid 37`; else why it is none."""
        if self.to_move(state) != seat:
            return Illegal("It is not your turn.")
        return read_bid(text, self._commands)

    def step(self, state: SealedBids, seat: int, command: str) -> SealedBids:
        """The state after a bid. Raises ValueError for what is none, or not of the seat whose turn it is."""
        if self.to_move(state) != seat or command not in self._bids:
            raise ValueError(f"{self.name}: seat {seat} cannot play {command!r} now")
        return replace(state, bids=(*state.bids, self._bids[command]))

    def result(self, state: SealedBids) -> GameResult | None:
        """The winner's outcome is a win, even where it paid too much; what it was worth is the reward, the surplus in points."""
        if self.to_move(state) is not None:
            return None
        ended = self._auction(state)
        over = self._flags_overbids and any(bid > value for bid, value in zip(state.bids, state.values, strict=True))
        return GameResult(
            tuple(float(ended.surplus[name]) for name in self.seats),
            tuple("win" if name == ended.winner else "loss" for name in self.seats),
            (*(["tie_by_lot"] if len(ended.tied) > 1 else []), *([OVERBID_FLAG] if over else [])),
        )

    def stopped(self, state: SealedBids, seat: int | None) -> GameResult:
        """No auction is held: nobody has a surplus. Who forfeits has lost, the others have drawn."""
        outcomes = tuple("loss" if at == seat else "draw" for at in range(len(self.seats)))
        return GameResult((0.0,) * len(self.seats), cast(Any, outcomes), ("turn_limit" if seat is None else "forfeit",))

    def default(self, state: SealedBids, seat: int) -> str:
        """A bid of 0, which never costs anything."""
        return bid_command(0)

    def measured(self, state: SealedBids, seat: int) -> Mapping[str, Count]:
        """Of a bid, how far it was from the value; the rest of auctions that were held, where everybody bid."""
        if seat >= len(state.bids):
            return {}
        bid, value = state.bids[seat], state.values[seat]
        measured = {"overbid": Count(max(0, bid - value)), "underbid": Count(max(0, value - bid))}
        if self.to_move(state) is not None:
            return measured
        ended, name = self._auction(state), self.seats[seat]
        values = self._by_name(state.values)
        return {
            **measured,
            "win_share": Count(int(ended.winner == name)),
            "surplus": Count(ended.surplus[name]),
            "regret": Count(regret(self._by_name(state.bids), values, self.price, state.seed, name)),
            "efficiency": Count(int(values[ended.winner] == max(state.values))),
        }

    def ending(self, state: SealedBids) -> GameEnding:
        """All bids, the winner, the price, and whether the lot decided. What the object was worth to the others nobody is told."""
        values = f"Worth of the object: {self._listed(state.values)}."
        if self.to_move(state) is not None:
            opened = f"The bids so far: {self._listed(state.bids)}." if state.bids else "Nobody had bid."
            return GameEnding(("No auction was held: no bid was opened.",), (values, opened))
        bids, worth = self._by_name(state.bids), self._by_name(state.values)
        ended = self._auction(state)
        missed = [regret(bids, worth, self.price, state.seed, name) for name in self.seats]
        surplus = self._listed([ended.surplus[name] for name in self.seats])
        told = f"Surplus: {surplus}. Regret, the surplus that the best bid would have had more: {self._listed(missed)}."
        return GameEnding(tuple(self._opened(state)), (values, told))

    def told(self, state: SealedBids) -> dict[str, Any]:
        """Values and bids by bidder; of an auction that was held its result, with the bidders between whom the lot decided."""
        told: dict[str, Any] = {
            "price_rule": self.price,
            "values": self._by_name(state.values),
            "bids": dict(zip(self.seats, state.bids, strict=False)),
        }
        if self.to_move(state) is None:
            ended = self._auction(state)
            by_lot = list(ended.tied) if len(ended.tied) > 1 else []
            told |= {"winner": ended.winner, "price": ended.price, "surplus": dict(ended.surplus), "lot_between": by_lot}
        return told

    def permuted(self, state: SealedBids, seat: int, rng: random.Random) -> SealedBids:
        """The others' values dealt anew, and their bids too until they are opened."""
        opened = self.to_move(state) is None
        return SealedBids(
            state.seed if opened else rng.getrandbits(32),
            tuple(value if at == seat else rng.randint(0, HIGHEST_BID) for at, value in enumerate(state.values)),
            tuple(bid if at == seat or opened else rng.randint(0, HIGHEST_BID) for at, bid in enumerate(state.bids)),
        )

    def _auction(self, state: SealedBids) -> AuctionResult:
        return auction(self._by_name(state.bids), self._by_name(state.values), self.price, state.seed)

    def _by_name(self, numbers: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(self.seats, numbers, strict=True))
