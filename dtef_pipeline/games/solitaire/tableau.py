"""The table of `solitaire/thirteen`: thirteen cards, four columns, a stock, a waste and one foundation; and its legal commands.

Cards are the numbers 1 to 13. The last card of a column and of the waste is the one on top; the first of the stock is drawn next.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

CARDS = 13
FOUR_COLUMNS = 4
DRAW, RECYCLE = "draw", "recycle"
KNOWN_FORMS = "allowed: move N->foundation, move N->cK, draw, recycle, hint, resign"

_MOVE = re.compile(r"move (\d{1,3})->(?:foundation|c(\d{1,3}))")


class Tableau(NamedTuple):
    """The places of all cards."""

    foundation: int
    """Highest card on the foundation, which is built up from 1; 0: it is empty."""
    columns: tuple[tuple[int, ...], ...]
    stock: tuple[int, ...]
    waste: tuple[int, ...]
    recycles: int
    """Number of times that the waste may still become the stock."""

    @property
    def is_solved(self) -> bool:
        return self.foundation == CARDS


def deal_tableau(seed: int) -> Tableau:
    """Return the first table of a seed: the cards 1 to 13 shuffled by `random.Random(seed)`, two to each column, then five to the stock."""
    cards = list(range(1, CARDS + 1))
    random.Random(seed).shuffle(cards)  # noqa: S311 - a game's cards, no secret
    columns = tuple(tuple(cards[2 * place : 2 * place + 2]) for place in range(FOUR_COLUMNS))
    return Tableau(0, columns, tuple(cards[2 * FOUR_COLUMNS :]), (), 1)


def list_legal_commands(table: Tableau) -> tuple[str, ...]:
    """Return the legal commands: moves to the foundation, moves to columns, then `draw` or `recycle`.

    Moves are ordered by the source of the card (columns from left to right, then the waste), then by its target. The list is empty when the
    game is solved or stuck.
    """
    tops = [(column[-1], len(column)) for column in table.columns if column]
    if table.waste:
        tops.append((table.waste[-1], CARDS))  # a card from the waste is never the only card of a column
    home = [f"move {card}->foundation" for card, _ in tops if card == table.foundation + 1]
    moves = [
        f"move {card}->c{place}"
        for card, height in tops
        for place, column in enumerate(table.columns, 1)
        if (column[-1] == card + 1 if column else height > 1)
    ]
    stock_moves = [DRAW] if table.stock else [RECYCLE] if table.waste and table.recycles else []
    return (*home, *moves, *stock_moves)


def apply_card_command(table: Tableau, command: str) -> Tableau:
    """Return the table after one of its legal commands."""
    if command == DRAW:
        return table._replace(stock=table.stock[1:], waste=(*table.waste, table.stock[0]))
    if command == RECYCLE:
        return table._replace(stock=table.waste, waste=(), recycles=table.recycles - 1)
    number, _, place = command.removeprefix("move ").partition("->")
    card = int(number)
    table = _take_top(table, card)
    if place == "foundation":
        return table._replace(foundation=card)
    onto = int(place.removeprefix("c")) - 1
    return table._replace(columns=tuple((*column, card) if i == onto else column for i, column in enumerate(table.columns)))


def _take_top(table: Tableau, card: int) -> Tableau:
    if table.waste[-1:] == (card,):
        return table._replace(waste=table.waste[:-1])
    return table._replace(columns=tuple(column[:-1] if column[-1:] == (card,) else column for column in table.columns))


def explain_illegal_command(table: Tableau, command: str) -> str:
    """Explain to the player why a command in canonical spelling is not allowed now, without information on face-down cards."""
    if command == DRAW:
        return "the stock is empty"
    if command == RECYCLE:
        return _explain_no_recycle(table)
    move = _MOVE.fullmatch(command)
    if move is None:
        return f"unknown command; {KNOWN_FORMS}"
    card, place = int(move[1]), int(move[2]) if move[2] else None
    if not 1 <= card <= CARDS:
        return f"no such card; allowed: 1 to {CARDS}"
    if card <= table.foundation:
        return "that card is on the foundation, where it stays"
    if card not in (pile[-1] for pile in (*table.columns, table.waste) if pile):
        return "that card is not on top of a column or of the waste"
    if place is None:
        return f"not the next card; the foundation waits for {table.foundation + 1}"
    return _explain_not_onto(table, card, place)


def _explain_no_recycle(table: Tableau) -> str:
    if table.stock:
        return "the stock is not empty; recycle comes after its last card"
    return "the waste is empty" if table.recycles else "no recycle is left"


def _explain_not_onto(table: Tableau, card: int, place: int) -> str:
    if not 1 <= place <= FOUR_COLUMNS:
        return f"no such column; allowed: c1 to c{FOUR_COLUMNS}"
    column = table.columns[place - 1]
    if column[-1:] == (card,):
        return "that card is in this column already"
    if not column:
        return "that card is alone in its column, and an empty column is no better"
    if card == CARDS:
        return "the highest card goes only to an empty column"
    return f"in a column the card goes only onto {card + 1}"
