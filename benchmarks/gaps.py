"""How often `gaps` and `consistency` find what is not there, and how often their intervals hold the truth, with the batteries of real rounds.

Surveys of simulated worlds, in which the same people answer every question (`tests/made/worlds.py`), through the software's own functions.
First worlds whose segments differ by chance alone, anew in every question: p below .05 should be as rare as that, in 3 to 6 % of the rows.
Then worlds whose segments truly differ, each surveyed again and again: the true excess is the mean excess over its surveys, 0 or more.

Run: `python benchmarks/gaps.py [SETS] [--round NAME]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd

from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.statistics.permutation import SIGNIFICANCE
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.consistency import consistency_components
from dtef_pipeline.survey.boards.gaps import gaps
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from tests.made.world_tables import connection
from tests.made.worlds import GOOD, TYPICAL, Design, Survey, World

ROUNDS = {
    "GD3": (9, 7, 6, 5, 4, 3, 2, 2, *(1,) * 5),
    "GD4": (13, 7, 7, 6, 6, 5, 5, 5, 2, 2, *(1,) * 58),
    "GD7": (8, 6, 5, 4, 4, 3, 3, 2, *(1,) * 19),
}
"""Questions of each battery of a round."""
MODELS = {"typical": TYPICAL, "good": GOOD}
WORLDS = 3
_CEILING_DRAWS = 60
_OPTIONS = SurveyBoardOptions(snapshot="base")


def judged(world: World, survey: Survey) -> pd.DataFrame:
    """A row for each model and attribute of `gaps`, and one for each model of `consistency`, attribute `consistency`."""
    tables = connection(world, survey, _CEILING_DRAWS)
    evidence = load_evidence(tables, _OPTIONS)
    kept = np.flatnonzero(evidence.cells["model"] != POPULATION_MARGINAL)
    cells = evidence.cells.iloc[kept].reset_index(drop=True)
    noise = None if evidence.noise is None else evidence.noise.score[kept]
    asked = cells["question_id"].astype(str).str[1:].astype(int)
    cells = cells.assign(same_item=cells["question_id"], cluster=survey.battery[asked].astype(str))
    of_gaps = gaps(tables, cells, _OPTIONS, noise)[0]
    spread = consistency_components(cells, _OPTIONS, noise)
    return pd.concat([of_gaps, spread.assign(attribute="consistency", p=spread["segment_p"])], ignore_index=True)


def rows(make: Callable[[int], pd.DataFrame], sets: int) -> pd.DataFrame:
    return pd.concat([make(at) for at in range(sets)], ignore_index=True)


def false_findings(batteries: tuple[int, ...], sets: int) -> pd.DataFrame:
    """Share of p below .05 and mean excess, by model and attribute: every set is of another world."""

    def make(at: int) -> pd.DataFrame:
        world = World(Design(batteries, models=MODELS, country=1e-4, group=1e-4, own=0.25), at)
        return judged(world, world.survey(np.random.default_rng([2, at])))

    found = rows(make, sets)
    # Two groups of which each is predicted by the other score alike: the leave-one-out marginal has no gap of gender.
    found = found[(found["attribute"] == "consistency") | (found["gap"] > 0)]
    return (
        found.assign(found=found["p"] < SIGNIFICANCE).groupby(["attribute", "model"], observed=True)[["found", "excess"]].mean()
    )


def coverage(batteries: tuple[int, ...], sets: int) -> pd.DataFrame:
    """Share of the intervals of the excess that hold the mean excess over the surveys of their world."""
    found = []
    for seed in range(WORLDS):
        made = _surveyed(World(Design(batteries, models=MODELS), 100 + seed), seed, sets)
        made = made[made["attribute"] != "consistency"]
        true = made.groupby(["attribute", "model"], observed=True)["excess"].transform("mean").clip(lower=0)
        found.append(made.assign(world=seed, true=true, held=(made["excess_low"] <= true) & (true <= made["excess_high"])))
    whole = pd.concat(found)
    return whole.groupby(["attribute", "model"], observed=True)[["true", "held"]].mean()


def _surveyed(world: World, seed: int, sets: int) -> pd.DataFrame:
    return rows(lambda at: judged(world, world.survey(np.random.default_rng([3, seed, at]))), sets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=300)
    parser.add_argument("--round", action="append", choices=list(ROUNDS), help="all, where none is named")
    asked = parser.parse_args()
    for name in asked.round or ROUNDS:
        for title, of in (("no differences", false_findings), ("true differences", coverage)):
            print(f"{name}, {title}\n{of(ROUNDS[name], asked.sets).round(4).to_string()}", flush=True)


if __name__ == "__main__":
    main()
