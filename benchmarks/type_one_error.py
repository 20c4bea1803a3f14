"""How often the published tests find what is not there, in surveys with the batteries of the real rounds and the same people throughout.

Every test is the software's own, from the tables that the pipeline makes. Three kinds of surveys, of simulated worlds (`tests/made/worlds.py`):

- eight equally good models: every two of them, four in two ways (a context level or a condition, which are then the same test of other tables);
- eight models that score as the leave-one-out marginal does, on average over surveys of one world: each against the marginal;
- segments that differ from question to question and by nothing that lasts: gaps between them and their consistency.

A test should find something in 3 to 6 % of the surveys; any of what is adjusted together in 5 % or less.

Run: `python benchmarks/type_one_error.py [SETS] [--round NAME] [--out FILE]`; file and rounds as in `benchmarks/coverage.py`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.coverage import GD3, GD4, GD5, GD6, GD7, MANY
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.comparisons import comparisons
from dtef_pipeline.boards.families import CONFIRMATORY
from dtef_pipeline.statistics.permutation import SIGNIFICANCE
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.consistency import consistency_components
from dtef_pipeline.survey.boards.experiments import compared
from dtef_pipeline.survey.boards.gaps import gaps
from dtef_pipeline.survey.boards.responsiveness import context_shown, responsiveness
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.experiments import Asked
from tests.made.world_tables import LEVEL, Way, connection, scores
from tests.made.worlds import GOOD, TYPICAL, Design, Errors, Survey, World

ROUNDS = {"GD3": GD3, "GD4": GD4, "GD5": GD5, "GD6": GD6, "GD7": GD7, "7 batteries of 6": (6,) * 7}
EQUAL = tuple(f"m{place}" for place in range(8))
AS_THE_MARGINAL = Errors(0.2928, 0.1506)
"""Errors of models that score as the leave-one-out marginal does in the world of seed 1: .8340 on average over 200 surveys of MANY."""
BY_CHANCE: dict[str, Any] = {"country": 1e-4, "group": 1e-4, "own": 0.25}
"""Segments that differ anew in every question."""
JUDGED = {"typical": TYPICAL, "good": GOOD}
_SPECS = {name: ModelSpec(name=name, model=name) for name in EQUAL}
_WAYS = (BlueprintOptions(context_levels=(LEVEL,)), BlueprintOptions(context_levels=(LEVEL,), option_order="reversed"))
OPTIONS = SurveyBoardOptions(snapshot="base", resamples=0)
CEILING_DRAWS = 60
_NO_CEILINGS = 0
"""Comparisons have no use for them."""
Found = dict[str, list[float]]


def of_equal_models(batteries: tuple[int, ...], seed: int) -> Found:
    """p-values of every test of one survey between equal models and ways of asking, and the smallest of those adjusted together."""
    world, survey = _drawn(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, TYPICAL)), seed)
    named = {model: Way(_SPECS[model].variant) for model in EQUAL}
    tables = connection(world, survey, _NO_CEILINGS, named)
    pairs = _compared(tables, {way.model for way in named.values()})
    made = _each_and_any("two models", pairs["p"], pairs["p_adjusted"])
    made["two models, any by Holm"] = _smallest(pairs["p_holm"])
    first = [named[model] for model in EQUAL[:4]]
    for test, again in (
        ("context", [way._replace(level="all") for way in first]),
        ("experiment", [way._replace(condition=_WAYS[1].condition) for way in first]),
    ):
        tables.unregister("scores")
        tables.register("scores", scores(world, survey, named | dict(zip(EQUAL[4:], again, strict=True))))
        found = _reactions(tables, first) if test == "context" else _conditions(tables)
        made |= _each_and_any(test, found["p"], found["p_bh"])
    return made


def _drawn(design: Design, seed: int, world: int | None = None) -> tuple[World, Survey]:
    made = World(design, seed if world is None else world)
    return made, made.survey(np.random.default_rng([2, seed]))


def evidence_of(tables: duckdb.DuckDBPyConnection, chosen: set[str]) -> tuple[pd.DataFrame, npt.NDArray[np.float32]]:
    """Cells and their noise, of some models."""
    evidence = load_evidence(tables, OPTIONS)
    assert evidence.noise is not None
    kept = np.flatnonzero(evidence.cells["model"].isin(chosen))
    return evidence.cells.iloc[kept].reset_index(drop=True), evidence.noise.of(kept).score


def _compared(tables: duckdb.DuckDBPyConnection, chosen: set[str]) -> pd.DataFrame:
    cells, noise = evidence_of(tables, chosen)
    return comparisons(cells, OPTIONS, noise)


def _reactions(tables: duckdb.DuckDBPyConnection, asked: list[Way]) -> pd.DataFrame:
    cells, noise = evidence_of(tables, {way.model for way in asked})
    return responsiveness(cells, context_shown(tables), OPTIONS, noise)


def _conditions(tables: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    asked = [Asked(name, str(place), way, _SPECS[name]) for name in EQUAL[:4] for place, way in enumerate(_WAYS)]
    return compared(tables, asked, OPTIONS)


def against_the_marginal(batteries: tuple[int, ...], seed: int) -> Found:
    """The confirmatory family of one survey."""
    world, survey = _drawn(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, AS_THE_MARGINAL)), seed, world=1)
    tables = connection(world, survey, _NO_CEILINGS)
    family = _compared(tables, {*EQUAL, LEAVE_ONE_OUT})
    family = family[family["family"] == CONFIRMATORY]
    return _each_and_any("model and marginal", family["p"], family["p_adjusted"])


def of_equal_segments(batteries: tuple[int, ...], seed: int) -> Found:
    """Gaps and consistency of one survey, by model."""
    world, survey = _drawn(Design(batteries, **MANY, **BY_CHANCE, models=JUDGED), seed)
    tables = connection(world, survey, CEILING_DRAWS)
    cells, noise = evidence_of(tables, {*JUDGED, LEAVE_ONE_OUT})
    between = gaps(tables, cells, OPTIONS, noise)[0]
    spread = consistency_components(cells, OPTIONS, noise)
    made = {}
    for model in (*JUDGED, LEAVE_ONE_OUT):
        for kind, rows in between[between["model"] == model].groupby("attribute"):
            made[f"gap of {kind}, {model}"] = _values(rows["p"])
        made[f"consistency, {model}"] = _values(spread.loc[spread["model"] == model, "segment_p"])
    return made | {"gaps, any": _smallest(between.loc[between["model"].isin(list(JUDGED)), "p_bh"])}


def _each_and_any(test: str, p: pd.Series, adjusted: pd.Series) -> Found:
    return {test: _values(p), f"{test}, any": _smallest(adjusted)}


def _values(column: pd.Series) -> list[float]:
    return [float(value) for value in column if np.isfinite(value)]


def _smallest(column: pd.Series) -> list[float]:
    return [min(_values(column))]


def found(batteries: tuple[int, ...], seed: int) -> Found:
    return of_equal_models(batteries, seed) | against_the_marginal(batteries, seed) | of_equal_segments(batteries, seed)


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


def rates(made: list[Found]) -> pd.DataFrame:
    """By test: `rate`, the share of the p-values below 5 %, and its standard error `se`, surveys being independent."""
    shares = {name: np.array([np.mean(np.array(each[name]) < SIGNIFICANCE) for each in made]) for name in made[0]}
    return pd.DataFrame(
        {name: {"rate": share.mean(), "se": share.std(ddof=1) / np.sqrt(len(share))} for name, share in shares.items()}
    ).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=200)
    parser.add_argument("--round", action="append", choices=list(ROUNDS), help="all, where none is named")
    parser.add_argument("--out", type=Path, help="file with a line of JSON per set")
    asked = parser.parse_args()
    for name in asked.round or ROUNDS:
        table = rates(run(name, asked.sets, asked.out))
        print(f"{name} ({asked.sets} surveys)\n{table.round(3).to_string()}", flush=True)


if __name__ == "__main__":
    main()
