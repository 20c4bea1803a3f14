"""State of a negotiation: the items to divide, the messages, the open offer, and who has accepted it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dtef_pipeline.games.negotiation.messages import NegotiationMessage, group_by_owner, quote_words
from dtef_pipeline.games.negotiation.referee import PartyValues

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


class BargainMove(NamedTuple):
    """One message, with the offer that was open before it."""

    seat: int
    message: NegotiationMessage
    previous_offer: StandingOffer | None


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

    def open_offer(self) -> StandingOffer | None:
        """Return the open offer, or None."""
        offer = None
        for number, message in enumerate(self.messages):
            offer = _update_offer(offer, message, number % len(self.values))
        return offer

    def find_agreement(self) -> Owners | None:
        """Return each party's items after all others have accepted an offer, or None without an agreement."""
        offer = self.open_offer()
        return offer.owners if offer and len(offer.accepting_seats) == len(self.values) - 1 else None

    def iterate_answers(self) -> Iterator[BargainMove]:
        """Yield each message with the offer that it may answer."""
        offer = None
        for number, message in enumerate(self.messages):
            seat = number % len(self.values)
            yield BargainMove(seat, message, offer)
            offer = _update_offer(offer, message, seat)

    def compute_bundle_value(self, owners: Owners, whose: int, to: int) -> int:
        """Return the value of one seat's bundle to a seat, in points."""
        return sum(value for value, owner in zip(self.values[to], owners, strict=True) if owner == whose)

    def values_by_party(self, parties: tuple[str, ...]) -> PartyValues:
        """Return the values by party and item."""
        return {party: dict(zip(self.items, points, strict=True)) for party, points in zip(parties, self.values, strict=True)}

    def division_by_party(self, owners: Owners, parties: tuple[str, ...]) -> dict[str, list[str]]:
        """Return a division by party."""
        return group_by_owner(owners, self.items, parties)


def _update_offer(offer: StandingOffer | None, message: NegotiationMessage, seat: int) -> StandingOffer | None:
    if message.offer is not None:
        return StandingOffer(message.offer, seat)
    if message.accepts and offer is not None:
        return offer._replace(accepting_seats=offer.accepting_seats | {seat})
    return offer


def is_answer(move: BargainMove) -> bool:
    """Return whether a message answers another party's offer that its writer has not accepted."""
    return (
        move.previous_offer is not None
        and move.previous_offer.seat != move.seat
        and move.seat not in move.previous_offer.accepting_seats
    )


def draw_bargain(rng: random.Random, n_seats: int, n_items: int | None) -> Bargain:
    """Draw items and values. `n_items` None: 3 to 6 items, all equally likely."""
    items = ITEM_NAMES[: n_items or rng.randint(FEWEST_ITEMS, len(ITEM_NAMES))]
    return Bargain(items, tuple(draw_values(rng, len(items)) for _ in range(n_seats)))


def draw_values(rng: random.Random, n_items: int) -> tuple[int, ...]:
    """Draw whole values of 0 or more that sum to `TOTAL_VALUE`, all such lists equally likely (stars and bars)."""
    bars = sorted(rng.sample(range(TOTAL_VALUE + n_items - 1), n_items - 1))
    edges = (-1, *bars, TOTAL_VALUE + n_items - 1)
    return tuple(after - before - 1 for before, after in itertools.pairwise(edges))


def describe_bargain(
    state: Bargain, seat: int, parties: tuple[str, ...], most_messages: int, *, public: bool, is_over: bool
) -> str:
    """Describe all that a seat may know of a negotiation. `public`: including the values of the other parties."""
    rivals = [rival for rival in range(len(parties)) if rival != seat]
    subject = "party is" if len(rivals) == 1 else "parties are"
    lines = [
        f"You are party {parties[seat]}. The other {subject} {', '.join(parties[rival] for rival in rivals)}.",
        f"Worth to you: {_format_values(state, seat)}.",
        *(f"Worth to {parties[rival]}: {_format_values(state, rival)}." for rival in rivals if public),
        f"Messages so far: {len(state.messages)} of {most_messages}.",
    ]
    for number, answer in enumerate(state.iterate_answers(), 1):
        lines += _format_message_lines(state, answer, number, seat, parties)
    lines += _format_standing_offer(state, seat, parties, is_over)
    return "\n".join([*lines, *(["It is your turn to write."] if not is_over and state.writer == seat else [])])


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
    bundles = state.division_by_party(owners, parties)
    division_text = "; ".join(f"{party} gets {', '.join(bundle) or 'nothing'}" for party, bundle in bundles.items())
    return f"{division_text}. Your part is worth {state.compute_bundle_value(owners, seat, seat)} to you."


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
