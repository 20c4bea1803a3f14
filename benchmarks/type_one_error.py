"""How often the published tests find what is not there, in surveys with the batteries of the real rounds and the same people throughout.

Eight equally good models answer each survey of a world drawn anew, so that its segments differ by chance alone. Every test is the software's
own, from the tables that the pipeline makes: `comparisons`, `responsiveness`, the comparison of an experiment, `gaps` and the consistency of
segments. A test should find something in 3 to 6 % of the surveys; any of 28 pairs of models (adjusted) in 5 % or less.

Run: `python benchmarks/type_one_error.py [SETS] [--round NAME] [--out FILE]`; file and rounds as in `benchmarks/coverage.py`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from benchmarks.coverage import GD3, GD4, GD5, GD6, GD7, MANY
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.comparisons import comparisons
from dtef_pipeline.statistics.permutation import SIGNIFICANCE
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.consistency import consistency_components
from dtef_pipeline.survey.boards.experiments import compared
from dtef_pipeline.survey.boards.gaps import gaps
from dtef_pipeline.survey.boards.responsiveness import context_shown, responsiveness
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.experiments import Asked
from tests.made.world_tables import LEVEL, Way, connection, scores
from tests.made.worlds import TYPICAL, Design, World

ROUNDS = {
    "GD3": GD3,
    "GD4": GD4,
    "GD5": GD5,
    "GD6": GD6,
    "GD7": GD7,
    "7 batteries of 6": (6,) * 7,
    "40 single questions": (1,) * 40,
}
EQUAL = tuple(f"m{place}" for place in range(8))
_SPECS = {name: ModelSpec(name=name, model=name) for name in EQUAL}
_WAYS = (BlueprintOptions(context_levels=(LEVEL,)), BlueprintOptions(context_levels=(LEVEL,), option_order="reversed"))
_CEILING_DRAWS = 60
Found = dict[str, list[float]]


def found(batteries: tuple[int, ...], seed: int) -> Found:
    """p-values of every test of one survey, and the smallest adjusted one of all pairs of models."""
    world = World(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, TYPICAL)), seed)
    survey = world.survey(np.random.default_rng([2, seed]))
    named = {model: Way(_SPECS[model].variant) for model in EQUAL}
    tables = connection(world, survey, _CEILING_DRAWS, named)
    options = SurveyBoardOptions(snapshot="base")
    evidence = load_evidence(tables, options)
    ours = evidence.cells["model"].isin([way.model for way in named.values()]).to_numpy()
    noise = None if evidence.noise is None else evidence.noise.of(np.flatnonzero(ours))
    cells = evidence.cells[ours].reset_index(drop=True)
    pairs = comparisons(cells, options, None if noise is None else noise.score)
    made = {"comparisons, each": _values(pairs["p"]), "comparisons, any of 28": [float(pairs["p_holm"].min())]}
    drawn = None if noise is None else noise.score
    between = gaps(tables, cells, options, drawn)[0]
    made |= {f"gaps of {kind}": _values(between.loc[between["attribute"] == kind, "p"]) for kind in ("country", "age")}
    made["consistency"] = _values(consistency_components(cells, options, drawn)["segment_p"])
    first, second = EQUAL[:4], EQUAL[4:]
    of_first = [Way(_SPECS[model].variant) for model in first]
    again = dict(zip(second, (way._replace(level="all") for way in of_first), strict=True))
    _replace_scores(tables, scores(world, survey, named | again))
    levels = load_evidence(tables, options)
    of_models = levels.cells[levels.cells["model"].isin([way.model for way in of_first])]
    made["responsiveness"] = _values(responsiveness(of_models, context_shown(tables), options)["p"])
    again = dict(zip(second, (way._replace(condition=_WAYS[1].condition) for way in of_first), strict=True))
    _replace_scores(tables, scores(world, survey, named | again))
    asked = [Asked(name, str(place), way, _SPECS[name]) for name in first for place, way in enumerate(_WAYS)]
    made["experiments"] = _values(compared(tables, asked, options)["p"])
    return made


def _values(column: pd.Series) -> list[float]:
    return [float(value) for value in column if np.isfinite(value)]


def _replace_scores(tables: duckdb.DuckDBPyConnection, rows: Any) -> None:
    tables.unregister("scores")
    tables.register("scores", rows)


def run(name: str, sets: int, out: Path | None) -> list[Found]:
    """The sets of a round, those in the file included; new ones are added to it."""
    lines = out.read_text(encoding="utf-8").splitlines() if out is not None and out.exists() else []
    made = {line["set"]: line["p"] for line in map(json.loads, lines) if line["round"] == name}
    for at in range(sets):
        if at in made:
            continue
        made[at] = found(ROUNDS[name], at)
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"round": name, "set": at, "p": made[at]}) + "\n")
    return list(made.values())


def rates(made: list[Found]) -> dict[str, float]:
    """Share of the p-values below 5 %, by test; null where the test is not made."""
    tests = {name: [p for each in made for p in each[name]] for name in made[0]}
    return {name: float(np.mean(np.array(p) < SIGNIFICANCE)) if p else np.nan for name, p in tests.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=300)
    parser.add_argument("--round", action="append", choices=list(ROUNDS), help="all, where none is named")
    parser.add_argument("--out", type=Path, help="file with a line of JSON per set")
    asked = parser.parse_args()
    for name in asked.round or ROUNDS:
        shares = rates(run(name, asked.sets, asked.out))
        print(f"{name}: " + ", ".join(f"{test} {share:.3f}" for test, share in shares.items()), flush=True)


if __name__ == "__main__":
    main()
