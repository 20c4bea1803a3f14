"""Exact play: known values of both games, and OpenSpiel's numbers for strategies at random."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.exact_play import build_exact_game
from data.make_leduc_strategy import solved, table
from dtef_pipeline.games.kuhn import KUHN_VALUE, build_nash_strategy
from dtef_pipeline.games.leduc import LEDUC_VALUE, load_leduc_table
from dtef_pipeline.games.small_poker import SmallPoker, Strategy, build_uniform_strategy
from tests.made.small_poker import GAMES, number_of, random_strategy, side_by_side, small_poker
from tests.made.voted import shared_cases


def value(game: SmallPoker, first: Strategy, second: Strategy) -> float:
    exact = build_exact_game(game)
    return exact.value(exact.vector(first, 0), exact.vector(second, 1))


def exploitability(game: SmallPoker, strategy: Strategy) -> float:
    exact = build_exact_game(game)
    return exact.exploitability(exact.vector(strategy, 0), exact.vector(strategy, 1))


@pytest.mark.parametrize(
    ("game", "strategy", "wins", "loses"),
    [
        ("kuhn", "nash", -1 / 18, 0),
        ("kuhn", "random", 0.125, 0.4583333),
        ("kuhn", "always-bet", 0, 1 / 3),
        ("kuhn", "always-pass", 0, 1),
        ("leduc", "random", -0.078125, 2.3736111),
        ("leduc without suits", "random", -0.078125, 2.3736111),
    ],
)
def test_values_that_are_known(game: str, strategy: str, wins: float, loses: float) -> None:
    found = small_poker(game).strategies[strategy]
    assert value(small_poker(game), found, found) == pytest.approx(wins, abs=1e-7)
    assert exploitability(small_poker(game), found) == pytest.approx(loses, abs=1e-7)


def test_the_values_of_the_shared_cases() -> None:
    for case in shared_cases("game_oracle"):
        game = small_poker(case["in"]["game"].removesuffix("_poker"))
        found = {
            "nash_value_first_player": lambda game=game: value(game, game.strategies["nash"], game.strategies["nash"]),
            "uniform_exploitability": lambda game=game: exploitability(game, build_uniform_strategy(game)),
            "uniform_value_first_player": lambda game=game: value(
                game, build_uniform_strategy(game), build_uniform_strategy(game)
            ),
        }[case["in"]["quantity"]]()
        assert found == pytest.approx(case["out"], abs=case["tol"]), case["id"]


def test_kuhns_strategy_cannot_be_beaten() -> None:
    game = small_poker("kuhn")
    assert exploitability(game, build_nash_strategy()) == pytest.approx(0, abs=1e-12)
    assert value(game, build_nash_strategy(), build_nash_strategy()) == pytest.approx(KUHN_VALUE)


@pytest.mark.parametrize("name", ["leduc", "leduc without suits"])
def test_the_shipped_strategy_of_leduc_is_nearly_perfect(name: str) -> None:
    game = small_poker(name)
    shipped = game.strategies["nash"]
    assert exploitability(game, shipped) < 0.001
    assert value(game, shipped, shipped) == pytest.approx(LEDUC_VALUE, abs=1e-4)


@pytest.mark.parametrize("name", GAMES)
def test_strategies_at_random_are_worth_what_openspiel_says(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game, strategy = small_poker(name), random_strategy(small_poker(name), np.random.default_rng(3), 0.4)
    oracle, policy = pyspiel.load_game(GAMES[name]), {}
    for ours, theirs in side_by_side(name, oracle):
        seat = game.seat_to_move(ours)
        if seat is not None:
            shares = strategy[game.information(ours, seat)]
            policy[theirs.information_state_string()] = [(number_of(name, command), shares[command]) for command in shares]
    table = pyspiel.PartialTabularPolicy(policy)
    assert exploitability(game, strategy) == pytest.approx(pyspiel.nash_conv(oracle, table) / 2, abs=1e-9)
    returns = pyspiel.expected_returns(oracle.new_initial_state(), table, -1, False)
    assert value(game, strategy, strategy) == pytest.approx(returns[0], abs=1e-9)


def test_the_script_that_ships_the_strategy_of_leduc_learns_it() -> None:
    game = small_poker("leduc without suits")
    exact = build_exact_game(game)
    learned = table(exact, solved(exact, 60))
    assert set(learned) == set(load_leduc_table())
    assert exploitability(game, learned) < 0.03
