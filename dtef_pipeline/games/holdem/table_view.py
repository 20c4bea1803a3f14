"""What a seat of a hand of hold'em is told: its own cards and all that lies open, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.games.contract import GameEnding
from dtef_pipeline.games.holdem.betting import BET_SIZES, BETS_ALLOWED, BLINDS, STREET_NAMES, HoldemHand, to_call
from dtef_pipeline.games.holdem.deck import Cards, own_cards
from dtef_pipeline.games.holdem.showdown import nets
from dtef_pipeline.text.counted import counted

_POSITIONS = (
    "with the small blind: you act first before the flop and last on every later street.",
    "with the big blind: you act last before the flop and first on every later street.",
)


def view(hand: HoldemHand, seat: int, seats: tuple[str, ...]) -> str:
    """The hand in words, as a seat sees it."""
    lines = [
        f"You are the {seats[seat]}, {_POSITIONS[seat]}",
        f"Your cards: {_spelled(own_cards(hand.deck, seat))}",
        f"Street: {STREET_NAMES[hand.street]}",
        f"Board: {_spelled(hand.board) if hand.board else 'no cards yet'}",
        f"Pot: {counted(sum(hand.paid), 'chip')}, {hand.paid[seat]} of them yours and {hand.paid[1 - seat]} of the {seats[1 - seat]}",
        "Actions so far:",
        *(f"- {line}" for line in _told_streets(hand, seat, seats)),
    ]
    return "\n".join([*lines, *(_told_end(hand, seat, seats) if hand.turn is None else _told_price(hand, seat))])


def end_of_hand(hand: HoldemHand, seats: tuple[str, ...]) -> GameEnding:
    """What is said of a hand that is over, or that was stopped: cards are shown to the seats where it came to a showdown."""
    button, other = (f"the {name}" for name in seats)
    cards = f"{button} has {_spelled(own_cards(hand.deck, 0))}, {other} has {_spelled(own_cards(hand.deck, 1))}."
    stopped = "The hand was stopped" if hand.folded is None else f"The {seats[hand.folded]} folded"
    shown = [
        f"Board: {_spelled(hand.board) if hand.board else 'no cards'}.",
        f"Showdown: {cards}" if hand.shown else f"{stopped}: no card was shown.",
        f"Pot: {counted(sum(hand.paid), 'chip')}, {hand.paid[0]} from {button} and {hand.paid[1]} from {other}.",
    ]
    if hand.turn is None:
        won = nets(hand)[0]
        first, second = (button, other) if won > 0 else (other, button)
        end = f"{first.capitalize()} wins {counted(abs(won), 'chip')} from {second}." if won else "The pot is split."
        shown.append(end)
    return GameEnding(tuple(shown), () if hand.shown else (f"{cards[0].upper()}{cards[1:]}",))


def _told_price(hand: HoldemHand, seat: int) -> Iterator[str]:
    """What a call and one bet more cost."""
    size = BET_SIZES[hand.street]
    yield f"Bets on this street: {hand.bets} of at most {BETS_ALLOWED}, each of {counted(size, 'chip')}"
    yield f"To call: {counted(to_call(hand, seat), 'chip')}"


def _told_streets(hand: HoldemHand, seat: int, seats: tuple[str, ...]) -> Iterator[str]:
    """What was done, one line per street, in the order in which it was done."""
    names = tuple("you" if place == seat else f"the {name}" for place, name in enumerate(seats))
    for street in range(hand.street + 1):
        done = [f"{names[action.seat]}: {action.command}" for action in hand.actions if action.street == street]
        blinds = (
            [f"{names[place]}: {kind} blind {BLINDS[place]}" for place, kind in enumerate(("small", "big"))]
            if street == 0
            else []
        )
        yield f"{STREET_NAMES[street]}: {', '.join([*blinds, *done]) or 'nothing yet'}"


def _told_end(hand: HoldemHand, seat: int, seats: tuple[str, ...]) -> Iterator[str]:
    """How the hand ended: the other's cards only where they were shown."""
    other = f"the {seats[1 - seat]}"
    if hand.shown:
        yield f"Showdown: {other} has {_spelled(own_cards(hand.deck, 1 - seat))}."
    else:
        yield "You folded." if hand.folded == seat else f"{other.capitalize()} folded."
    won = nets(hand)[seat]
    end = (
        "The pot is split: you get your chips back"
        if won == 0
        else f"You {'win' if won > 0 else 'lose'} {counted(abs(won), 'chip')}"
    )
    yield f"The hand is over. {end}."


def _spelled(cards: Cards) -> str:
    return " ".join(cards)
