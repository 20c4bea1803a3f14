"""How often the intervals of `gaps` hold the truth, in surveys with the batteries of real rounds and the same people throughout.

Worlds whose segments truly differ (`tests/made/worlds.py`) are surveyed again and again, and judged by the software's own function. The true
excess is the mean excess over the surveys of a world, 0 or more. How often gaps find what is not there: `benchmarks/type_one_error.py`.

Run: `python benchmarks/gaps.py [SETS] [--round NAME]`.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from benchmarks.type_one_error import CEILING_DRAWS, JUDGED, OPTIONS, ROUNDS, evidence_of
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.boards.gaps import gaps
from tests.made.world_tables import connection
from tests.made.worlds import Design, World

WORLDS = 3


def judged(world: World, seed: int) -> pd.DataFrame:
    """A row for each model and attribute of one survey."""
    tables = connection(world, world.survey(np.random.default_rng([3, seed])), CEILING_DRAWS)
    cells, noise = evidence_of(tables, {*JUDGED, LEAVE_ONE_OUT})
    return gaps(tables, cells, OPTIONS, noise)[0]


def coverage(batteries: tuple[int, ...], sets: int) -> pd.DataFrame:
    """By attribute and model: the true excess, and the share of the intervals that hold that of their world."""
    found = []
    for seed in range(WORLDS):
        world = World(Design(batteries, models=JUDGED), 100 + seed)
        made = pd.concat([judged(world, sets * seed + at) for at in range(sets)], ignore_index=True)
        true = made.groupby(["attribute", "model"], observed=True)["excess"].transform("mean").clip(lower=0)
        found.append(made.assign(true=true, held=(made["excess_low"] <= true) & (true <= made["excess_high"])))
    return pd.concat(found).groupby(["attribute", "model"], observed=True)[["true", "held"]].mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=60)
    parser.add_argument("--round", action="append", choices=list(ROUNDS), help="all, where none is named")
    asked = parser.parse_args()
    for name in asked.round or ROUNDS:
        print(f"{name}\n{coverage(ROUNDS[name], asked.sets).round(4).to_string()}", flush=True)


if __name__ == "__main__":
    main()
