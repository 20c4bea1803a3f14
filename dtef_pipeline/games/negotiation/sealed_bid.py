"""Sealed bids: each seat names one whole number without knowing the others', the highest wins, and the auction's rule sets the price."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import ChooseCommand, Count, GameEnding, GameMetric, GameResult, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.reading import find_action, read_command
from dtef_pipeline.text.alignment import align_lower
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.shortening import shorten_to_line

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


SEALED_BID_METRICS = (
    GameMetric("win_share", "efficacy", "share", "none", "Auctions that the bidder won, as a share of all completed auctions."),
    GameMetric(
        "surplus",
        "expected value",
        "points",
        "higher",
        "Value minus price if the bidder won, else 0; mean over auctions.",
    ),
    GameMetric(
        "regret",
        "efficiency",
        "points",
        "lower",
        "Best surplus of any bid against the others' bids, minus the bidder's own surplus.",
    ),
    GameMetric("overbid", "risk", "points", "lower", "Amount of the bid above the bidder's value; 0 if it was not above."),
    GameMetric("underbid", "risk", "points", "none", "Amount of the bid below the bidder's value; 0 if it was not below."),
    GameMetric(
        "efficiency",
        "social",
        "share",
        "higher",
        "Auctions won by a bidder with the highest value, as a share of all completed auctions.",
    ),
)
OVERBID_FLAG = "overbid"
"""Flag of a result in which a seat bid above its value, if the manifest gives it a severity."""
_PRICES = ("first", "second")
_NUMBERS_FOR_LOTS = 64
"""Number of a seed's first random numbers reserved for the lot between equal bids, so that values reveal nothing about it."""


@dataclass(frozen=True, slots=True)
class SealedBids:
    """One auction: the object's value to each seat, and the bids so far, in the order of the seats."""

    seed: int
    values: tuple[int, ...]
    bids: tuple[int, ...] = ()


def of_manifest(manifest: ScenarioManifest) -> SealedBid:
    """Make the scenario of a manifest, with the setting `price: first|second`. Raises ConfigError for other settings, or unless it has 2 to
    4 seats."""
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
        self.baselines: Mapping[str, ChooseCommand] = {
            "truthful": lambda state, seat, _: format_bid(state.values[seat]),
            "shade-half": lambda state, seat, _: format_bid(state.values[seat] // 2),
            "max": lambda *_: format_bid(HIGHEST_BID),
            "zero": lambda *_: format_bid(0),
        }
        self._commands = tuple(map(format_bid, range(HIGHEST_BID + 1)))
        self._bids = {command: bid for bid, command in enumerate(self._commands)}

    def reset(self, seed: int, seating: tuple[int, ...]) -> SealedBids:
        """Draw independent values for the seats, 0 to 100 points, all equally likely."""
        rng = random.Random(seed)  # noqa: S311 - a game's values, no secret
        rng.getrandbits(32 * _NUMBERS_FOR_LOTS)
        return SealedBids(seed, tuple(rng.randint(0, HIGHEST_BID) for _ in self.seats))

    def seat_to_move(self, state: SealedBids) -> int | None:
        """Return the next seat, or None if all have bid."""
        return len(state.bids) if len(state.bids) < len(self.seats) else None

    def observation(self, state: SealedBids, seat: int) -> str:
        """Describe the seat's own value and the price rule; the others' bids only after all have bid, their values never."""
        rivals = [name for index, name in enumerate(self.seats) if index != seat]
        subject = "bidder is" if len(rivals) == 1 else "bidders are"
        lines = [
            f"You are bidder {self.seats[seat]}. The other {subject} {', '.join(rivals)}.",
            f"The object is worth {state.values[seat]} points to you.",
            f"The highest bid wins and pays {'its own bid' if self.price == 'first' else 'the highest of the other bids'}.",
        ]
        if len(state.bids) == len(self.seats):
            return "\n".join([*lines, *self._list_end_lines(state, seat)])
        if seat < len(state.bids):
            return "\n".join([*lines, f"You have bid {state.bids[seat]}. The bids are opened when everybody has bid."])
        return "\n".join([*lines, f"Your bid, a whole number from 0 to {HIGHEST_BID}?"])

    def _list_end_lines(self, state: SealedBids, seat: int) -> list[str]:
        return [*self._describe_auction(state), f"Your surplus: {self._auction(state).surplus[self.seats[seat]]}."]

    def _describe_auction(self, state: SealedBids) -> list[str]:
        """Describe the result of a completed auction, as all bidders see it."""
        auction = self._auction(state)
        lot = (
            f" The lot decided between the equal bids of {' and '.join(auction.tied_bidders)}."
            if len(auction.tied_bidders) > 1
            else ""
        )
        return [f"The bids: {self._format_by_seat(state.bids)}.", f"{auction.winner} wins and pays {auction.price}.{lot}"]

    def _format_by_seat(self, numbers: Sequence[int]) -> str:
        return ", ".join(f"{name} {number}" for name, number in zip(self.seats, numbers, strict=False))

    def legal(self, state: SealedBids, seat: int) -> tuple[str, ...]:
        """Return `bid 0` to `bid 100`."""
        return self._commands if self.seat_to_move(state) == seat else ()

    def read(self, text: str, state: SealedBids, seat: int) -> str | Illegal:
        """Return the bid in a text (`ACTION: bid 37`, `37`, `I bid 37`), or why there is none."""
        if self.seat_to_move(state) != seat:
            return Illegal("It is not your turn.")
        return read_bid(text, self._commands)

    def step(self, state: SealedBids, seat: int, command: str) -> SealedBids:
        """Return the state after a bid. Raises ValueError for an invalid bid, or if it is not the seat's turn."""
        if self.seat_to_move(state) != seat or command not in self._bids:
            raise ValueError(f"{self.name}: seat {seat} cannot play {command!r} now")
        return replace(state, bids=(*state.bids, self._bids[command]))

    def result(self, state: SealedBids) -> GameResult | None:
        """Return the result: the highest bidder's outcome is a win even if it paid too much; the reward is the surplus in points."""
        if self.seat_to_move(state) is not None:
            return None
        auction = self._auction(state)
        overbids = self._flags_overbids and any(bid > value for bid, value in zip(state.bids, state.values, strict=True))
        return GameResult(
            tuple(float(auction.surplus[name]) for name in self.seats),
            tuple("win" if name == auction.winner else "loss" for name in self.seats),
            (*(["tie_by_lot"] if len(auction.tied_bidders) > 1 else []), *([OVERBID_FLAG] if overbids else [])),
        )

    def stop_episode(self, state: SealedBids, seat: int | None) -> GameResult:
        """Return the result without an auction: no surplus; a seat that forfeits has lost, the others have drawn."""
        outcomes = tuple("loss" if index == seat else "draw" for index in range(len(self.seats)))
        return GameResult((0.0,) * len(self.seats), cast(Any, outcomes), ("turn_limit" if seat is None else "forfeit",))

    def default(self, state: SealedBids, seat: int) -> str:
        """Return a bid of 0, which costs nothing."""
        return format_bid(0)

    def measure_seat(self, state: SealedBids, seat: int) -> Mapping[str, Count]:
        """Count for a bid its distance from the value; the other metrics only for completed auctions, in which all seats bid."""
        if seat >= len(state.bids):
            return {}
        bid, value = state.bids[seat], state.values[seat]
        counts = {"overbid": Count(max(0, bid - value)), "underbid": Count(max(0, value - bid))}
        if self.seat_to_move(state) is not None:
            return counts
        auction, name = self._auction(state), self.seats[seat]
        values = self._map_by_name(state.values)
        return {
            **counts,
            "win_share": Count(int(auction.winner == name)),
            "surplus": Count(auction.surplus[name]),
            "regret": Count(compute_regret(self._map_by_name(state.bids), values, self.price, state.seed, name)),
            "efficiency": Count(int(values[auction.winner] == max(state.values))),
        }

    def ending(self, state: SealedBids) -> GameEnding:
        """Describe all bids, the winner, the price, and whether the lot decided. Values, surpluses and regret are hidden from the
        bidders."""
        values = f"Worth of the object: {self._format_by_seat(state.values)}."
        if self.seat_to_move(state) is not None:
            text = f"The bids so far: {self._format_by_seat(state.bids)}." if state.bids else "Nobody had bid."
            return GameEnding(("No auction was held: no bid was opened.",), (values, text))
        bids, worth = self._map_by_name(state.bids), self._map_by_name(state.values)
        auction = self._auction(state)
        regrets = [compute_regret(bids, worth, self.price, state.seed, name) for name in self.seats]
        surplus = self._format_by_seat([auction.surplus[name] for name in self.seats])
        surplus_text = (
            f"Surplus: {surplus}. Regret, how much more surplus the best bid would have made: {self._format_by_seat(regrets)}."
        )
        return GameEnding(tuple(self._describe_auction(state)), (values, surplus_text))

    def encode_state(self, state: SealedBids) -> dict[str, Any]:
        """Return values and bids by bidder; for a completed auction also its result, with the bidders between whom the lot decided."""
        data: dict[str, Any] = {
            "price_rule": self.price,
            "values": self._map_by_name(state.values),
            "bids": dict(zip(self.seats, state.bids, strict=False)),
        }
        if self.seat_to_move(state) is None:
            auction = self._auction(state)
            by_lot = list(auction.tied_bidders) if len(auction.tied_bidders) > 1 else []
            data |= {"winner": auction.winner, "price": auction.price, "surplus": dict(auction.surplus), "lot_between": by_lot}
        return data

    def permute_hidden(self, state: SealedBids, seat: int, rng: random.Random) -> SealedBids:
        """Return the state with the others' values drawn again, and their bids too until they are opened."""
        is_open = self.seat_to_move(state) is None
        return SealedBids(
            state.seed if is_open else rng.getrandbits(32),
            tuple(value if index == seat else rng.randint(0, HIGHEST_BID) for index, value in enumerate(state.values)),
            tuple(bid if index == seat or is_open else rng.randint(0, HIGHEST_BID) for index, bid in enumerate(state.bids)),
        )

    def _auction(self, state: SealedBids) -> AuctionResult:
        return run_auction(self._map_by_name(state.bids), self._map_by_name(state.values), self.price, state.seed)

    def _map_by_name(self, numbers: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(self.seats, numbers, strict=True))


_AMOUNT = r"(-?\$?-?[0-9](?:[0-9.,]{0,20}[0-9])?|-?\.[0-9]{1,20})"
_NUMBER_WORDS = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|billions?|dozens?)"
)
_WORDS_THAT_CHANGE_A_NUMBER = (
    rf"(?:a )?(?:or|plus|minus|times|more|less|fraction|per ?cent|divided|multiplied|squared|over|above|below|under|bit|few"
    rf"|little|couple|some|something|up|down|maybe|perhaps|possibly|no|k|zero|one|{_NUMBER_WORDS})\b"
)
_NO_OTHER_AMOUNT_FOLLOWS = rf"(?! ?(?:[-+*/^%=~$&|x×÷·]? ?[-$]?\.?[0-9]|[-+*/^%=~×÷·]|{_WORDS_THAT_CHANGE_A_NUMBER}))"
_FOLLOWING_WORDS = (
    r"(?:and(?! (?:a )?(?:half|quarter))|as|at(?! (?:most|least))|because|but|for|given|gives|here|hoping|in|is|it|my|now|on|please|since|so"
    r"|that|this|to|where|which|will|with|would)\b"
)
_AFTER_AMOUNT = (
    r"(?: ?(?:points?|pts))?[\"'\])}>|]{0,4}"
    rf"(?:\Z|(?: ?[.!;:,]{{1,3}}(?= |\Z)| ?—| (?=[(\[])[(\[]| {_FOLLOWING_WORDS}){_NO_OTHER_AMOUNT_FOLLOWS})"
)
"""The end, or words that do not change the number: neither `bid 20 more than 30` nor `bid 5k` is a bid of its first number."""
_BID_SENTENCE = re.compile(rf"(?:(?:i|my) )?(?:bid )?(?:(?:is|of) )?{_AMOUNT} ?(?:points?)?")
_BID_IN_WORDS = re.compile(rf"\bbid (?:(?:is|of|:) ?)?{_AMOUNT}(?:(?={_AFTER_AMOUNT})())?")
"""An amount that is called a bid; the second group matches if the following text does not change it."""
_BEFORE_BID = re.compile(
    r"(?:(?:i|my|we|our|the|a|final|sealed|will|would|shall|ll|now|hereby|place|submit|make|to|so|therefore|thus|then|ok|okay|answer|command"
    r"|d|like|want|am|m|going|decide|let|me|us|just|simply|finally|here|is|this|player|bidder|party|boxed|text|[a-d])[ ':,{]{1,3}){0,9}"
)
_ANY_NUMBER = re.compile(r"[0-9][0-9.,]*")
_ANY_NUMBER_WORD = re.compile(rf"\b{_NUMBER_WORDS}\b")
_EMPHASIS = re.compile(r"(?<![\w.)])[*`]+|[*`]++(?![\w.($-])")
"""Emphasis, but not between two numbers: `70*5` is not 705."""
_LONGEST_BID_LINE = 60
_LONGEST_BID_TEXT = 20_000


def format_bid(bid: int) -> str:
    """Return the canonical command of a bid."""
    return f"bid {bid}"


def read_bid(text: str, legal: Sequence[str]) -> str | Illegal:
    """Return the bid in a text as a canonical command, or why there is none. Anything but a whole number of 0 to 100 points is never
    truncated to one.

    No number is taken out of a sum, a range or a larger number: `50-60`, `37/2`, `1 000` and `5k` are not bids.

    The last `ACTION:` counts, else the last line that is a bid, else the only bid that the text mentions.
    """
    action_text = find_action(text)
    if action_text is not None:
        return _read_bid_action(action_text, text)
    text = strip_thinking(text)[-_LONGEST_BID_TEXT:]
    lines = [amount for line in text.splitlines() if (amount := _read_amount(line)) is not None]
    if lines:
        commands = [reading for amount in lines if isinstance(reading := _check_bid(amount), str)]
        return commands[-1] if commands else _check_bid(lines[-1])
    bids = [bid for line in text.splitlines() for bid in _BID_IN_WORDS.finditer(_normalise_line(line))]
    amounts = {_strip_amount(bid[1]) for bid in bids}
    if len(amounts) == 1 and all(bid[2] is not None for bid in bids):
        return _check_bid(amounts.pop())
    if amounts:
        return Illegal(
            f"A bid is one whole number from 0 to {HIGHEST_BID}; the text speaks of {shorten_to_line(_quote_bids(bids), 40)!r}. "
            "End the reply with one line: ACTION: bid 37",
            "unparsed",
        )
    reading = read_command(text, (), _normalise_line)
    return reading if isinstance(reading, Illegal) else Illegal(_explain_no_bid(text), "unparsed")


def _read_bid_action(action_text: str, text: str) -> str | Illegal:
    """Read the bid after `ACTION:`, optionally followed by words without another number."""
    words = _normalise_line(action_text).strip(" {<[(\"'")
    amount = _read_amount(action_text)
    if amount is not None:
        return _check_bid(amount)
    if (before := _BEFORE_BID.match(words)) and not _has_several_numbers(words):
        bid = _BID_IN_WORDS.match(words, before.end())
        if bid is not None and bid[2] is not None:
            return _check_bid(_strip_amount(bid[1]))
    reading = read_command(text, (), _normalise_line)
    return reading if isinstance(reading, Illegal) and reading.kind == "refused" else Illegal(_explain_no_bid(action_text))


def _has_several_numbers(words: str) -> bool:
    """Return whether words contain two different numbers, or one not in digits."""
    numbers = {match[0].rstrip(".,").lstrip("0") for match in _ANY_NUMBER.finditer(words)}
    has_number_word = _ANY_NUMBER_WORD.search(words) is not None
    return len(numbers) > 1 or has_number_word or any(char.isnumeric() and not char.isdecimal() for char in words)


def _quote_bids(bids: list[re.Match[str]]) -> str:
    """Quote ambiguous bids with some of the text after them."""
    return ", ".join(dict.fromkeys(bid.string[bid.start() : bid.end() + 8] for bid in bids[-2:]))


def _read_amount(line: str) -> str | None:
    """Return the number of a line that is only a bid, or None for other lines."""
    if len(line) > _LONGEST_BID_LINE:
        return None
    match = _BID_SENTENCE.fullmatch(_normalise_line(line).lstrip(" !*`\"'").rstrip(" .!*`\"'"))
    return _strip_amount(match[1]) if match else None


def _strip_amount(amount: str) -> str:
    return amount.replace("$", "").rstrip(".,")


def _check_bid(amount: str) -> str | Illegal:
    digits = amount.lstrip("0") or "0"
    legal = digits.isdecimal() and len(digits) <= len(str(HIGHEST_BID)) and int(digits) <= HIGHEST_BID
    return format_bid(int(digits)) if legal else Illegal(_explain_no_bid(amount))


def _explain_no_bid(bid_text: str) -> str:
    return f"A bid is a whole number from 0 to {HIGHEST_BID}; you said {shorten_to_line(bid_text, 40)!r}."


def _normalise_line(text: str) -> str:
    """Normalise a line: lower case, plain digits, single spaces, without emphasis."""
    return " ".join(_EMPHASIS.sub("", align_lower(text).replace("\\", " ")).split()).replace("bid: ", "bid ")
