"""The scenario `solitaire/thirteen`: its rules, shortest solutions, the shared cases, what a player sees and says, and what counts."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Count, GameResult, Illegal
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.solitaire.thirteen import (
    CARDS,
    Tableau,
    ThirteenState,
    apply_card_command,
    count_commands_to_come,
    deal_tableau,
    explain_illegal_command,
    find_solution,
    list_legal_commands,
    normalise_cards_command,
    of_manifest,
)
from tests.conftest import ROOT
from tests.made.made_games import play_out
from tests.made.shared_cases import cases, cases_beside

CASES = cases_beside(__file__)


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


def test_the_search_finds_what_one_without_shortcuts_finds_and_a_solution_is_playable(optima: dict[int, int | None]) -> None:
    compared = 0
    for seed, steps in islice(optima.items(), 15):
        try:
            assert distance_without_shortcuts(deal_tableau(seed), 2_000) == steps
        except ValueError:
            continue
        compared += 1
    assert compared >= 4
    for seed in [seed for seed, steps in optima.items() if steps is not None]:
        table = deal_tableau(seed)
        for command in find_solution(table) or ():
            assert command in list_legal_commands(table)
            table = apply_card_command(table, command)
        assert table.is_solved


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
    moves = ("move 1->foundation", "move 1->c3", "move 1->c4", "move 2->c4", "move 4->c2", "move 4->c4", "draw")
    assert list_legal_commands(table) == moves
    alone = Tableau(0, ((5,), (), (9, 8), ()), (), (), 0)
    assert list_legal_commands(alone) == ("move 8->c2", "move 8->c4"), "5 goes to no empty column"
    empty_waste = Tableau(0, ((13, 1), (), (), ()), (), (), 1)
    assert list_legal_commands(empty_waste)[-1] == "move 1->c4"


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


MANIFEST = read_manifest(ROOT / "data" / "scenarios" / "solitaire" / "thirteen.yaml")
GAME = of_manifest(MANIFEST)


def played(seed: int, *texts: str) -> ThirteenState:
    state = GAME.reset(seed)
    for text in texts:
        command = GAME.read(text, state, 0)
        assert isinstance(command, str), command
        state = GAME.step(state, 0, command)
    return state


def in_place(table: Tableau, steps: int = 0) -> ThirteenState:
    return ThirteenState(table, table, steps=steps)


def table_and_commands(state: ThirteenState) -> dict[str, Any]:
    told = GAME.encode_state(state)
    return {
        **{key: told[key] for key in ("foundation", "columns", "stock", "waste", "recycles")},
        "legal": list(GAME.legal(state, 0)),
    }


def test_shared_cases_of_the_start_and_of_play() -> None:
    for case in (*cases("votes", "solitaire_start"), *cases("votes", "solitaire_play")):
        assert table_and_commands(played(case["in"]["seed"], *case["in"].get("commands", ()))) == case["out"], case["id"]


def test_shared_cases_of_the_shuffle() -> None:
    for case in cases("votes", "shuffle"):
        table = GAME.reset(case["in"]["seed"]).table
        assert [card for pile in (*table.columns, table.stock) for card in pile] == case["out"], case["id"]


def test_shared_cases_of_the_optimum() -> None:
    for case in cases("votes", "solitaire_optimal"):
        assert optimum(case["in"]["seed"]) == case["out"], case["id"]


def test_shared_cases_of_illegal_commands() -> None:
    for case in cases("votes", "solitaire_illegal"):
        found = GAME.read(f"ACTION: {case['in']['command']}", GAME.reset(case["in"]["seed"]), 0)
        assert isinstance(found, Illegal)
        assert found.kind == "illegal"
        assert found.reason.startswith(case["out"]["why"]), case["id"]


def test_a_manifest_that_ends_before_the_game_is_refused() -> None:
    with pytest.raises(ConfigError, match="solitaire/thirteen: turn_limit: got 59; allowed: 60 or more"):
        of_manifest(MANIFEST.model_copy(update={"turn_limit": 59}))


def test_a_player_sees_the_table_and_no_card_of_the_stock_before_the_recycle() -> None:
    assert GAME.observation(played(1, "move 12->c1", "draw"), 0).splitlines() == [
        "Foundation: empty",
        "c1: 9 13 12",
        "c2: 1",
        "c3: 6 4",
        "c4: 7 8",
        "Waste: 11",
        "Stock: 4 cards, face down",
        "Recycle: still possible once",
        "Commands so far: 2 of 60",
    ]
    seen = GAME.observation(played(1, *["draw"] * 5, "recycle", "draw"), 0)
    assert "Stock: 5 2 10 3, all seen before; the first is drawn next\nRecycle: done" in seen


def test_a_hint_is_reported_with_the_next_observation_and_costs_no_step() -> None:
    state = played(1, "hint")
    first = (find_solution(state.table) or ("",))[0]
    assert GAME.observation(state, 0).endswith(f"Hint: {first} begins a shortest solution")
    assert (state.steps, state.hints) == (0, 1)
    assert "Hint" not in GAME.observation(GAME.step(state, 0, first), 0)
    assert played(0, "hint").hint == "nothing solves the game from here"
    late = ThirteenState(GAME.reset(1).table, GAME.reset(1).table, steps=38)
    assert GAME.step(late, 0, "hint").hint == "nothing solves the game within the commands that are left: it takes 23"


@pytest.mark.parametrize(("text", "command"), CASES["commands"])
def test_a_command_may_be_spelled_in_many_ways(text: str, command: str) -> None:
    assert GAME.read(text, GAME.reset(1), 0) == command


def test_every_rank_has_its_number() -> None:
    words = ["A", "2", "3♣", "4h", "5", "6", "7", "8", "9 of clubs", "10♠", "jack", "Qd", "13"]
    assert [normalise_cards_command(f"Move {word} to the Foundation") for word in words] == [
        f"move {n}->foundation" for n in range(1, 14)
    ]
    for suit in ("", "♠", "h", " of clubs", "♥\ufe0f"):
        numbers = [
            normalise_cards_command(f"{before}{n}{suit} to the foundation") for n in range(1, 14) for before in ("move ", "")
        ]
        assert numbers == [f"move {n}->foundation" for n in range(1, 14) for _ in range(2)], suit


@pytest.mark.parametrize(("text", "kind", "reason"), CASES["faults"])
def test_a_text_without_a_legal_command_is_answered_with_the_reason(text: str, kind: str, reason: str) -> None:
    found = GAME.read(text, GAME.reset(1), 0)
    assert isinstance(found, Illegal)
    assert (found.kind, found.reason.startswith(reason)) == (kind, True), found


def test_a_game_without_a_legal_command_is_over() -> None:
    state = in_place(Tableau(0, ((1, 13), (2, 11), (3, 9), (4, 7)), (), (6, 5), 0))
    assert GAME.result(state) == GameResult((0.0,), ("unsolved",), ("stuck",))
    assert (GAME.seat_to_move(state), GAME.legal(state, 0)) == (None, ())
    assert GAME.read("ACTION: draw", state, 0) == Illegal("it is not your turn")


def test_the_sixtieth_command_ends_the_game_unless_it_solves_it() -> None:
    table = GAME.reset(1).table
    assert GAME.result(in_place(table, 59)) is None
    assert GAME.result(GAME.step(in_place(table, 59), 0, "draw")) == GameResult((0.0,), ("unsolved",), ("turn_limit",))
    nearly = Tableau(12, ((13,), (), (), ()), (), (), 0)
    assert GAME.result(GAME.step(in_place(nearly, 59), 0, "move 13->foundation")) == GameResult((1.0,), ("win",))


def test_who_resigns_or_forfeits_has_not_solved_it() -> None:
    assert GAME.result(played(1, "resign")) == GameResult((0.0,), ("unsolved",), ("resigned",))
    state = GAME.reset(1)
    assert GAME.stop_episode(state, 0) == GameResult((0.0,), ("loss",), ("forfeit",))
    assert GAME.stop_episode(state, None) == GameResult((0.0,), ("unsolved",), ("turn_limit",))
    assert GAME.result(GAME.step(state, 0, GAME.default(state, 0))) == GameResult((0.0,), ("unsolved",), ("resigned",))


def test_what_a_game_counts() -> None:
    solved = {"completion_rate": Count(1), "steps_over_optimal": Count(0), "steps_over_optimal_charged": Count(0)}
    assert GAME.measure_seat(play_out(GAME, 1, "optimal"), 0) == {"moves": Count(23), "hints": Count(0), **solved}
    given_up = {"moves": Count(1), "hints": Count(1), "completion_rate": Count(0), "steps_over_optimal_charged": Count(37)}
    assert GAME.measure_seat(played(1, "hint", "draw", "resign"), 0) == given_up
    assert GAME.measure_seat(played(0, "draw"), 0) == {"moves": Count(1), "hints": Count(0)}
    start = GAME.reset(1).table
    slow = ThirteenState(start._replace(foundation=13), start, steps=30)
    assert (
        GAME.measure_seat(slow, 0)["steps_over_optimal"] == GAME.measure_seat(slow, 0)["steps_over_optimal_charged"] == Count(7)
    )
    assert set(GAME.measure_seat(slow, 0)) == {metric.name for metric in GAME.metrics}


def test_shared_cases_of_the_steps_over_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = play_out(GAME, 1, "optimal")
    for case in cases("votes", "steps_over_optimal"):
        counts = []
        for steps, best in zip(case["in"]["steps"], case["in"]["optimal"], strict=True):
            monkeypatch.setattr("dtef_pipeline.games.solitaire.thirteen.find_solution", lambda _, n=best: ("",) * n)
            counts.append(GAME.measure_seat(replace(solved, steps=steps), 0)["steps_over_optimal"])
        total = sum(count.numerator for count in counts) / sum(count.denominator for count in counts)
        assert total == pytest.approx(case["out"], abs=case["tol"]), case["id"]


def test_of_120_deals_greedy_solves_3_patient_14_and_chance_about_a_third() -> None:
    wins = {
        name: sum(play_out(GAME, seed, name).table.is_solved for seed in range(120))
        for name in ("greedy", "first-legal", "patient", "random")
    }
    assert wins == {"greedy": 3, "first-legal": 3, "patient": 14, "random": 34}
    page = (ROOT / "docs" / "scenarios" / "thirteen.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (`.+`) \| (\d+) \|", page, re.MULTILINE)
    assert wins | {"optimal": 99} == {name.strip("`"): int(count) for names, count in shown for name in names.split(", ")}


def test_the_optimal_baseline_plays_the_optimum_and_resigns_where_there_is_none() -> None:
    for seed in range(12):
        state, best = play_out(GAME, seed, "optimal"), optimum(seed)
        assert (state.table.is_solved, state.resigned) == (best is not None, best is None)
        assert best is None or state.steps == best
