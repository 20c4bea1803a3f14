"""How often intervals of decision points hold the truth: simulated players of known strategies, in Kuhn or Leduc poker.

    python benchmarks/decision_points.py [kuhn|leduc] [PLAYERS]

Leduc is played without suits. One line is one kind of player and one number of draws.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dtef_pipeline.games.exact_play import ExactGame, exact_game
from dtef_pipeline.games.kuhn import Kuhn
from dtef_pipeline.games.leduc import Leduc
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.strategies import Strategy
from dtef_pipeline.games.strategy_values import values_of_readings

MANIFESTS = Path(__file__).resolve().parent.parent / "data" / "scenarios" / "poker"
EVENNESS = {"even": 1.0, "uneven": 0.3, "almost fixed": 0.05}
DRAWS_PER_POINT = (5, 10, 20)


class Found(NamedTuple):
    """What one simulated player showed."""

    value_held: bool
    exploitability_held: bool
    bias_as_drawn: float
    bias_corrected: float


def simulated(scenario: Kuhn | Leduc, game: ExactGame, evenness: float, draws: int, rng: np.random.Generator) -> Found:
    points = [point for seat in game.seats for point in seat.points]
    shares = [rng.dirichlet([evenness] * len(point.legal)) for point in points]
    player: Strategy = {
        point.name: dict(zip(point.legal, share, strict=True)) for point, share in zip(points, shares, strict=True)
    }
    readings = {
        point.name: rng.choice(point.legal, draws, p=share).tolist() for point, share in zip(points, shares, strict=True)
    }
    own, nash = ([game.vector(strategy, seat) for seat in (0, 1)] for strategy in (player, scenario.strategies["nash"]))
    value = float(game.value(own[0], nash[1]) - game.value(nash[0], own[1])) / 2
    exploitability = float(game.exploitability(own[0], own[1]))
    found = values_of_readings(scenario, readings, resamples=200, seed=int(rng.integers(2**31)))
    mean, corrected = found.against[0].mean, found.exploitability_corrected
    numbers = (mean.low, mean.high, corrected.low, corrected.high, corrected.value, found.exploitability.value)
    low, high, least, most, without_bias, as_drawn = (np.nan if number is None else number for number in numbers)
    return Found(
        low <= value <= high, least <= exploitability <= most, as_drawn - exploitability, without_bias - exploitability
    )


def main(name: str = "kuhn", players: str = "1000") -> None:
    manifest = read_manifest(MANIFESTS / f"{name}.yaml")
    scenario = Kuhn(manifest) if name == "kuhn" else Leduc(manifest, suits=False)
    game = exact_game(scenario)
    for kind, evenness in EVENNESS.items():
        for draws in DRAWS_PER_POINT:
            rng = np.random.default_rng(4)
            held = np.mean([simulated(scenario, game, evenness, draws, rng) for _ in range(int(players))], axis=0)
            print(
                f"{kind:12} {draws:3} draws: value held {held[0]:.3f}, exploitability held {held[1]:.3f}, "
                f"bias as drawn {held[2]:+.4f}, corrected {held[3]:+.4f}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
