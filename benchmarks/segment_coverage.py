"""How often the 95 % intervals of `segment_results` and of comparisons of conditions hold the truth, through the software's own functions.

Surveys are those of `benchmarks/coverage.py`: all people answer all questions, and each stands in a country, an age group and a gender.

- Segments: the row of each segment of up to MOST people, for models and marginals. The truth is the expectation over other people and other
  questions, for the segment as it is.
- Conditions: one model asked in conditions of which the second is as good as the first, the third is much better, and the fourth is
  somewhat better and errs as the first does; on all segments, and on a country of 30 people alone.

Run: `python benchmarks/segment_coverage.py [SETS] [--regime NAME] [--out FILE]`, as `benchmarks/coverage.py`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage import GD3, GD4, MANY, resumed
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.conditions import compare_conditions
from dtef_pipeline.survey.boards.segment_results import compute_segment_results
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.observations import MIN_N
from dtef_pipeline.survey.scoring.metrics import js
from tests.made.world_tables import Setting, connection, marginals, scores, survey_responses
from tests.made.worlds import SINGLE, Design, Floats, Survey, World

REGIMES = {
    "20 questions": Design(SINGLE[:20]),
    "40 questions": Design(SINGLE),
    "100 questions": Design((1,) * 100),
    "GD3: 43 questions in 13 batteries": Design(GD3, **MANY),
    "GD4: 116 questions in 43 batteries": Design(GD4, **MANY),
}
MOST = 60
"""Respondents of the largest country that is judged; ages and genders are judged whatever their size."""
MODELS = ("m0", "good", POPULATION_MARGINAL, LEAVE_ONE_OUT)
CONDITIONS = {
    "m0": BlueprintOptions().condition,
    "m1": BlueprintOptions(option_order="reversed").condition,
    "good": BlueprintOptions(option_order="rotated-1").condition,
    "mixed": BlueprintOptions(option_order="rotated-2").condition,
}
"""The drawn models that stand for one model in four conditions."""
_WORLD, _TRUTH, _SURVEYS = 1, 2_000_000, 600
_NO_CEILINGS, _OF_30 = 0, 30
Found = dict[str, list[float]]


def with_mixed(survey: Survey) -> Survey:
    """The survey with a model that takes the middle between two others, and so is better than each and errs as they do."""
    halves = np.sqrt(survey.predicted["m0"] * survey.predicted["m1"])
    predicted = {**survey.predicted, "mixed": halves / halves.sum(axis=-1, keepdims=True)}
    read, asked = ({**given, "mixed": given["m0"]} for given in (survey.read, survey.asked))
    return replace(survey, predicted=predicted, read=read, asked=asked)


def truths(design: Design, surveys: int = _SURVEYS) -> dict[str, float]:
    """Expected score of each `segment model`, and expected effect of each condition."""
    world, rng = World(design, _WORLD), np.random.default_rng([_TRUTH, _WORLD])
    mean = pd.DataFrame([_means(world, with_mixed(world.survey(rng))) for _ in range(surveys)]).mean()
    found = {str(name): float(value) for name, value in mean.items()}
    country = _country_of_30(world)
    for name in tuple(CONDITIONS)[1:]:
        found[f"effect of {name}"] = found[f"all {name}"] - found["all m0"]
        found[f"effect of {name} on {_OF_30} people"] = found[f"{country} {name}"] - found[f"{country} m0"]
    return found


def _means(world: World, survey: Survey) -> dict[str, float]:
    """Of one survey: mean score of each segment, and of all together."""
    usable = np.flatnonzero(survey.n >= MIN_N)
    population, others = marginals(world, survey)
    observed = survey.observed[:, usable]
    given = {name: predicted[0][:, usable] for name, predicted in survey.predicted.items()}
    given |= {POPULATION_MARGINAL: np.broadcast_to(population[:, None], observed.shape), LEAVE_ONE_OUT: others[:, usable]}
    found = {}
    for model, predicted in given.items():
        of_questions = _similarity(predicted, observed)
        found |= {f"{world.names[at]} {model}": of_questions[:, place].mean() for place, at in enumerate(usable)}
        found[f"all {model}"] = of_questions.mean()
    return found


def _similarity(predicted: Floats, observed: Floats) -> Floats:
    flat = (predicted.reshape(-1, observed.shape[-1]), observed.reshape(-1, observed.shape[-1]))
    return np.asarray(js(*flat)).reshape(observed.shape[:2])


def _country_of_30(world: World) -> str:
    return world.names[world.design.countries.index(_OF_30)]


def shown(design: Design, at: int) -> Found:
    """[value, low, high] of every row and effect of one survey."""
    world = World(design, _WORLD)
    survey = with_mixed(world.survey(np.random.default_rng([_WORLD, at])))
    return of_segments(world, survey) | of_conditions(world, survey)


def of_segments(world: World, survey: Survey) -> Found:
    rows = compute_segment_results(scores(world, survey), survey_responses(world, survey)).to_pandas()
    rows = rows[(rows["targets"] == "clean") & rows["model"].isin(MODELS)]
    ends = rows[["score", "score_low", "score_high"]].to_numpy(dtype=np.float64).tolist()
    return dict(zip(rows["segment"] + " " + rows["model"], ends, strict=True))


def of_conditions(world: World, survey: Survey) -> Found:
    ways = {name: Setting("m", condition=condition) for name, condition in CONDITIONS.items()}
    tables = connection(world, survey, _NO_CEILINGS, ways)
    found = {}
    for suffix, segments in (("", ()), (f" on {_OF_30} people", (_country_of_30(world),))):
        options = SurveyBoardOptions(snapshot="base", segments=segments)
        rows = compare_conditions(tables, options).set_index("condition")
        for name, condition in [*CONDITIONS.items()][1:]:
            found[f"effect of {name}{suffix}"] = [
                float(rows.loc[condition, column]) for column in ("difference", "low", "high")
            ]
    return found


def run(name: str, sets: int, out: Path | None) -> list[dict[str, Any]]:
    """The sets of a regime, those in the file included; new ones are added to it."""
    design = REGIMES[name]
    return resumed(name, sets, out, lambda at: truths(design) if at is None else shown(design, at))


def covered(design: Design, made: list[dict[str, Any]]) -> pd.DataFrame:
    """By kind of number: `shown`, `covered` and `above` as in `benchmarks/coverage.py`, the mean `width`, and the standard error `se` of the
    coverage, surveys being independent."""
    truth = next(line["numbers"] for line in made if line["set"] == "truth")
    kinds = _kinds(design)
    rows = [
        (kinds(name), line["set"], low, low <= truth[name] <= high, low > truth[name], high - low)
        for line in made
        if line["set"] != "truth"
        for name, (_, low, high) in line["numbers"].items()
        if kinds(name)
    ]
    frame = pd.DataFrame(rows, columns=["kind", "set", "low", "covered", "above", "width"])
    there = frame[frame["low"].notna()]
    found = there.groupby("kind", sort=False)[["covered", "above", "width"]].mean()
    of_sets = there.groupby(["kind", "set"])["covered"].mean().groupby("kind")
    return found.assign(
        shown=frame.groupby("kind")["low"].apply(lambda low: low.notna().mean()), se=of_sets.std() / np.sqrt(of_sets.size())
    )


def _kinds(design: Design) -> Any:
    """What each number is counted with: None, with nothing."""
    large = {name for name, n in zip(World(design, _WORLD).names, design.countries, strict=False) if n > MOST}

    def kind(name: str) -> str | None:
        segment, _, model = name.partition(" ")
        if ":" not in segment:
            return name
        return None if segment in large else f"{segment.partition(':')[0]}: {model}"

    return kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=200)
    parser.add_argument("--regime", action="append", choices=list(REGIMES), help="all, where none is named")
    parser.add_argument("--out", type=Path, help="file with a line of JSON per set")
    asked = parser.parse_args()
    for name in asked.regime or REGIMES:
        table = covered(REGIMES[name], run(name, asked.sets, asked.out))
        print(f"{name} ({asked.sets} surveys)\n{table.round(3).to_string()}\n", flush=True)


if __name__ == "__main__":
    main()
