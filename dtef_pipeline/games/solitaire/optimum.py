"""Shortest solutions of `solitaire/thirteen`.

The search (A*) visits tables in the order of the minimum length of a solution through them: the commands so far plus
`count_commands_to_come`. A command lowers that bound by at most one, so that the first solved table is reached by a shortest path, as in a
breadth-first search. Two rules keep the search small. Tables that differ only in the order of their columns are equally far from the end,
so only one of them is visited. And the next card of the foundation is moved there at once if possible: no card can be put onto it in a
column (that would be the card below, which is already on the foundation), so a solution that moves it later is not longer if it moves it
now.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

from dtef_pipeline.games.solitaire.tableau import CARDS, Tableau, apply_card_command, deal_tableau, list_legal_commands


class _SearchNode(NamedTuple):
    table: Tableau
    previous: int
    """Index of the previous table in the list of reached tables."""
    command: str
    """Command that led here from the previous table."""


def optimum(seed: int) -> int | None:
    """Return the fewest commands that solve the deal of a seed, or None without a solution. Takes a few milliseconds."""
    solution = find_solution(deal_tableau(seed))
    return None if solution is None else len(solution)


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
