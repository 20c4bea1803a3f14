"""How often the published tests find what is not there, in surveys with the batteries of the real rounds and the same people throughout.

Every test is the software's own, from the tables that the pipeline makes. Seven kinds of surveys, of simulated worlds (`tests/made/worlds.py`):

- eight equally good models: every two of them, four in two ways (a context level or a condition, which are then the same test of other tables);
- the same beside a good model and both marginals, which are compared with them;
- the same where more responses of four of them cannot be read: verdicts on readable responses alone, and those of the policy beside them;
- a model that is wrong here and there, and one that is right but too cautious, of equal score on average over surveys of one world;
- eight models that score as the leave-one-out marginal does, on average over surveys of one world: each against the marginal;
- segments that differ from question to question and by nothing that lasts: gaps between them and their consistency, of three typical and three
  good models; and verdicts on gaps of as many models of which more responses cannot be read for every second segment;
- three rounds on one board, asked of other people, with questions in common (`TOGETHER`): equal models and equal segments.

A test should find something in 3 to 6 % of the surveys; any of what is adjusted together in 5 % or less.

Run: `python benchmarks/type_one_error.py [SETS] [--round NAME] [--out FILE]`; file and rounds as in `benchmarks/coverage.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.coverage import GD3, GD4, GD5, GD6, GD7, MANY
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.boards.boards import load_evidence
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.pairs import BETTER, OF_REFERENCE, WORSE
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.conditions import compare_conditions, compute_responsiveness, load_context_shown
from dtef_pipeline.survey.boards.segment_gaps import compute_segment_gaps, estimate_consistency
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from tests.made.world_tables import Setting, connection, scores
from tests.made.worlds import GOOD, TYPICAL, Design, Errors, Survey, World

ROUNDS = {"GD3": GD3, "GD4": GD4, "GD5": GD5, "GD6": GD6, "GD7": GD7, "7 batteries of 6": (6,) * 7}
TOGETHER = {"3 rounds of GD4": GD4, "3 rounds of GD3 and GD5": (*GD3, *GD5)}
"""Batteries of all questions of three rounds: the first, the middle and the last of them, in an order of chance."""
IN_COMMON = 0.3
"""Share of a round's questions that the next round asks again."""
EQUAL = tuple(f"m{place}" for place in range(8))
FIRST = EQUAL[:4]
RARELY_UNREAD, OFTEN_UNREAD = 0.02, 0.15
AS_THE_MARGINAL = Errors(0.2928, 0.1506)
"""Errors of models that score as the leave-one-out marginal does in the world of seed 1: .8340 on average over 200 surveys of MANY."""
CAUTIOUS = 0.31
"""Share of equal answers in the predictions of a good model that scores as a typical one does in the world of seed 1: .822 over 250 surveys."""
BY_CHANCE: dict[str, Any] = {"country": 1e-4, "group": 1e-4, "own": 0.25}
"""Segments that differ anew in every question."""
JUDGED = {"typical": TYPICAL, "good": GOOD}
ALIKE, UNREAD = 3, " unread"
_SPECS = {name: ModelSpec(name=name, model=name) for name in EQUAL}
_REVERSED = BlueprintOptions(option_order="reversed").condition
OPTIONS = SurveyBoardOptions(snapshot="base")
CEILING_DRAWS = 60
_NO_CEILINGS = 0
"""Comparisons have no use for them."""
Found = dict[str, list[float]]


def of_equal_models(batteries: tuple[int, ...], seed: int) -> Found:
    """p-values of every test of one survey between equal models and settings, and the smallest of those adjusted together."""
    pairs, context, conditions = _equal_models(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, TYPICAL)), seed)
    made = _each_and_any("two models", pairs["p"], pairs["p_adjusted"])
    made |= _each_and_any("context", context["p"], context["p_adjusted"])
    return made | _each_and_any("conditions", conditions["p"], conditions["p_adjusted"])


def beside_others(batteries: tuple[int, ...], seed: int) -> Found:
    """The pairs of equal models on a board with a good model and both marginals."""
    models = dict.fromkeys(EQUAL, TYPICAL) | {"good": GOOD}
    world, survey = _drawn(Design(batteries, **MANY, models=models), seed)
    pairs = _compared(connection(world, survey, _NO_CEILINGS), {*models, LEAVE_ONE_OUT, POPULATION_MARGINAL})
    pairs = pairs[pairs["model"].isin(EQUAL) & pairs["other_model"].isin(EQUAL)]
    return _each_and_any("two models beside a good one", pairs["p"], pairs["p_adjusted"])


def of_another_style(batteries: tuple[int, ...], seed: int) -> Found:
    """Two models of equal score that are wrong in different ways."""
    world, survey = _drawn(Design(batteries, **MANY, models={"typical": TYPICAL, "cautious": GOOD}), seed, world=1)
    there = survey.predicted["cautious"] > 0
    cautious = (1 - CAUTIOUS) * survey.predicted["cautious"] + CAUTIOUS * there / there.sum(axis=-1, keepdims=True)
    survey = replace(survey, predicted={**survey.predicted, "cautious": cautious})
    pairs = _compared(connection(world, survey, _NO_CEILINGS), {"typical", "cautious"})
    return {"two models of another style": _values(pairs["p"])}


def of_readable_responses(batteries: tuple[int, ...], seed: int) -> Found:
    """The same by readable responses alone, where half of the models, and of the settings, have more that cannot be read."""
    unread = {model: RARELY_UNREAD if place < len(FIRST) else OFTEN_UNREAD for place, model in enumerate(EQUAL)}
    found = _equal_models(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, TYPICAL), unread=unread), seed)
    made: Found = {}
    for test, table, adjusted in zip(
        ("two models", "context", "conditions"), found, ("p_adjusted", "p_adjusted", "p_adjusted"), strict=True
    ):
        made |= _each_and_any(f"{test}, readable", table["parsed_p"], table[f"parsed_{adjusted}"])
    pairs, *_ = found
    unlike = pairs["model"].isin(_named(FIRST)) != pairs["other_model"].isin(_named(FIRST))
    made["two models unlike in reading, readable"] = _values(pairs.loc[unlike, "parsed_p"])
    return made | {"two models unlike in reading, policy": _values(pairs.loc[unlike, "p"])}


def _equal_models(design: Design, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """`comparisons` of eight models, and of the same answers as of four models in two ways `responsiveness` and conditions."""
    world, survey = _drawn(design, seed)
    named = {model: Setting(_SPECS[model].variant) for model in EQUAL}
    tables = connection(world, survey, _NO_CEILINGS, named)
    pairs = _compared(tables, _named(EQUAL))
    first = [named[model] for model in FIRST]
    found = []
    for ask, again in (
        (_reactions, [way._replace(level="all") for way in first]),
        (_conditions, [way._replace(condition=_REVERSED) for way in first]),
    ):
        tables.unregister("scores")
        tables.register("scores", scores(world, survey, named | dict(zip(EQUAL[len(FIRST) :], again, strict=True))))
        found.append(ask(tables))
    return pairs, *found


def _named(models: Sequence[str]) -> set[str]:
    return {_SPECS[model].variant for model in models}


def _drawn(design: Design, seed: int, world: int | None = None) -> tuple[World, Survey]:
    made = World(design, seed if world is None else world)
    return made, made.survey(np.random.default_rng([2, seed]))


def evidence_of(tables: duckdb.DuckDBPyConnection, chosen: set[str]) -> tuple[pd.DataFrame, npt.NDArray[np.float32]]:
    """Cells and their noise, of some models."""
    evidence = load_evidence(tables, OPTIONS)
    assert evidence.noise is not None
    kept = np.flatnonzero(evidence.cells["model"].isin(chosen))
    return evidence.cells.iloc[kept].reset_index(drop=True), evidence.noise.select_cells(kept).score


def _compared(tables: duckdb.DuckDBPyConnection, chosen: set[str]) -> pd.DataFrame:
    cells, noise = evidence_of(tables, chosen)
    return compare_all_pairs(cells, OPTIONS, noise)


def _reactions(tables: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    cells, noise = evidence_of(tables, _named(FIRST))
    return compute_responsiveness(cells, load_context_shown(tables), OPTIONS, noise)


def _conditions(tables: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    return compare_conditions(tables, OPTIONS)


def against_the_marginal(batteries: tuple[int, ...], seed: int) -> Found:
    """The confirmatory family of one survey."""
    world, survey = _drawn(Design(batteries, **MANY, models=dict.fromkeys(EQUAL, AS_THE_MARGINAL)), seed, world=1)
    tables = connection(world, survey, _NO_CEILINGS)
    family = _compared(tables, {*EQUAL, LEAVE_ONE_OUT})
    family = family[family["adjusted_over"] == OF_REFERENCE]
    return _each_and_any("model and marginal", family["p"], family["p_adjusted"])


def of_equal_segments(batteries: tuple[int, ...], seed: int) -> Found:
    """Gaps and consistency of one survey by kind of model, and gaps by readable responses alone."""
    read, unread = ({f"{kind}{said} {at}": kind for kind in JUDGED for at in range(ALIKE)} for said in ("", UNREAD))
    models = {model: JUDGED[kind] for model, kind in (read | unread).items()}
    rate = dict.fromkeys(read, 0.0) | dict.fromkeys(unread, 0.08)
    world, survey = _drawn(Design(batteries, **MANY, **BY_CHANCE, models=models, unread=rate, uneven=0.75), seed)
    between, spread = _segments(connection(world, survey, CEILING_DRAWS), models)
    made = _by_kind(read | {LEAVE_ONE_OUT: LEAVE_ONE_OUT}, between, spread)
    rows = between[between["model"].isin(unread)]
    for verdict, words in (("parsed_verdict", "readable"), ("verdict", "policy")):
        apart = rows[verdict].isin([BETTER, WORSE]).groupby([rows["model"], rows["attribute"]], observed=True).any()
        made[f"any gap of an attribute, {words}"] = [0.0 if is_found else 1.0 for is_found in apart]
    return made


def of_several_rounds(batteries: tuple[int, ...], seed: int) -> Found:
    """Equal models and equal segments on a board of three rounds."""
    order = np.random.default_rng(4).permutation(batteries).tolist()
    world = World(Design(tuple(order), **MANY, **BY_CHANCE, models=dict.fromkeys(EQUAL, TYPICAL) | JUDGED), seed)
    size = sum(batteries) / (3 - 2 * IN_COMMON)
    starts = [round(place * (1 - IN_COMMON) * size) for place in range(3)]
    surveys = world.rounds(np.random.default_rng([2, seed]), [slice(start, start + round(size)) for start in starts])
    tables = connection(world, surveys, CEILING_DRAWS)
    pairs = _compared(tables, set(EQUAL))
    between, spread = _segments(tables, JUDGED)
    return _each_and_any("two models", pairs["p"], pairs["p_adjusted"]) | _by_kind(
        {model: model for model in (*JUDGED, LEAVE_ONE_OUT)}, between, spread
    )


def _segments(tables: duckdb.DuckDBPyConnection, models: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`segment_gaps` and the components of consistency."""
    cells, noise = evidence_of(tables, {*models, LEAVE_ONE_OUT})
    return compute_segment_gaps(cells, OPTIONS, noise), estimate_consistency(cells, OPTIONS, noise)


def _by_kind(kinds: Mapping[str, str], between: pd.DataFrame, spread: pd.DataFrame) -> Found:
    """The p of each kind of models; `kinds` by model. Of gaps each segment's, and the smallest adjusted one of each attribute."""
    made = {}
    between = between[between["p"].notna()]
    for (kind, attribute), rows in between.groupby([between["model"].map(kinds), "attribute"], observed=True):
        made[f"gap of {attribute}, {kind}"] = _values(rows["p"])
        made[f"gap of {attribute}, {kind}, any"] = _values(rows.groupby("model", observed=True)["p_adjusted"].min())
    for kind, rows in spread.groupby(spread["model"].map(kinds)):
        made[f"consistency, {kind}"] = _values(rows["segment_p"])
    return made


def _each_and_any(test: str, p: pd.Series, adjusted: pd.Series) -> Found:
    return {test: _values(p), f"{test}, any": _smallest(adjusted)}


def _values(column: pd.Series) -> list[float]:
    return [float(value) for value in column if np.isfinite(value)]


def _smallest(column: pd.Series) -> list[float]:
    return [min(_values(column))]


PARTS = (of_equal_models, beside_others, of_another_style, of_readable_responses, against_the_marginal, of_equal_segments)


def found(name: str, seed: int) -> Found:
    """Of one survey of a round, or of three rounds together."""
    if name in TOGETHER:
        return of_several_rounds(TOGETHER[name], seed)
    made: Found = {}
    for part in PARTS:
        made |= part(ROUNDS[name], seed)
    return made


def run(name: str, sets: int, out: Path | None) -> list[Found]:
    """The sets of a round, those in the file included; new ones are added to it."""
    lines = out.read_text(encoding="utf-8").splitlines() if out is not None and out.exists() else []
    made = {line["set"]: line["p"] for line in map(json.loads, lines) if line["round"] == name}
    for at in range(sets):
        if at in made:
            continue
        made[at] = found(name, at)
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
    parser.add_argument("--round", action="append", choices=[*ROUNDS, *TOGETHER], help="all, where none is named")
    parser.add_argument("--out", type=Path, help="file with a line of JSON per set")
    asked = parser.parse_args()
    for name in asked.round or (*ROUNDS, *TOGETHER):
        table = rates(run(name, asked.sets, asked.out))
        print(f"{name} ({asked.sets} surveys)\n{table.round(3).to_string()}", flush=True)


if __name__ == "__main__":
    main()
