"""Shortest solutions of `solitaire/thirteen`, by breadth-first search.

Two things keep the search small and the solution shortest. Tables that differ only in the order of their columns are equally far from the
end, so that one of them is looked at. And the next card of the foundation goes there at once where it can: no other card may be put onto it in
a column (that would be the card below, which is home already), so that it is only in the way, and a solution that moves it later does not get
longer when it moves now.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dtef_pipeline.games.solitaire.tableau import Tableau, after_command, dealt, legal_commands


class _Reached(NamedTuple):
    table: Tableau
    before: int
    """Place in the list of the table before this one."""
    command: str
    """What led here from there."""


def optimum(seed: int) -> int | None:
    """The fewest commands that solve the deal of a seed; None: nothing solves it. A search takes some milliseconds, at most half a second."""
    found = solution(dealt(seed))
    return None if found is None else len(found)


@lru_cache(maxsize=4096)
def solution(table: Tableau) -> tuple[str, ...] | None:
    """A shortest list of commands that solves a table, none where it is solved; None: nothing does."""
    reached = [_Reached(table, -1, "")]
    seen = {_whatever_order(table)}
    for place, (here, _, _) in enumerate(reached):  # the list grows while it is read: first come, first served
        if here.solved:
            return _way_to(place, reached)
        for command in _worth_trying(here):
            there = after_command(here, command)
            if (key := _whatever_order(there)) not in seen:
                seen.add(key)
                reached.append(_Reached(there, place, command))
    return None


def _worth_trying(table: Tableau) -> tuple[str, ...]:
    commands = legal_commands(table)
    return commands[:1] if commands and commands[0].endswith("foundation") else commands


def _whatever_order(table: Tableau) -> Tableau:
    return table._replace(columns=tuple(sorted(table.columns)))


def _way_to(place: int, reached: list[_Reached]) -> tuple[str, ...]:
    commands: list[str] = []
    while place:
        _, place, command = reached[place]
        commands.append(command)
    return tuple(reversed(commands))
