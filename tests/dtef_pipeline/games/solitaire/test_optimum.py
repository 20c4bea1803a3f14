"""Shortest solutions: the numbers of the specification, a search without shortcuts, and solutions that are played."""

from __future__ import annotations

import random
from itertools import islice
from statistics import median

import pytest

from dtef_pipeline.games.solitaire.tableau import Tableau, apply_card_command, deal_tableau, list_legal_commands
from dtef_pipeline.games.solitaire.thirteen import count_commands_to_come, find_solution


def distance_without_shortcuts(table: Tableau, most: int = 20_000) -> int | None:
    """Breadth first over all tables as they are, no command left out. Raises ValueError where these are more than `most`."""
    front, seen, steps = [table], {table}, 0
    while front:
        if any(one.foundation == 13 for one in front):
            return steps
        following = {apply_card_command(one, command) for one in front for command in list_legal_commands(one)}
        front, steps = list(following - seen), steps + 1
        seen |= following
        if len(seen) > most:
            raise ValueError("too many tables for a test")
    return None


def random_tables(seed: int, commands: int) -> Tableau:
    rng, table = random.Random(seed), deal_tableau(seed)
    for _ in range(commands):
        if not (possible := list_legal_commands(table)):
            break
        table = apply_card_command(table, rng.choice(possible))
    return table


def optimum(seed: int) -> int | None:
    """The fewest commands that solve the deal of a seed."""
    solution = find_solution(deal_tableau(seed))
    return None if solution is None else len(solution)


@pytest.fixture(scope="module")
def optima() -> dict[int, int | None]:
    return {seed: optimum(seed) for seed in range(120)}


def test_of_120_deals_99_have_a_solution_of_18_to_34_commands(optima: dict[int, int | None]) -> None:
    found = [steps for steps in optima.values() if steps is not None]
    assert (len(found), min(found), max(found), median(found)) == (99, 18, 34, 22)
    assert (optima[0], optima[1]) == (None, 23)


def test_the_search_finds_what_one_without_shortcuts_finds(optima: dict[int, int | None]) -> None:
    compared = 0
    for seed, steps in islice(optima.items(), 15):
        try:
            assert distance_without_shortcuts(deal_tableau(seed), 2_000) == steps
        except ValueError:
            continue
        compared += 1
    assert compared >= 4


def test_in_the_middle_of_a_game_too() -> None:
    compared, solvable = 0, 0
    for seed in range(25):
        table = random_tables(seed, seed % 20 + 3)
        try:
            steps = distance_without_shortcuts(table, 1_000)
        except ValueError:
            continue
        found = find_solution(table)
        assert (None if found is None else len(found)) == steps
        compared, solvable = compared + 1, solvable + (steps is not None)
    assert compared >= 10
    assert solvable >= 2


def test_a_solution_is_playable_and_solves(optima: dict[int, int | None]) -> None:
    for seed in [seed for seed, steps in optima.items() if steps is not None]:
        table = deal_tableau(seed)
        for command in find_solution(table) or ():
            assert command in list_legal_commands(table)
            table = apply_card_command(table, command)
        assert table.is_solved


def test_no_command_lowers_the_bound_by_more_than_itself() -> None:
    for seed in range(60):
        table = random_tables(seed, seed)
        for command in list_legal_commands(table):
            assert count_commands_to_come(apply_card_command(table, command)) >= count_commands_to_come(table) - 1
    assert count_commands_to_come(deal_tableau(1)) == 13 + 5 + 3
