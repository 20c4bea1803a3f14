"""Negotiations and auctions per second through the whole contract, for each pair of baselines, by the processor time of one core; and texts.

Every turn is played as a player has it: it is told the observation, its text is read, the command is played. In the end the result and the
counts of both seats are taken. Ends with 1 below the wanted episodes per second. Run: `python benchmarks/negotiation.py [EPISODES]`.
"""

from __future__ import annotations

import random
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

from dtef_pipeline.games.baselines import baseline_of, baseline_rng, baselines_of
from dtef_pipeline.games.contract import Illegal, Scenario
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.negotiation import allocation, sealed_bid

LEAGUE = Path(__file__).resolve().parent.parent / "data" / "scenarios" / "negotiation"
SCENARIOS: dict[str, Scenario[Any]] = {
    one.__name__.rpartition(".")[2]: one.of_manifest(read_manifest(LEAGUE / f"{name}.yaml"))
    for name, one in {"allocation": allocation, "sealed-bid": sealed_bid}.items()
}
WANTED = {"allocation": 300, "sealed_bid": 2_000}
TEXTS = 100_000
OFFERS = (
    '{"propose": ',
    '{"A": ["boat"], "B": ["clock", "drum"]}',
    '{"accept": true}',
    '"propose"',
    '"accept"',
    "```json",
    "boat",
)
PIECES = (*'{}[]":,.-$\0\ud800', " ", "\n", "ACTION:", "<think>", "</think>", "bid", "37", "101", "true", *OFFERS)


def episodes_per_second(game: Scenario[Any], names: tuple[str, str], n: int) -> float:
    baselines = [baseline_of(game, name) for name in names]
    started = time.process_time()
    for seed in range(n):
        state, rngs = game.reset(seed, (0, 1)), [baseline_rng(seed, seat) for seat in (0, 1)]
        while (seat := game.to_move(state)) is not None:
            game.observation(state, seat)
            command = game.read(baselines[seat](state, seat, rngs[seat]), state, seat)
            assert isinstance(command, str)
            state = game.step(state, seat, command)
        game.result(state)
        for seat in (0, 1):
            game.measured(state, seat)
    return n / (time.process_time() - started)


def texts_per_second(game: Scenario[Any], n: int) -> float:
    """Random pieces of messages are read as the answer to the first legal command; what is read has to be playable, and read again the same."""
    rng, first = random.Random(1), game.reset(1, (0, 1))
    state = game.step(first, 0, game.legal(first, 0)[3])
    texts = ["".join(rng.choices(PIECES, k=rng.randint(0, 25))) for _ in range(n)]
    started = time.process_time()
    for text in texts:
        found = game.read(text, state, 1)
        if not isinstance(found, Illegal):
            game.step(state, 1, found)
            assert game.read(found, state, 1) == found, text
    return n / (time.process_time() - started)


def main(n: int) -> int:
    too_slow = False
    for name, game in SCENARIOS.items():
        speeds = {pair: episodes_per_second(game, pair, n) for pair in product(baselines_of(game), repeat=2)}
        slowest = min(speeds, key=speeds.__getitem__)
        print(
            f"{name}: slowest {' against '.join(slowest)}, {speeds[slowest]:,.0f} episodes per second; wanted {WANTED[name]:,}"
        )
        print(f"{name}: {texts_per_second(game, TEXTS):,.0f} texts per second")
        too_slow |= speeds[slowest] < WANTED[name]
    return int(too_slow)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
