"""Allocation: parties that value items differently divide them by messages, offers and acceptances; without agreement nobody gets any."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import ChooseCommand, Count, EpisodeOutcome, GameEnding, GameMetric, GameResult, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.negotiation.proposals import (
    Fairness,
    NegotiationMessage,
    NegotiationTable,
    PartyValues,
    group_by_owner,
    measure_fairness,
    parse_message,
    quote_words,
    read_message,
)
from dtef_pipeline.text.number_words import format_count

ITEM_NAMES = ("boat", "clock", "drum", "lamp", "ring", "tent")
FEWEST_ITEMS = 3
TOTAL_VALUE = 10
"""Total value of all items to each party, in points."""
Owners = tuple[int, ...]
"""By item, the seat that gets it."""


class StandingOffer(NamedTuple):
    """The latest offer."""

    owners: Owners
    seat: int
    """Seat that made the offer."""
    accepting_seats: frozenset[int] = frozenset()
    """Seats that have accepted it."""

    def awaits(self, seat: int) -> bool:
        """Return whether the offer is another seat's and this seat has not accepted it."""
        return seat != self.seat and seat not in self.accepting_seats


class BargainMove(NamedTuple):
    """One message, with the offer that was open before it."""

    seat: int
    message: NegotiationMessage
    previous_offer: StandingOffer | None

    @property
    def is_answer(self) -> bool:
        """Whether the message answers another party's offer that its writer has not accepted."""
        return self.previous_offer is not None and self.previous_offer.awaits(self.seat)

    @property
    def next_offer(self) -> StandingOffer | None:
        """The offer that is open after the message."""
        if self.message.offer is not None:
            return StandingOffer(self.message.offer, self.seat)
        offer = self.previous_offer
        if self.message.accepts and offer is not None:
            return offer._replace(accepting_seats=offer.accepting_seats | {self.seat})
        return offer


@dataclass(frozen=True, slots=True)
class Bargain:
    """One negotiation: items, their values, and the messages so far. The seats write in turn, from seat 0 on."""

    items: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    """Value of each item in points, by seat."""
    messages: tuple[NegotiationMessage, ...] = ()

    @property
    def writer(self) -> int:
        """The seat that writes next."""
        return len(self.messages) % len(self.values)

    def list_moves(self) -> list[BargainMove]:
        """Return each message with the offer that it may answer."""
        moves: list[BargainMove] = []
        for number, message in enumerate(self.messages):
            moves.append(BargainMove(number % len(self.values), message, moves[-1].next_offer if moves else None))
        return moves

    def open_offer(self) -> StandingOffer | None:
        """Return the open offer, or None."""
        moves = self.list_moves()
        return moves[-1].next_offer if moves else None

    def find_agreement(self) -> Owners | None:
        """Return each party's items after all others have accepted an offer, or None without an agreement."""
        offer = self.open_offer()
        return offer.owners if offer and len(offer.accepting_seats) == len(self.values) - 1 else None

    def compute_bundle_value(self, owners: Owners, seat: int) -> int:
        """Return the value of a seat's bundle to the seat, in points."""
        return sum(value for value, owner in zip(self.values[seat], owners, strict=True) if owner == seat)

    def has_fair_share(self, owners: Owners, seat: int) -> bool:
        """Return whether a seat's bundle is worth at least 1/n of all items to it."""
        return self.compute_bundle_value(owners, seat) * len(self.values) >= sum(self.values[seat])

    def values_by_party(self, parties: tuple[str, ...]) -> PartyValues:
        """Return the values by party and item."""
        return {party: dict(zip(self.items, points, strict=True)) for party, points in zip(parties, self.values, strict=True)}

    def division_by_party(self, owners: Owners, parties: tuple[str, ...]) -> dict[str, list[str]]:
        """Return a division by party."""
        return group_by_owner(owners, self.items, parties)

    def describe_division(self, owners: Owners, parties: tuple[str, ...]) -> str:
        """Return a division in words: `A gets boat; B gets nothing`."""
        bundles = self.division_by_party(owners, parties)
        return "; ".join(f"{party} gets {', '.join(bundle) or 'nothing'}" for party, bundle in bundles.items())


def draw_bargain(rng: random.Random, n_seats: int, n_items: int | None) -> Bargain:
    """Draw items and values. `n_items` None: 3 to 6 items, all equally likely."""
    items = ITEM_NAMES[: n_items or rng.randint(FEWEST_ITEMS, len(ITEM_NAMES))]
    return Bargain(items, tuple(draw_values(rng, len(items)) for _ in range(n_seats)))


def draw_values(rng: random.Random, n_items: int) -> tuple[int, ...]:
    """Draw whole values of 0 or more that sum to `TOTAL_VALUE`, all such lists equally likely (stars and bars)."""
    bars = sorted(rng.sample(range(TOTAL_VALUE + n_items - 1), n_items - 1))
    edges = (-1, *bars, TOTAL_VALUE + n_items - 1)
    return tuple(after - before - 1 for before, after in itertools.pairwise(edges))


def _format_values(state: Bargain, seat: int) -> str:
    values = ", ".join(f"{item} {value}" for item, value in zip(state.items, state.values[seat], strict=True))
    return f"{values} (together {sum(state.values[seat])})"


def _format_message_lines(state: Bargain, move: BargainMove, number: int, seat: int, parties: tuple[str, ...]) -> Iterator[str]:
    writer = f"you, {parties[seat]}" if move.seat == seat else parties[move.seat]
    if move.message.accepts:
        message_text = ", with an acceptance of the offer that stood."
    elif move.message.offer is not None:
        message_text = f", with an offer: {_describe_division(state, move.message.offer, seat, parties)}"
    else:
        message_text = ", without an offer." if move.message.words else ": nothing."
    yield f"Message {number}, from {writer}{message_text}"
    yield from quote_words(move.message.words, parties[move.seat])


def _describe_division(state: Bargain, owners: Owners, seat: int, parties: tuple[str, ...]) -> str:
    worth = state.compute_bundle_value(owners, seat)
    return f"{state.describe_division(owners, parties)}. Your part is worth {worth} to you."


def _format_standing_offer(state: Bargain, seat: int, parties: tuple[str, ...], is_over: bool) -> Iterator[str]:
    offer, owners = state.open_offer(), state.find_agreement()
    if owners is not None:
        yield f"All agree: {_describe_division(state, owners, seat, parties)}"
    elif is_over:
        yield "The last message is written, and there is no agreement: nobody gets anything."
    elif offer is None:
        yield "No offer stands."
    else:
        supporters = " and ".join(parties[party] for party in sorted(offer.accepting_seats))
        also = f" Accepted so far by {supporters}." if supporters else ""
        yield (
            f"The offer that stands is from {'you' if offer.seat == seat else parties[offer.seat]}: "
            + _describe_division(state, offer.owners, seat, parties)
            + also
        )


ALLOCATION_METRICS = (
    GameMetric("cooperation_rate", "social", "share", "higher", "Cooperative offers and answers, as a share of all."),
    GameMetric("agreement_rate", "social", "share", "higher", "Negotiations that ended in an agreement, as a share of all."),
    GameMetric(
        "utility_share", "expected value", "share", "higher", "Value of its items, as a share of all; 0 without agreement."
    ),
    GameMetric("envy", "social", "points", "lower", "Value of another's best bundle minus that of the own, 0 or more."),
    GameMetric("ef1", "social", "share", "higher", "Share of agreements without envy by more than one item."),
    GameMetric("jain", "social", "index", "higher", "Jain's index of the parties' shares, 1/n to 1, unless all are 0."),
    GameMetric("nash", "social", "points", "higher", "Geometric mean of all parties' points; 0 without agreement."),
    GameMetric("efficiency", "social", "share", "higher", "Total points, as a share of the maximum; 0 without agreement."),
    GameMetric("pareto", "social", "share", "higher", "Share of agreements that nobody can improve without another's loss."),
    GameMetric("messages", "efficiency", "messages", "none", "Messages of all parties together, from the first to the last."),
)


def _make_count(value: float | None) -> Count:
    return Count(0, 0) if value is None else Count(value)


@lru_cache(maxsize=1024)
def judge_division(
    values: tuple[tuple[int, ...], ...], items: tuple[str, ...], owners: Owners, parties: tuple[str, ...]
) -> Fairness:
    """Return the referee's numbers on a division. `values`: of each item, by seat."""
    bargain = Bargain(items, values)
    return measure_fairness(bargain.values_by_party(parties), bargain.division_by_party(owners, parties))


_KNOWLEDGE = ("private", "public")
_ITEM_NUMBERS = (None, *range(FEWEST_ITEMS, len(ITEM_NAMES) + 1))


def of_manifest(manifest: ScenarioManifest) -> Allocation:
    """Make the scenario of a manifest. Settings: `values: private|public` (whether parties know others' values), and `items: 3..6`.

    Its turn limit is the number of messages. Raises ConfigError for other settings, or unless it has 2 to 4 seats.
    """
    settings, seats = manifest.settings, manifest.seats
    n_items = settings.get("items")
    has_values = settings.get("values", "private") in _KNOWLEDGE
    if set(settings) - {"values", "items"} or not has_values or isinstance(n_items, float) or n_items not in _ITEM_NUMBERS:
        raise ConfigError(f"{manifest.id}: settings: got {settings}; allowed: values: {' or '.join(_KNOWLEDGE)}, items: 3 to 6")
    if not 2 <= len({name.casefold() for name in seats}) == len(seats) <= 4 or any("\n" in name for name in seats):
        raise ConfigError(f"{manifest.id}: seats: got {', '.join(seats)}; allowed: 2 to 4 different names")
    if manifest.turn_limit < len(seats):
        raise ConfigError(
            f"{manifest.id}: turn_limit: got {manifest.turn_limit}; allowed: {len(seats)} or more, a message per seat"
        )
    return Allocation(manifest)


class Allocation:
    """The scenario `negotiation/allocation`. See `games.contract.Scenario`."""

    unit = "points"
    zero_sum = False
    metrics = ALLOCATION_METRICS
    no_winner_reason = "nobody wins or loses a negotiation"

    def __init__(self, manifest: ScenarioManifest) -> None:
        self.name, self.seats = manifest.id, tuple(manifest.seats)
        self.baselines = make_negotiators(self.seats)
        self._most_messages, self._public = manifest.turn_limit, manifest.settings.get("values") == "public"
        self._n_items = cast("int | None", manifest.settings.get("items"))

    def reset(self, seed: int) -> Bargain:
        """Draw items and values from `random.Random(seed)`."""
        return draw_bargain(random.Random(seed), len(self.seats), self._n_items)  # noqa: S311 - a game's deal, no secret

    def seat_to_move(self, state: Bargain) -> int | None:
        """Return the seat to write, in turn, or None after an agreement or the last message."""
        return None if len(state.messages) >= self._most_messages or state.find_agreement() is not None else state.writer

    def observation(self, state: Bargain, seat: int) -> str:
        """Describe the items, their value to the seat, all messages, and the open offer. Each line of others' words begins with `NAME>`."""
        parties, is_over = self.seats, self.seat_to_move(state) is None
        rivals = [rival for rival in range(len(parties)) if rival != seat]
        subject = "party is" if len(rivals) == 1 else "parties are"
        lines = [
            f"You are party {parties[seat]}. The other {subject} {', '.join(parties[rival] for rival in rivals)}.",
            f"Worth to you: {_format_values(state, seat)}.",
            *(f"Worth to {parties[rival]}: {_format_values(state, rival)}." for rival in rivals if self._public),
            f"Messages so far: {len(state.messages)} of {self._most_messages}.",
        ]
        for number, move in enumerate(state.list_moves(), 1):
            lines += _format_message_lines(state, move, number, seat, parties)
        lines += _format_standing_offer(state, seat, parties, is_over)
        return "\n".join([*lines, *(["It is your turn to write."] if not is_over and state.writer == seat else [])])

    def legal(self, state: Bargain, seat: int) -> tuple[str, ...]:
        """Return the messages without words: accepting an open offer of another party, all offers (seats ** items, at most 4,096), and
        saying nothing."""
        if self.seat_to_move(state) != seat:
            return ()
        offers = _list_all_offers(state.items, self.seats)
        return (ACCEPTANCE.command(state.items, self.seats), *offers) if _find_open_offer(state, seat) else offers

    def read(self, text: str, state: Bargain, seat: int) -> str | Illegal:
        """Return the message in a text, with its words, as canonical JSON, or why there is none."""
        if self.seat_to_move(state) != seat:
            return Illegal("It is not your turn.")
        offer = state.open_offer()
        table = NegotiationTable(
            state.items, self.seats, seat, offer.seat if offer else None, bool(offer and seat in offer.accepting_seats)
        )
        message = read_message(text, table)
        return message if isinstance(message, Illegal) else message.command(state.items, self.seats)

    def describe_choice(self, command: str) -> str:
        """Return `accept`, `A: boat, drum; B: clock`, or `say nothing`."""
        values = json.loads(command)
        if "propose" not in values:
            return "accept" if values.get("accept") else values.get("words") or "say nothing"
        return "; ".join(f"{party}: {', '.join(bundle) or 'nothing'}" for party, bundle in values["propose"].items())

    def step(self, state: Bargain, seat: int, command: str) -> Bargain:
        """Return the state after a message. Raises ValueError for an invalid message, or one that is not allowed now."""
        message = parse_message(command, state.items, self.seats)
        if self.seat_to_move(state) != seat or (message.accepts and not _find_open_offer(state, seat)):
            raise ValueError(f"{self.name}: seat {seat} cannot play {command!r} now")
        return replace(state, messages=(*state.messages, message))

    def result(self, state: Bargain) -> GameResult | None:
        """Return the result: with an agreement, the value of each party's items in points; without one, 0 for all."""
        if self.seat_to_move(state) is not None:
            return None
        owners = state.find_agreement()
        if owners is None:
            return self.stop_episode(state, None)
        rewards = tuple(float(state.compute_bundle_value(owners, seat)) for seat in range(len(self.seats)))
        agreement: EpisodeOutcome = "agreement"
        return GameResult(rewards, (agreement,) * len(rewards))

    def stop_episode(self, state: Bargain, seat: int | None) -> GameResult:
        """Return the result without an agreement: nobody gets anything, and a seat that forfeits has lost."""
        outcomes: list[EpisodeOutcome] = ["loss" if index == seat else "no_agreement" for index in range(len(self.seats))]
        return GameResult((0.0,) * len(self.seats), tuple(outcomes), ("turn_limit" if seat is None else "forfeit",))

    def default(self, state: Bargain, seat: int) -> str:
        """Say nothing."""
        return SILENCE.command(state.items, self.seats)

    def measure_seat(self, state: Bargain, seat: int) -> Mapping[str, Count]:
        """Count a negotiation for each of `ALLOCATION_METRICS`, for one seat."""
        moves = [
            move for move in state.list_moves() if move.seat == seat and (move.message.offer is not None or move.is_answer)
        ]
        owners = state.find_agreement()
        counts = {
            "cooperation_rate": Count(sum(self._is_cooperative(state, move) for move in moves), len(moves)),
            "agreement_rate": Count(int(owners is not None)),
            "messages": Count(len(state.messages)),
        }
        if owners is None:
            return {**counts, "utility_share": Count(0), "nash": Count(0), "efficiency": Count(0)}
        division, party = self._judge(state, owners), self.seats[seat]
        return {
            **counts,
            "utility_share": _make_count(division.normalised[party]),
            "envy": Count(division.envy[party]),
            "ef1": Count(int(division.ef1[party])),
            "jain": _make_count(division.jain),
            "nash": Count(division.nash),
            "efficiency": _make_count(division.efficiency),
            "pareto": Count(int(division.pareto)),
        }

    def _is_cooperative(self, state: Bargain, move: BargainMove) -> bool:
        """Return whether an offer leaves all others a fair share, of the items where their values are private, or accepts one."""
        offer = move.message.offer
        if offer is None:
            previous = move.previous_offer
            return move.message.accepts and previous is not None and state.has_fair_share(previous.owners, move.seat)
        rivals = [seat for seat in range(len(self.seats)) if seat != move.seat]
        if self._public:
            return all(state.has_fair_share(offer, seat) for seat in rivals)
        return all(offer.count(seat) * len(self.seats) >= len(state.items) for seat in rivals)

    def _judge(self, state: Bargain, owners: Owners) -> Fairness:
        return judge_division(state.values, state.items, owners, self.seats)

    def ending(self, state: Bargain) -> GameEnding:
        """Describe the agreement, if there is one. The parties see the values and the referee's numbers only if values are public."""
        owners = state.find_agreement()
        outcome = "There was no agreement: nobody gets anything."
        lines = [f"Worth to {party}: {_format_values(state, seat)}." for seat, party in enumerate(self.seats)]
        if owners is not None:
            outcome = f"All agree: {state.describe_division(owners, self.seats)}."
            lines += _format_judged_division(self._judge(state, owners))
        return GameEnding((outcome, *lines)) if self._public else GameEnding((outcome,), tuple(lines))

    def encode_state(self, state: Bargain) -> dict[str, Any]:
        """Return items, all values, messages, and the referee's numbers on an agreement."""
        owners = state.find_agreement()
        return {
            "items": list(state.items),
            "values": {party: dict(points) for party, points in state.values_by_party(self.seats).items()},
            "messages": [
                {"party": self.seats[move.seat], **self._describe_message(state, move.message)} for move in state.list_moves()
            ],
            "agreement": None if owners is None else state.division_by_party(owners, self.seats),
            "referee": None if owners is None else asdict(self._judge(state, owners)),
        }

    def _describe_message(self, state: Bargain, message: NegotiationMessage) -> dict[str, Any]:
        offer = {} if message.offer is None else {"propose": state.division_by_party(message.offer, self.seats)}
        return {"words": message.words, **({"accept": True} if message.accepts else {}), **offer}

    def permute_hidden(self, state: Bargain, seat: int, rng: random.Random) -> Bargain:
        """Return the state with the others' values drawn again; unchanged if values are public."""
        if self._public:
            return state
        values = tuple(points if i == seat else draw_values(rng, len(state.items)) for i, points in enumerate(state.values))
        return replace(state, values=values)


@lru_cache(maxsize=64)
def _list_all_offers(items: tuple[str, ...], parties: tuple[str, ...]) -> tuple[str, ...]:
    """List every offer without words, first the one that gives all to the first party, and silence last."""
    owners = itertools.product(range(len(parties)), repeat=len(items))
    offers = (NegotiationMessage(offer=division).command(items, parties) for division in owners)
    return (*offers, SILENCE.command(items, parties))


def _format_judged_division(fairness: Fairness) -> Iterator[str]:
    """Format the referee's numbers for each party, then for all parties together."""
    for party, utility in fairness.utility.items():
        fair = (
            "envies nobody by more than one item (EF1)"
            if fairness.ef1[party]
            else "envies somebody by more than one item (no EF1)"
        )
        share = _format_index(fairness.normalised[party])
        yield f"{party}: {format_count(utility, 'point')}, {share} of all that there is to it; envy {fairness.envy[party]}; {fair}."
    pareto = (
        "nobody could have more without somebody having less"
        if fairness.pareto
        else "somebody could have more, and nobody less"
    )
    yield (
        f"Together: Jain's index {_format_index(fairness.jain)}, Nash welfare {fairness.nash:.2f}, efficiency "
        f"{_format_index(fairness.efficiency)}; {pareto}."
    )


def _format_index(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


ChooseMessage = Callable[[Bargain, int, StandingOffer | None], NegotiationMessage]
SILENCE = NegotiationMessage()
ACCEPTANCE = NegotiationMessage(accepts=True)
_GREEDY_SHARE = (7, 10)
"""The greedy baseline accepts an offer of at least 7/10 of the total value."""


def make_negotiators(parties: tuple[str, ...]) -> Mapping[str, ChooseCommand]:
    """Return the baselines of negotiations between these parties, by name."""
    speakers: Mapping[str, ChooseMessage] = {
        "equal-split": _offer_equal_split,
        "greedy": _offer_greedily,
        "pushover": lambda state, seat, offer: ACCEPTANCE if offer else SILENCE,
        "silent": lambda state, seat, offer: SILENCE,
    }
    return {name: _make_baseline(speaks, parties) for name, speaks in speakers.items()}


def _make_baseline(speaks: ChooseMessage, parties: tuple[str, ...]) -> ChooseCommand:
    def chooses(state: Bargain, seat: int, _: random.Random) -> str:
        return speaks(state, seat, _find_open_offer(state, seat)).command(state.items, parties)

    return chooses


def _find_open_offer(state: Bargain, seat: int) -> StandingOffer | None:
    """Return another party's open offer that the seat has not accepted yet."""
    offer = state.open_offer()
    return offer if offer and offer.awaits(seat) else None


def _is_waiting(state: Bargain, seat: int) -> bool:
    return state.open_offer() is not None and _find_open_offer(state, seat) is None


def _offer_equal_split(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    if offer and state.has_fair_share(offer.owners, seat):
        return ACCEPTANCE
    owners = find_most_even(state.values[seat], len(state.values), seat)
    return SILENCE if _is_waiting(state, seat) else NegotiationMessage(offer=owners)


def _offer_greedily(state: Bargain, seat: int, offer: StandingOffer | None) -> NegotiationMessage:
    numerator, denominator = _GREEDY_SHARE
    if offer and state.compute_bundle_value(offer.owners, seat) * denominator >= sum(state.values[seat]) * numerator:
        return ACCEPTANCE
    rival = (seat + 1) % len(state.values)
    owners = tuple(seat if value else rival for value in state.values[seat])
    return SILENCE if _is_waiting(state, seat) else NegotiationMessage(offer=owners)


@lru_cache(maxsize=4096)
def find_most_even(values: tuple[int, ...], n_seats: int, seat: int) -> Owners:
    """Find the division whose bundles differ least in value to the seat; of several, one that is best for the seat."""

    def measure_unevenness(owners: Owners) -> tuple[int, int]:
        bundles = [sum(value for value, owner in zip(values, owners, strict=True) if owner == i) for i in range(n_seats)]
        return max(bundles) - min(bundles), -bundles[seat]

    return min(itertools.product(range(n_seats), repeat=len(values)), key=measure_unevenness)
