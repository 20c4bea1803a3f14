"""Kuhn and Leduc poker: tree, payoffs and exact values are OpenSpiel's, a seat sees its own cards alone, and every text is read or refused."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.exact_play import build_exact_game
from data.make_leduc_strategy import solved, table
from dtef_pipeline.games import kuhn, leduc
from dtef_pipeline.games.contract import Count, Illegal
from dtef_pipeline.games.kuhn import build_nash_strategy
from dtef_pipeline.games.leduc import load_leduc_table
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.small_poker import SmallHand, SmallPoker, Strategy, build_uniform_strategy, iterate_states_to_move
from tests.conftest import ROOT
from tests.made.shared_cases import cases

GAMES = {"kuhn": "kuhn_poker", "leduc": "leduc_poker"}
"""What each is called in OpenSpiel."""
_NUMBERS = {
    "kuhn": {"check": 0, "fold": 0, "bet": 1, "call": 1},
    "leduc": {"fold": 0, "check": 1, "call": 1, "bet": 2, "raise": 2},
}
"""OpenSpiel's actions."""


@cache
def small_poker(name: str) -> SmallPoker:
    """`kuhn`, `leduc`, or `leduc without suits`, of the manifests of this project."""
    manifest = read_manifest(ROOT / "data" / "scenarios" / "poker" / f"{name.split(' ')[0]}.yaml")
    if name == "leduc without suits":
        return leduc.of_manifest(manifest.model_copy(update={"settings": {"suits": False}}))
    return {"kuhn": kuhn, "leduc": leduc}[name].of_manifest(manifest)


def random_strategy(game: SmallPoker, rng: np.random.Generator, evenness: float = 1.0) -> Strategy:
    """Probabilities from Dirichlet's distribution; near 0, almost always the same command."""
    points = [point for seat in build_exact_game(game).seats for point in seat.points]
    return {p.name: dict(zip(p.legal, rng.dirichlet([evenness] * len(p.legal)).tolist(), strict=True)) for p in points}


def side_by_side(name: str, oracle: Any) -> Iterator[tuple[SmallHand, Any]]:
    """Every state of ours that a seat moves in or that is over, with OpenSpiel's of the same cards and actions."""
    game = small_poker(name)
    for dealt in game.deals():
        waiting = [dealt]
        while waiting:
            ours = waiting.pop()
            yield ours, _same(game, name, ours, oracle)
            seat = game.seat_to_move(ours)
            if seat is not None:
                waiting += [game.step(ours, seat, command) for command in game.legal(ours, seat)]


def number_of(name: str, command: str) -> int:
    """OpenSpiel's number of a command."""
    return _NUMBERS[name][command]


def _same(game: SmallPoker, name: str, ours: SmallHand, oracle: Any) -> Any:
    state, deck, commands = oracle.new_initial_state(), [game.cards.index(card) for card in ours.deck], iter(ours.commands)
    dealt = iter(deck)
    while True:
        if state.is_chance_node():
            state.apply_action(next(dealt))
            continue
        command = next(commands, None)
        if command is None:
            return state
        state.apply_action(number_of(name, command))


ALL = ("kuhn", "leduc", "leduc without suits")


@pytest.mark.parametrize("name", GAMES)
def test_the_tree_and_every_payoff_are_those_of_openspiel(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game, told, states = small_poker(name), defaultdict(set), 0
    for ours, theirs in side_by_side(name, pyspiel.load_game(GAMES[name])):
        states += 1
        seat = game.seat_to_move(ours)
        if seat is None:
            result = game.result(ours)
            assert theirs.is_terminal()
            assert result is not None
            assert list(result.rewards) == theirs.returns()
            continue
        assert theirs.current_player() == seat
        assert [number_of(name, command) for command in game.legal(ours, seat)] == sorted(theirs.legal_actions())
        told[game.information(ours, seat)].add(theirs.information_state_string())
    assert states > 50
    assert all(len(names) == 1 for names in told.values())
    assert len({next(iter(names)) for names in told.values()}) == len(told) == {"kuhn": 12, "leduc": 936}[name]


@pytest.mark.parametrize("name", ALL)
def test_what_a_seat_is_reported_tells_information_sets_apart_and_nothing_more(name: str) -> None:
    game = small_poker(name)
    observed: dict[str, set[str]] = defaultdict(set)
    for state, seat in iterate_states_to_move(game):
        observed[game.information(state, seat)].add(game.observation(state, seat))
    assert all(len(texts) == 1 for texts in observed.values())
    assert len({text for texts in observed.values() for text in texts}) == len(observed)
    assert len(observed) == {"kuhn": 12, "leduc": 936, "leduc without suits": 288}[name]


def test_the_deal_is_pythons_shuffle_whoever_sits_where() -> None:
    cards = list("JQK")
    random.Random(7).shuffle(cards)
    game = small_poker("kuhn")
    assert game.reset(7) == SmallHand(tuple(cards))
    six = ["J", "J", "Q", "Q", "K", "K"]
    random.Random(7).shuffle(six)
    assert small_poker("leduc without suits").reset(7).deck == tuple(six)
    assert tuple(card[0] for card in small_poker("leduc").reset(7).deck) == tuple(six)


def test_an_observation_reads_as_a_person_would_tell_it() -> None:
    game = small_poker("leduc")
    state = SmallHand(("Ks", "Jh", "Qs", "Js", "Qh", "Kh"), ("check", "bet", "call", "check", "bet"))
    assert game.observation(state, 0).splitlines() == [
        "You are A, and act first.",
        "Your card: king of spades.",
        "Public card: queen of spades.",
        "Pot: 10 chips. You put in 3, B 7.",
        "Betting so far: before the public card: you check, B bets, you call; after the public card: you check, B bets.",
        "To call costs 4 chips.",
        "It is your turn.",
        "Legal commands: fold, call, raise",
    ]
    over = game.step(state, 0, "call")
    assert game.observation(over, 1).splitlines()[-2:] == [
        "Showdown: A has the king of spades.",
        "The hand is over. You lose 7 chips.",
    ]


def test_a_trace_tells_every_card_once() -> None:
    game = small_poker("leduc")
    state = SmallHand(("Ks", "Jh", "Qs", "Js", "Qh", "Kh"))
    assert game.encode_state(state)["undealt"] == ["Qs", "Js", "Qh", "Kh"]
    later = game.encode_state(game.step(game.step(state, 0, "check"), 1, "check"))
    assert (later["cards"], later["public_card"], later["undealt"]) == (["Ks", "Jh"], "Qs", ["Js", "Qh", "Kh"])


@pytest.mark.parametrize(
    ("commands", "text", "read"),
    [
        ((), "ACTION: Bet", "bet"),
        ((), "I have the king.\n**ACTION: bet 1**", "bet"),
        ((), "Check.", "check"),
        (("bet",), "ACTION: call", "call"),
        ((), "ACTION: raise", "You cannot raise, because there is no bet; allowed: check, bet."),
        (("bet",), "ACTION: check", "You cannot check, because there is a bet to answer; allowed: fold, call."),
        (("bet",), "ACTION: raise", "You cannot raise in this stage of betting any more; allowed: fold, call."),
        ((), "ACTION: dance", "This is no command of the game; allowed: check, bet."),
    ],
)
def test_a_text_gives_its_command_or_the_reason_why_it_is_none(commands: tuple[str, ...], text: str, read: str) -> None:
    found = small_poker("kuhn").read(text, SmallHand(("K", "Q", "J"), commands), len(commands) % 2)
    assert (found.reason if isinstance(found, Illegal) else found) == read


def test_who_does_not_move_checks_and_else_folds() -> None:
    game = small_poker("leduc")
    state = SmallHand(game.cards)
    assert game.default(state, 0) == "check"
    assert game.default(game.step(state, 0, "bet"), 1) == "fold"


def test_bluffs_and_bets_for_value_are_counted_by_card() -> None:
    game = small_poker("kuhn")
    bluff = SmallHand(("J", "K", "Q"), ("bet", "fold"))
    assert game.measure_seat(bluff, 0) == {
        "bet_rate": Count(1, 1),
        "showdown_rate": Count(0),
        "bluff_rate": Count(1, 1),
        "value_bet_rate": Count(0, 0),
    }
    assert game.measure_seat(bluff, 1)["bet_rate"] == Count(0, 0)
    slow = SmallHand(("Q", "K", "J"), ("check", "check"))
    assert game.measure_seat(slow, 1)["value_bet_rate"] == Count(0, 1)
    assert game.measure_seat(slow, 1)["showdown_rate"] == Count(1)
    assert {metric.name for metric in game.metrics} == set(game.measure_seat(slow, 0))


def test_suits_change_no_baselines_play() -> None:
    suited, plain = small_poker("leduc"), small_poker("leduc without suits")
    for state, seat in iterate_states_to_move(suited):
        without = SmallHand(tuple(card[0] for card in state.deck), state.commands)
        assert (
            suited.strategies["nash"][suited.information(state, seat)]
            == plain.strategies["nash"][plain.information(without, seat)]
        )
    opening = suited.reset(4)
    for name, command in (("always-call", "check"), ("always-raise", "bet")):
        assert suited.baselines[name](opening, 0, random.Random(1)) == command
    for name, command in (("always-call", "call"), ("always-raise", "raise")):
        assert suited.baselines[name](suited.step(opening, 0, "bet"), 1, random.Random(1)) == command


def test_nash_is_kuhns_formula_and_its_baseline_draws_as_often() -> None:
    found = build_nash_strategy()
    assert len(found) == 12
    assert found["J:"]["bet"] == pytest.approx(1 / 3)
    assert (found["Q:"]["bet"], found["K:"]["bet"]) == pytest.approx((0, 1))
    assert found["Q:check,bet"]["call"] == pytest.approx(2 / 3)
    assert found["J:check"]["bet"] == found["Q:bet"]["call"] == pytest.approx(1 / 3)
    assert (found["J:bet"]["call"], found["K:bet"]["call"], found["K:check"]["bet"]) == (0, 1, 1)
    game, rng = small_poker("kuhn"), random.Random(3)
    state = SmallHand(("J", "Q", "K"))
    bets = sum(game.baselines["nash"](state, 0, rng) == "bet" for _ in range(3000))
    assert bets / 3000 == pytest.approx(1 / 3, abs=0.04)


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
    for case in cases("votes", "game_oracle"):
        game = small_poker(case["in"]["game"].removesuffix("_poker"))
        found = {
            "nash_value_first_player": lambda game=game: value(game, game.strategies["nash"], game.strategies["nash"]),
            "uniform_exploitability": lambda game=game: exploitability(game, build_uniform_strategy(game)),
            "uniform_value_first_player": lambda game=game: value(
                game, build_uniform_strategy(game), build_uniform_strategy(game)
            ),
        }[case["in"]["quantity"]]()
        assert found == pytest.approx(case["out"], abs=case["tol"]), case["id"]


@pytest.mark.parametrize("name", ["leduc", "leduc without suits"])
def test_the_shipped_strategy_of_leduc_is_nearly_perfect(name: str) -> None:
    game = small_poker(name)
    shipped = game.strategies["nash"]
    assert exploitability(game, shipped) < 0.001
    assert value(game, shipped, shipped) == pytest.approx(-0.0856, abs=1e-4)


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
