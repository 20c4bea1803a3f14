"""Kuhn and Leduc poker as tests play them, and OpenSpiel's own for comparison."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.exact_play import build_exact_game
from dtef_pipeline.games import kuhn, leduc
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.small_poker import SmallHand, SmallPoker, Strategy
from tests.conftest import ROOT

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
