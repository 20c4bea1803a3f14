"""The table of solitaire by its rules, and its shortest solutions."""

from __future__ import annotations

import random
from itertools import islice
from statistics import median

import pytest

from dtef_pipeline.games.solitaire.tableau import (
    CARDS,
    Tableau,
    apply_card_command,
    deal_tableau,
    explain_illegal_command,
    list_legal_commands,
)
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


FIRST = deal_tableau(1)
LATE = Tableau(1, ((7,), (), (9, 8), ()), (), (3,), 0)


def all_cards(table: Tableau) -> list[int]:
    home = range(1, table.foundation + 1)
    return sorted([*home, *(card for column in table.columns for card in column), *table.stock, *table.waste])


def test_commands_stand_in_the_order_of_where_a_card_comes_from_and_goes_to() -> None:
    table = Tableau(0, ((3, 1), (5,), (4, 2), ()), (7,), (6, 4), 1)
    assert list_legal_commands(table) == (
        "move 1->foundation",
        "move 1->c3",
        "move 1->c4",
        "move 2->c4",
        "move 4->c2",
        "move 4->c4",
        "draw",
    )


def test_a_card_alone_in_its_column_does_not_go_to_an_empty_one() -> None:
    assert list_legal_commands(Tableau(0, ((5,), (), (9, 8), ()), (), (), 0)) == ("move 8->c2", "move 8->c4")


def test_the_waste_becomes_the_stock_once_in_the_same_order() -> None:
    table = Tableau(0, ((9,), (7,), (5,), (3,)), (), (8, 6, 1, 11), 1)
    again = apply_card_command(table, "recycle")
    assert "recycle" in list_legal_commands(table)
    assert (again.stock, again.waste, again.recycles) == ((8, 6, 1, 11), (), 0)
    for _ in range(4):
        assert list_legal_commands(again)[-1] == "draw"
        again = apply_card_command(again, "draw")
    assert again.waste == (8, 6, 1, 11)
    assert "recycle" not in list_legal_commands(again)


def test_an_empty_waste_is_not_recycled() -> None:
    assert list_legal_commands(Tableau(0, ((13, 1), (), (), ()), (), (), 1))[-1] == "move 1->c4"


@pytest.mark.parametrize(
    ("table", "command", "reason"),
    [
        (FIRST, "move 4->foundation", "not the next card; the foundation waits for 1"),
        (FIRST, "move 1->foundation", "that card is not on top of a column or of the waste"),
        (FIRST, "move 11->foundation", "that card is not on top of a column or of the waste"),
        (FIRST, "move 14->c1", "no such card; allowed: 1 to 13"),
        (FIRST, "move 0->c1", "no such card; allowed: 1 to 13"),
        (FIRST, "move 12->c5", "no such column; allowed: c1 to c4"),
        (FIRST, "move 12->c2", "that card is in this column already"),
        (FIRST, "move 12->c3", "in a column the card goes only onto 13"),
        (FIRST, "move 13->c3", "the highest card goes only to an empty column"),
        (FIRST, "recycle", "the stock is not empty; recycle comes after its last card"),
        (FIRST, "fly", "unknown command; allowed: move N->foundation, move N->cK, draw, recycle, hint, resign"),
        (FIRST, "", "unknown command; allowed: move N->foundation, move N->cK, draw, recycle, hint, resign"),
        (LATE, "move 1->c1", "that card is on the foundation, where it stays"),
        (LATE, "move 7->c2", "that card is alone in its column, and an empty column is no better"),
        (LATE, "draw", "the stock is empty"),
        (LATE, "recycle", "no recycle is left"),
        (LATE._replace(foundation=0, waste=(), recycles=1), "recycle", "the waste is empty"),
    ],
)
def test_the_reason_says_what_the_rules_forbid(table: Tableau, command: str, reason: str) -> None:
    assert explain_illegal_command(table, command) == reason


def test_no_card_is_lost_or_doubled_and_what_is_legal_is_never_forbidden() -> None:
    rng = random.Random(3)
    for seed in range(60):
        table = deal_tableau(seed)
        for _ in range(60):
            commands = list_legal_commands(table)
            assert len(set(commands)) == len(commands)
            if not commands:
                break
            before, table = table, apply_card_command(table, rng.choice(commands))
            assert all_cards(table) == list(range(1, CARDS + 1))
            assert table.foundation - before.foundation in (0, 1)
