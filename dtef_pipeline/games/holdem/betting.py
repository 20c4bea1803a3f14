"""Legal bets and their costs, as an immutable state.

pokerkit can run whole hands, but its states are mutable: an immutable state would have to be replayed for each query, at 1 ms per action.
So the betting is implemented here, and pokerkit only compares hands at the showdown. Tests play random hands with both implementations:
every state allows the same commands, and the final stacks are equal.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from pokerkit import Card, StandardHighHand

HOLDEM_RANKS = "23456789TJQKA"
HOLDEM_SUITS = "cdhs"
BOARD_STARTS, DEALT_ENDS = 4, 9
"""The first four cards of a deck are dealt one by one, beginning with seat 0; the next five are the board. Nothing is burnt."""
SORTED_DECK = tuple(rank + suit for rank in HOLDEM_RANKS for suit in HOLDEM_SUITS)

Cards = tuple[str, ...]
"""Cards as two letters each: `Ts` is the ten of spades."""


def shuffle_deck(seed: int) -> Cards:
    """Return the 52 cards in the order of dealing: all ranks 2..A, each with the suits c d h s, shuffled by `random.Random(seed)`."""
    cards = list(SORTED_DECK)
    random.Random(seed).shuffle(cards)  # noqa: S311 - a game's cards, no secret
    return tuple(cards)


def take_own_cards(deck: Cards, seat: int) -> Cards:
    """Return the two cards of a seat, in the order of dealing."""
    return deck[seat], deck[seat + 2]


def shuffle_hidden_cards(deck: Cards, known_places: set[int], rng: random.Random) -> Cards:
    """Return the deck with all cards except those at the known places in a new order."""
    hidden = [place for place in range(len(deck)) if place not in known_places]
    places = dict(zip(hidden, rng.sample(hidden, len(hidden)), strict=True))
    return tuple(deck[places.get(place, place)] for place in range(len(deck)))


_OF_POKERKIT = dict(zip(SORTED_DECK, Card.parse("".join(SORTED_DECK)), strict=True))


def compare_hands(hand: Cards, rival: Cards, board: Cards) -> int:
    """Compare two hands with the five cards of the board: 1: the first wins, -1: the second wins, 0: a tie."""
    first, second = _rate_best_five(hand, board), _rate_best_five(rival, board)
    return (first > second) - (first < second)


def _rate_best_five(hole: Cards, board: Cards) -> int:
    """Rate the best five of seven cards; higher is better."""
    seven = [_OF_POKERKIT[card] for card in (*hole, *board)]
    return max(StandardHighHand.lookup.get_entry(five).index for five in combinations(seven, 5))


def compute_nets(hand: HoldemHand) -> tuple[int, int]:
    """Return the net chips of each seat in a finished hand. The sum is 0."""
    if hand.folded is not None:
        loss = hand.stakes[hand.folded]
        return (-loss, loss) if hand.folded == 0 else (loss, -loss)
    net = hand.stakes[1] * find_showdown_winner(hand)
    return net, -net


def find_showdown_winner(hand: HoldemHand) -> int:
    """Return the winner of a showdown: 1: seat 0 wins, -1: seat 1 wins, 0: the pot is split."""
    return _find_dealt_winner(hand.deck[:DEALT_ENDS])


@lru_cache(maxsize=4096)
def _find_dealt_winner(deck: Cards) -> int:
    return compare_hands(take_own_cards(deck, 0), take_own_cards(deck, 1), deck[BOARD_STARTS:])


HOLDEM_COMMANDS = ("fold", "check", "call", "bet", "raise")
STREET_NAMES = ("before the flop", "flop", "turn", "river")
BET_SIZES = (2, 2, 4, 4)
"""Chips, by street."""
BLINDS = (1, 2)
"""Chips, by seat: seat 0 has the button and the small blind."""
BETS_ALLOWED = 4
"""Largest number of bets on a street. The big blind is the first bet before the flop."""
STACK = 1000
"""Chips of each seat at the start of each hand, enough for all bets."""
_BOARD_SIZES = (0, 3, 4, 5)


class HoldemAction(NamedTuple):
    """One action."""

    street: int
    """0: before the flop ... 3: river."""
    seat: int
    command: str


@dataclass(frozen=True, slots=True)
class HoldemHand:
    """One hand so far."""

    deck: Cards
    """All 52 cards in the order of dealing."""
    actions: tuple[HoldemAction, ...] = ()
    street: int = 0
    """0: before the flop ... 3: river."""
    stakes: tuple[int, int] = BLINDS
    """Chips that each seat has put in, on all streets."""
    bets: int = 1
    """Bets on this street."""
    n_street_actions: int = 0
    """Actions on this street."""
    turn: int | None = 0
    """The seat to act; None: the hand is over."""
    folded: int | None = None
    """The seat that folded; None: no seat."""

    @property
    def board(self) -> Cards:
        """The open board cards."""
        return self.take_board_on(self.street)

    def take_board_on(self, street: int) -> Cards:
        """Return the board cards that were open on a street."""
        return self.deck[BOARD_STARTS : BOARD_STARTS + _BOARD_SIZES[street]]

    @property
    def has_showdown(self) -> bool:
        """Whether the hand came to a showdown."""
        return self.turn is None and self.folded is None


def deal_new_hand(seed: int) -> HoldemHand:
    """Return a new hand with both blinds paid. The seed determines the deal."""
    return HoldemHand(shuffle_deck(seed))


def chips_to_call(hand: HoldemHand, seat: int) -> int:
    """Return the chips that the seat must add to stay in."""
    return max(hand.stakes) - hand.stakes[seat]


def list_allowed_commands(hand: HoldemHand) -> tuple[str, ...]:
    """Return the commands that the seat to act may use, in the order of `HOLDEM_COMMANDS`; empty when the hand is over."""
    if hand.turn is None:
        return ()
    staying = ("fold", "call") if chips_to_call(hand, hand.turn) else ("check",)
    increase = "bet" if hand.bets == 0 else "raise"
    return (*staying, increase) if hand.bets < BETS_ALLOWED else staying


def apply_command(hand: HoldemHand, command: str) -> HoldemHand:
    """Return the hand after an action of the seat to act. Raises ValueError for a command that is not allowed."""
    seat = hand.turn
    if seat is None or command not in list_allowed_commands(hand):
        raise ValueError(f"got {command}; allowed: {', '.join(list_allowed_commands(hand)) or 'nothing, as the hand is over'}")
    actions = (*hand.actions, HoldemAction(hand.street, seat, command))
    if command == "fold":
        return replace(hand, actions=actions, turn=None, folded=seat)
    is_raise = command in ("bet", "raise")
    puts = chips_to_call(hand, seat) + BET_SIZES[hand.street] * is_raise
    paid = (hand.stakes[0] + puts, hand.stakes[1]) if seat == 0 else (hand.stakes[0], hand.stakes[1] + puts)
    n_acted = hand.n_street_actions + 1
    if is_raise or n_acted < 2:
        return replace(hand, actions=actions, stakes=paid, bets=hand.bets + is_raise, n_street_actions=n_acted, turn=1 - seat)
    if hand.street == len(STREET_NAMES) - 1:
        return replace(hand, actions=actions, stakes=paid, n_street_actions=n_acted, turn=None)
    return replace(hand, actions=actions, stakes=paid, street=hand.street + 1, bets=0, n_street_actions=0, turn=1)
