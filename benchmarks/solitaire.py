"""How long the shortest solutions of solitaire take to find, how many deals have one, and how many games each baseline solves.

Run: `python benchmarks/solitaire.py [DEALS]`.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

from dtef_pipeline.games.baselines import baseline_rng, baselines_of
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.games.solitaire.optimum import optimum
from dtef_pipeline.games.solitaire.thirteen import Thirteen, of_manifest

MANIFEST = Path(__file__).parent.parent / "data" / "scenarios" / "solitaire" / "thirteen.yaml"


def searched(deals: int) -> None:
    taken, found = [], []
    for seed in range(deals):
        began = time.perf_counter()
        found.append(optimum(seed))
        taken.append(time.perf_counter() - began)
    solved = [steps for steps in found if steps is not None]
    print(
        f"{len(solved)} of {deals} deals have a solution, of {min(solved)} to {max(solved)} commands, median {np.median(solved):g}"
    )
    print(
        f"a search takes {1000 * np.mean(taken):.1f} ms on average, {1000 * np.median(taken):.1f} in the median, {1000 * max(taken):.0f} at most"
    )


def played(game: Thirteen, name: str, deals: int) -> None:
    ends: Counter[str] = Counter()
    began, steps = time.perf_counter(), 0
    for seed in range(deals):
        state, rng = game.reset(seed, (0,)), baseline_rng(seed, 0)
        while game.to_move(state) is not None:
            state = game.step(state, 0, baselines_of(game)[name](state, 0, rng))
        end = game.result(state)
        ends.update((end.flags or end.outcomes) if end else ())
        steps += state.steps
    seconds = time.perf_counter() - began
    print(f"{name:<12} solves {ends['win']:>5} of {deals}: {dict(ends.most_common())}")
    print(f"{'':<12} {deals / seconds:,.0f} games a second, {steps / deals:.1f} steps per game")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("deals", type=int, nargs="?", default=120)
    deals = asked.parse_args().deals
    searched(deals)
    game = of_manifest(read_manifest(MANIFEST))
    for name in baselines_of(game):
        played(game, name, deals)


if __name__ == "__main__":
    main()
