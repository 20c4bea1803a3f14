"""`solitaire/thirteen`: one player moves thirteen cards of one suit to the foundation in order, with as few commands as possible.

A step is a command that changes the table: the game ends after 60 of them. A hint is not a step, but it is counted and is a turn of the
episode: the manifest's turn limit is above 60 to leave room for hints. `hint` and `resign` are allowed at any time and are not among the
legal commands, which are those for cards; without a legal command the game is over.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any, NamedTuple

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import ChooseCommand, Count, GameEnding, GameMetric, GameResult, Illegal
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.reading import find_action, normalise_cards, normalise_command, read_command, strip_command
from dtef_pipeline.text.number_words import format_count

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


class _SearchNode(NamedTuple):
    table: Tableau
    previous: int
    """Index of the previous table in the list of reached tables."""
    command: str
    """Command that led here from the previous table."""


@lru_cache(maxsize=4096)
def find_solution(table: Tableau) -> tuple[str, ...] | None:
    """Return a shortest list of commands that solves a table, empty if it is solved, or None without a solution."""
    nodes = [_SearchNode(table, -1, "")]
    fewest = {_sort_columns(table): 0}
    waiting = [(count_commands_to_come(table), 0, 0)]
    while waiting:
        _, minus_steps, place = heappop(waiting)
        parent, steps = nodes[place].table, 1 - minus_steps
        if parent.is_solved:
            return _trace_path(place, nodes)
        for command in _list_worth_trying(parent):
            child = apply_card_command(parent, command)
            if steps < fewest.get(key := _sort_columns(child), steps + 1):
                fewest[key] = steps
                heappush(waiting, (steps + count_commands_to_come(child), -steps, len(nodes)))
                nodes.append(_SearchNode(child, place, command))
    return None


def count_commands_to_come(table: Tableau) -> int:
    """Return a lower bound for the number of commands that solve a table.

    Each card outside the foundation needs one command to get there, each card of the stock one to be drawn, and each card above a lower one
    in its column one to move out of its way.
    """
    above_lower = sum(card != min(column[: place + 1]) for column in table.columns for place, card in enumerate(column))
    return CARDS - table.foundation + len(table.stock) + above_lower


def _list_worth_trying(table: Tableau) -> tuple[str, ...]:
    commands = list_legal_commands(table)
    return commands[:1] if commands and commands[0].endswith("foundation") else commands


def _sort_columns(table: Tableau) -> Tableau:
    return table._replace(columns=tuple(sorted(table.columns)))


def _trace_path(place: int, nodes: list[_SearchNode]) -> tuple[str, ...]:
    commands: list[str] = []
    while place:
        commands.append(nodes[place].command)
        place = nodes[place].previous
    return tuple(reversed(commands))


HINT, RESIGN = "hint", "resign"
STEP_LIMIT = 60
"""Number of commands that change the table after which an unsolved game is over."""

_LOOSE_CARD = (
    r"(?:the )?(?:card )?(1[0-3]|[1-9]|ace|jack|queen|king|[2-9atjqk][cdhs]|[atjqk])"
    r"(?: ?[♣♧♦♢♥♡♠♤]\ufe0f?|[cdhs](?!\w)| of (?:club|diamond|heart|spade)s?(?!\w))?"
)
_LOOSE_PLACE = r"(?: from (?:the )?(?:c(?:olumn)? ?\d|waste))? ?(?:->|(?:on)?to )(?:the )?(?:(foundation)|c(?:ol(?:umn)?)? ?(\d{1,3}))(?!\w|->)"
_LOOSE_MOVE = re.compile(rf"(?<!\w)move {_LOOSE_CARD}{_LOOSE_PLACE}")
_MOVE_WITHOUT_VERB = re.compile(rf"^{_LOOSE_CARD}{_LOOSE_PLACE}(?=[ .!]{{0,3}}$)", re.MULTILINE)
"""A card and a place that are a whole line, without the word `move`. Within a sentence they are not a command, because players also name
moves that they consider."""
_RANK_NUMBERS = {"a": "1", "t": "10", "j": "11", "q": "12", "k": "13"}
_OF_CARDS = re.compile(rf"(?:move \d{{1,3}}->(?:foundation|c\d{{1,3}})|{DRAW}|{RECYCLE})(?!\w|->)")
_OF_A_GAME = (
    GameMetric("completion_rate", "efficacy", "share", "higher", "Solved games, as a share of the deals that have a solution."),
    GameMetric(
        "steps_over_optimal",
        "efficiency",
        "commands",
        "lower",
        "Commands above the fewest, without hints, mean over solved games.",
    ),
    GameMetric(
        "steps_over_optimal_charged",
        "efficiency",
        "commands",
        "lower",
        f"The same over all deals with a solution; an unsolved game counts {STEP_LIMIT} commands.",
    ),
    GameMetric("moves", "form", "commands", "none", "Commands that changed the table, mean over all games."),
    GameMetric("hints", "form", "hints", "lower", "Hints, mean over all games."),
)


@dataclass(frozen=True, slots=True)
class ThirteenState:
    """The state of one game of solitaire."""

    table: Tableau
    start: Tableau
    """The table before the first command."""
    steps: int = 0
    hints: int = 0
    hint: str = ""
    """Reply to a hint since the last step; empty: no hint was requested."""
    resigned: bool = False


class Thirteen:
    """See the module, and `games.contract.Scenario` for the contract of each method."""

    name = "solitaire/thirteen"
    unit = "solved"
    zero_sum = False
    metrics: tuple[GameMetric, ...] = _OF_A_GAME
    flags = ("resigned", "stuck")
    oracles = ("optimal",)
    """Baselines that know the face-down cards: yardsticks, which the information test skips."""

    def __init__(self, seats: tuple[str, ...]) -> None:
        self.seats = seats
        self.baselines: Mapping[str, ChooseCommand] = {
            "greedy": _play_greedily,
            "patient": _play_patiently,
            "optimal": _play_optimally,
        }

    def reset(self, seed: int) -> ThirteenState:
        table = deal_tableau(seed)
        return ThirteenState(table, table)

    def seat_to_move(self, state: ThirteenState) -> int | None:
        return None if self.result(state) else 0

    def legal(self, state: ThirteenState, seat: int) -> tuple[str, ...]:
        return () if self.result(state) else list_legal_commands(state.table)

    def observation(self, state: ThirteenState, seat: int) -> str:
        table = state.table
        return "\n".join(
            [
                f"Foundation: {_format_card_list(range(1, table.foundation + 1))}",
                *(f"c{place}: {_format_card_list(column)}" for place, column in enumerate(table.columns, 1)),
                f"Waste: {_format_card_list(table.waste)}",
                _describe_stock(table),
                "Recycle: still possible once" if table.recycles else "Recycle: done",
                f"Commands so far: {state.steps} of {STEP_LIMIT}",
                *([f"Hint: {state.hint}"] if state.hint else []),
            ]
        )

    def list_always_legal(self, state: ThirteenState, seat: int) -> tuple[str, ...]:
        return () if self.result(state) or seat != 0 else (HINT, RESIGN)

    def read(self, text: str, state: ThirteenState, seat: int) -> str | Illegal:
        if self.result(state) or seat != 0:
            return Illegal("it is not your turn")
        move = read_command(text, (*list_legal_commands(state.table), HINT, RESIGN), normalise_cards_command, single=(RESIGN,))
        if isinstance(move, str) or move.kind == "refused":
            return move
        action_text = find_action(text)
        command_text = strip_command(text if action_text is None else action_text, normalise_cards_command)
        command = _OF_CARDS.match(command_text)
        if move.kind == "unparsed" and (action_text is not None or command is None or command[0] != command_text):
            return move
        return Illegal(explain_illegal_command(state.table, command[0] if command else command_text))

    def step(self, state: ThirteenState, seat: int, command: str) -> ThirteenState:
        if self.result(state) or seat != 0 or command not in (*list_legal_commands(state.table), HINT, RESIGN):
            raise ValueError(
                f"seat {seat} cannot play {command!r}; allowed: {', '.join(self.legal(state, seat))}, {HINT}, {RESIGN}"
            )
        if command == RESIGN:
            return replace(state, resigned=True)
        if command == HINT:
            return replace(state, hints=state.hints + 1, hint=_describe_hint(state))
        return replace(state, table=apply_card_command(state.table, command), steps=state.steps + 1, hint="")

    def result(self, state: ThirteenState) -> GameResult | None:
        if state.table.is_solved:
            return GameResult((1.0,), ("win",))
        if state.resigned:
            return _lose_game("resigned")
        if not list_legal_commands(state.table):
            return _lose_game("stuck")
        return _lose_game("turn_limit") if state.steps >= STEP_LIMIT else None

    def stop_episode(self, state: ThirteenState, seat: int | None) -> GameResult:
        return _lose_game("turn_limit") if seat is None else GameResult((0.0,), ("loss",), ("forfeit",))

    def default(self, state: ThirteenState, seat: int) -> str:
        return RESIGN

    def measure_seat(self, state: ThirteenState, seat: int) -> Mapping[str, Count]:
        always = {"moves": Count(state.steps), "hints": Count(state.hints)}
        best = find_solution(state.start)
        if best is None:
            return always
        is_solved = state.table.is_solved
        excess = {"steps_over_optimal": Count(max(0, state.steps - len(best)))} if is_solved else {}
        charge = Count(max(0, (state.steps if is_solved else STEP_LIMIT) - len(best)))
        return {**always, "completion_rate": Count(int(is_solved)), **excess, "steps_over_optimal_charged": charge}

    def ending(self, state: ThirteenState) -> GameEnding:
        """Describe the cards on the foundation, commands and hints. The fewest commands that solve the deal are hidden from the player."""
        best = find_solution(state.start)
        fewest = "No commands solve this deal." if best is None else f"The fewest commands that solve this deal: {len(best)}."
        lines = (
            f"Cards on the foundation: {state.table.foundation} of {CARDS}.",
            f"Commands: {state.steps} of {STEP_LIMIT}. Hints: {state.hints}.",
        )
        return GameEnding(lines, (fewest,))

    def encode_state(self, state: ThirteenState) -> dict[str, Any]:
        table = state.table
        return {
            "foundation": table.foundation,
            "columns": [list(column) for column in table.columns],
            "stock": list(table.stock),
            "waste": list(table.waste),
            "recycles": table.recycles,
            "steps": state.steps,
            "hints": state.hints,
        }

    def permute_hidden(self, state: ThirteenState, seat: int, rng: random.Random) -> ThirteenState:
        table, start = state.table, state.start
        if not table.recycles:
            return state  # every card of the stock has been on the waste
        unseen = tuple(rng.sample(table.stock, len(table.stock)))
        drawn_cards = start.stock[: len(start.stock) - len(unseen)]
        return replace(state, table=table._replace(stock=unseen), start=start._replace(stock=(*drawn_cards, *unseen)))


def of_manifest(manifest: ScenarioManifest) -> Thirteen:
    """Make the scenario of a manifest. Raises ConfigError if it has settings, more than one seat, or fewer turns than the game has
    steps."""
    if manifest.settings:
        raise ConfigError(f"{manifest.id}: settings: got {', '.join(manifest.settings)}; allowed: none")
    if len(manifest.seats) != 1:
        raise ConfigError(f"{manifest.id}: seats: got {len(manifest.seats)}; allowed: 1")
    if manifest.turn_limit < STEP_LIMIT:
        raise ConfigError(
            f"{manifest.id}: turn_limit: got {manifest.turn_limit}; allowed: {STEP_LIMIT} or more, which leaves room for hints"
        )
    return Thirteen(tuple(manifest.seats))


def normalise_cards_command(text: str) -> str:
    """Convert the commands of a text to canonical spelling: `Move 10♠ → column 3`, `move T to c3` and a line `10♠ → c3` to `move
    10->c3`."""
    words = normalise_cards(normalise_command(text)).casefold()
    return _MOVE_WITHOUT_VERB.sub(_format_move, _LOOSE_MOVE.sub(_format_move, words))


def _format_move(match: re.Match[str]) -> str:
    card = match[1]
    number = card if card.isdigit() else _RANK_NUMBERS.get(card[0], card[0])
    return f"move {number}->{match[2] or f'c{match[3]}'}"


def _lose_game(flag: str) -> GameResult:
    return GameResult((0.0,), ("unsolved",), (flag,))


def _format_card_list(cards: range | tuple[int, ...]) -> str:
    return " ".join(map(str, cards)) or "empty"


def _describe_stock(table: Tableau) -> str:
    if not table.stock:
        return "Stock: empty"
    if table.recycles:
        return f"Stock: {format_count(len(table.stock), 'card')}, face down"
    return f"Stock: {_format_card_list(table.stock)}, all seen before; the first is drawn next"


def _describe_hint(state: ThirteenState) -> str:
    solution = find_solution(state.table)
    if solution is None:
        return "nothing solves the game from here"
    if state.steps + len(solution) > STEP_LIMIT:
        return f"nothing solves the game within the commands that are left: it takes {len(solution)}"
    return f"{solution[0]} begins a shortest solution"


def _play_greedily(state: ThirteenState, seat: int, rng: random.Random) -> str:
    """Play the first possible command: a card to the foundation, a card to a column, the stock. It may move a card back and forth until the
    end.
    """
    return list_legal_commands(state.table)[0]


def _play_patiently(state: ThirteenState, seat: int, rng: random.Random) -> str:
    """Play a card to the foundation if possible, else the stock, and a card to a column only after the stock."""
    commands = list_legal_commands(state.table)
    stock_moves = [command for command in commands if command in (DRAW, RECYCLE)]
    return commands[0] if commands[0].endswith("foundation") or not stock_moves else stock_moves[0]


def _play_optimally(state: ThirteenState, seat: int, rng: random.Random) -> str:
    """Play a shortest solution, with knowledge of the stock; resign if there is none."""
    solution = find_solution(state.table)
    return solution[0] if solution else RESIGN
