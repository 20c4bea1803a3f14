"""How often the 95 % intervals of results of games hold the truth, through the function that publishes them.

A deal is lucky for one seat and unlucky for the other; draws of one deal go alike in part. Rewards are whole chips with short or heavy tails, or
deals are solved or not; texts that are no legal moves come in bunches, and more often in long episodes.

Run: `python benchmarks/games_coverage.py [SETS]`. Each set is 200 players with episodes of their own.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.games.contract import merge_metrics
from dtef_pipeline.games.persona_results import compute_game_results
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS

Numbers = npt.NDArray[np.float64]
PLAYERS_OF_A_SET = 200
SEEDS_OF_TRUTH = 400_000
MEASURED_HERE = ("expected_return", "volatility", "success_rate", "illegal_rate")


@dataclass(frozen=True)
class GameWorld:
    """Deals of one kind, in chips."""

    seeds: int
    seats: int = 2
    draws: int = 1
    luck: float = 2.0
    """Spread of what a deal is worth, which is the other seat's loss."""
    own: float = 1.5
    """Spread of what each episode adds."""
    tails: float = 30.0
    """Degrees of freedom: 3 is heavy."""
    edge: float = 0.3
    """What the player wins of an episode in the mean."""


GAME_WORLDS = {
    "30 seeds, both seats": GameWorld(30),
    "60 seeds, both seats": GameWorld(60),
    "100 seeds, both seats": GameWorld(100),
    "30 seeds, heavy tails": GameWorld(30, tails=5),
    "100 seeds, heavy tails": GameWorld(100, tails=5),
    "30 seeds, 4 draws": GameWorld(30, draws=4),
    "30 seeds, one seat": GameWorld(30, seats=1),
    "100 seeds, one seat": GameWorld(100, seats=1),
    "30 seeds, one seat, most lost": GameWorld(30, seats=1, edge=-3.0),
    "10 seeds, both seats": GameWorld(10),
    "5 seeds, both seats": GameWorld(5),
}


@dataclass(frozen=True)
class Drawn:
    """Episodes, (seeds, seats x draws) each."""

    rewards: Numbers
    turns: Numbers
    illegal: Numbers


def drawn(world: GameWorld, seeds: int, rng: np.random.Generator) -> Drawn:
    shape = (seeds, world.seats, world.draws)
    spread = np.sqrt(world.tails / (world.tails - 2))
    luck = world.luck * rng.standard_t(world.tails, (seeds, 1, 1)) / spread
    side = np.array([1.0, -1.0])[: world.seats, None]
    exact = world.edge + luck * side + world.own * rng.standard_t(world.tails, shape) / spread
    turns = 1 + rng.poisson(2 + np.minimum(np.abs(luck), 5) * np.ones(shape))
    careless = rng.beta(0.5, 4.5, (seeds, 1, 1)) * np.ones(shape)
    flat = (seeds, -1)
    illegal = rng.binomial(turns, careless)
    return Drawn(np.round(exact).reshape(flat), turns.reshape(flat) * 1.0, illegal.reshape(flat) * 1.0)


def parts(episodes: Drawn, metric: str) -> tuple[Numbers, Numbers]:
    """Numerators and denominators of a metric, as `episode_scores` has them."""
    if metric == "illegal_rate":
        return episodes.illegal, episodes.turns
    total = (episodes.rewards > 0) * 1.0 if metric == "success_rate" else episodes.rewards
    return total, np.ones(total.shape)


def truth(world: GameWorld) -> dict[str, float]:
    many = drawn(world, SEEDS_OF_TRUTH, np.random.default_rng([7, world.seeds]))
    found = {name: float(np.divide(*(one.sum() for one in parts(many, name)))) for name in MEASURED_HERE}
    return {**found, "volatility": float(many.rewards.std())}


def scores(world: GameWorld, rng: np.random.Generator) -> pa.Table:
    """EPISODE_SCORES of one set of players."""
    tables = []
    metrics = merge_metrics("chips", ())
    for player in range(PLAYERS_OF_A_SET):
        episodes = drawn(world, world.seeds, rng)
        rows = episodes.rewards.size
        cluster = np.repeat(np.arange(world.seeds), rows // world.seeds).astype(str)
        for name in MEASURED_HERE:
            total, of = (one.ravel() for one in parts(episodes, name))
            metric = metrics[name]
            constant = {
                "league": "made",
                "scenario": "deals",
                "version": 1,
                "persona": "",
                "snapshot": "base",
                "opponent": "other",
                "model": f"player {player}",
                "model_variant": f"player {player}",
                "metric": name,
                "status": "scored",
                "metric_family": metric.family,
                "unit": metric.unit,
                "direction": metric.direction,
            }
            columns = {"cluster": cluster, "numerator": total, "denominator": of}
            arrays = [
                pa.array(columns[one.name], one.type) if one.name in columns else pa.repeat(pa.scalar(constant.get(one.name), one.type), rows)
                for one in EPISODE_SCORES
            ]  # fmt: skip
            tables.append(pa.table(arrays, schema=EPISODE_SCORES))
    return pa.concat_tables(tables)


def held(world: GameWorld, true: dict[str, float], rng: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    """By metric, how many intervals held the truth, how many there were, and the sum of their half widths."""
    with duckdb.connect() as connection:
        connection.register("episode_scores", scores(world, rng))
        connection.register("episode_turns", EPISODE_TURNS.empty_table())
        rows = compute_game_results(connection)["persona_results"].to_pylist()
    own = [row for row in rows if row["opponent"] == "all" and row["low"] is not None]
    return {
        name: (
            sum(row["low"] <= true[name] <= row["high"] for row in own if row["metric"] == name),
            sum(row["metric"] == name for row in own),
            sum((row["high"] - row["low"]) / 2 for row in own if row["metric"] == name),
        )
        for name in MEASURED_HERE
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=int, nargs="?", default=10, help="Sets of 200 players of each world.")
    sets = parser.parse_args().sets
    print(f"{'world':32}" + "".join(f"{name:>18}" for name in MEASURED_HERE))
    for name, world in GAME_WORLDS.items():
        true, rng = truth(world), np.random.default_rng([11, world.seeds])
        found = [held(world, true, rng) for _ in range(sets)]
        shares = [np.sum([one[metric] for one in found], axis=0) for metric in MEASURED_HERE]
        print(f"{name:32}" + "".join(f"{hits / of:>10.3f} {width / of:>7.3f}" for hits, of, width in shares), flush=True)


if __name__ == "__main__":
    main()
