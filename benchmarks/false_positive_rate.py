"""How often the tests of `statistics` and `survey/boards` find what is not there, and what is: simulations where the truth is known.

Differences of two models share an effect per question over all its segments, as real ones do. A rate of false findings should be 5 % or less;
tests by single cells are shown beside. The test suite runs these small. Run: `python benchmarks/false_positive_rate.py [SETS]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.coverage import GD3, GD4, GD7
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.pairs import AMONG_MODELS, BETTER
from dtef_pipeline.statistics.cluster_robust import estimate_ratios
from dtef_pipeline.statistics.differences import MARGIN, compute_paired_statistics, verdicts
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards.conditions import compute_responsiveness
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions

Floats = npt.NDArray[np.float64]


class Design(NamedTuple):
    """Differences of scores: an effect per question (standard deviation 0.03) and one per cell (0.05), means 0 but for `shift`."""

    questions: int = 20
    segments: int = 50
    question_sd: float = 0.03
    cell_sd: float = 0.05
    shift: float = 0.0
    lopsided: bool = False
    """Questions stand in 1 to `segments` segments instead of in all."""
    skewed: bool = False
    """Question effects are exponential: often a little below their mean, rarely far above."""


def differences(design: Design, sets: int, generator: np.random.Generator) -> Floats:
    """Differences (questions, segments, sets), NaN where a question was not asked."""
    shape = (design.questions, 1, sets)
    effects = generator.exponential(size=shape) - 1 if design.skewed else generator.normal(size=shape)
    cells = generator.normal(scale=design.cell_sd, size=(design.questions, design.segments, sets))
    if design.lopsided:
        asked = generator.integers(1, design.segments + 1, size=shape)
        cells[np.broadcast_to(np.arange(design.segments)[None, :, None] >= asked, cells.shape)] = np.nan
    return design.shift + design.question_sd * effects + cells


def clustered_rate(design: Design, sets: int, seed: int) -> float:
    """Share of sets in which the test by whole questions finds a difference at 5 %."""
    found = differences(design, sets, np.random.default_rng(seed))
    return _rate(np.nansum(found, axis=1), np.isfinite(found).sum(axis=1).astype(np.float64))


def unclustered_rate(design: Design, sets: int, seed: int) -> float:
    """The same by single cells, as if fifty segments' answers to a question were fifty questions."""
    cells = differences(design, sets, np.random.default_rng(seed)).reshape(-1, sets)
    return _rate(np.nan_to_num(cells), np.isfinite(cells).astype(np.float64))


def _rate(sums: Floats, counts: Floats) -> float:
    return float(np.mean(estimate_ratios(sums, counts).p() < SIGNIFICANCE))


def made_cells(shifts: Mapping[str, float], sizes: Sequence[int], sets: int, seed: int) -> pd.DataFrame:
    """Cells of models that score .7 and their shift on average, every set under a condition of its own, all parsed.

    `sizes`: how many questions each cluster has. Scores share an effect per cluster, and have one per question, each as large for any model.
    """
    generator = np.random.default_rng(seed)
    cluster_of = np.repeat(np.arange(len(sizes)), sizes)
    shape = (sets, len(cluster_of), len(shifts))
    effects = 0.03 * generator.normal(size=(sets, len(sizes), len(shifts)))[:, cluster_of] + 0.03 * generator.normal(size=shape)
    places = dict(zip(("condition", "question_id", "model"), np.indices(shape).reshape(3, -1), strict=True))
    frame = pd.DataFrame({name: pd.Categorical(np.char.mod("%04d", place)) for name, place in places.items()})
    model = pd.Categorical.from_codes(places["model"], list(shifts))
    cluster = pd.Categorical.from_codes(cluster_of[places["question_id"]], [f"c{at}" for at in range(len(sizes))])
    score = 0.7 + effects.ravel() + np.array([*shifts.values()])[places["model"]]
    known = {"round": "S1", "segment": "country:kenya", "context_level": "0", "n_ok": 1, "n_answered": 1}
    frame["same_item"] = frame["question_id"]
    return frame.assign(**known, model=model, model_variant=model, cluster=cluster, score=score, parsed_score=score)


def any_found(shifts: Mapping[str, float], sets: int, seed: int, sizes: Sequence[int]) -> float:
    """Share of sets in which `comparisons` finds any two equal language models different; arguments as of `made_cells`."""
    table = compare_all_pairs(made_cells(shifts, sizes, sets, seed), SurveyBoardOptions(seed=seed), has_parsed=False)
    false = table["model"].map(shifts).astype(float) == table["other_model"].map(shifts).astype(float)
    false &= (table["verdict"] == BETTER) & (table["adjusted_over"] == AMONG_MODELS)
    return float(false.groupby(table["condition"]).any().mean())


def equivalence_rate(difference: float, sets: int, seed: int, *, question_sd: float = 0.01) -> float:
    """Share of sets called equivalent within 0.01, of a true `difference`: at 0.01 each is a mistake."""
    design = Design(question_sd=question_sd, cell_sd=0.02, segments=10, shift=difference)
    found = differences(design, sets, np.random.default_rng(seed))
    table = compute_paired_statistics(
        found.sum(axis=1),
        np.full((design.questions, sets), float(design.segments)),
    ).assign(p_adjusted=1.0)
    return float(np.mean(verdicts(table, ("better", "worse", "equivalent", "undecided"), MARGIN) == "equivalent"))


def responsive_cells(models: int, gain: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells of models whose score rises by `gain` from no context to 10 questions, but for a question effect; and what was shown."""
    generator = np.random.default_rng(seed)
    questions, segments = 12, 4
    question, segment, model, level = (
        part.ravel()
        for part in np.meshgrid(np.arange(questions), np.arange(segments), np.arange(models), [0, 10], indexing="ij")
    )
    reaction = 0.03 * generator.normal(size=(questions, models))[question, model] + gain
    score = 0.7 + reaction * (level > 0) + 0.03 * generator.normal(size=question.size)
    names = {"question_id": question, "segment": segment, "model": model, "context_level": level}
    cells = pd.DataFrame({name: pd.Categorical(np.char.mod("%d", values)) for name, values in names.items()})
    cells = cells.assign(round="S1", condition="c", model_variant=cells["model"], score=score, parsed_score=score, n_ok=1)
    cells = cells.assign(n_answered=1, **dict.fromkeys(("same_item", "cluster"), cells["question_id"]))
    shown = cells[["round", "segment", "question_id", "context_level", "condition"]].astype(str).drop_duplicates()
    return cells, shown.assign(context_included=shown["context_level"].astype(float))


def responsive_rate(gain: float, models: int, seed: int) -> float:
    """Share of models, each by itself, that are said to respond to context at 5 %."""
    cells, shown = responsive_cells(models, gain, seed)
    return float(np.mean(compute_responsiveness(cells, shown, SurveyBoardOptions(seed=seed))["p"] < SIGNIFICANCE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=10_000)
    sets = parser.parse_args().sets
    print(f"{sets:,} sets each; two standard errors of a rate of 5 %: {2 * np.sqrt(0.05 * 0.95 / sets):.2%}")
    designs = {
        "20 questions x 50 segments": Design(),
        "8 questions x 50 segments": Design(questions=8),
        "60 questions x 1 segment": Design(questions=60, segments=1),
        "20 questions in 1 to 50 segments": Design(lopsided=True),
        "20 questions, skewed effects": Design(skewed=True),
        "8 questions, skewed effects": Design(questions=8, skewed=True),
    }
    for name, design in designs.items():
        few = max(sets // 10, 200)
        print(
            f"no difference, {name}: whole questions {clustered_rate(design, sets, 1):.2%}, cells {unclustered_rate(design, few, 1):.1%}"
        )
    for shift in (0.01, 0.02, 0.03):
        print(
            f"a difference of {shift}, 20 questions x 50 segments: found in {clustered_rate(Design(shift=shift), sets, 2):.1%}"
        )
    shifts = dict.fromkeys((f"m{place}" for place in range(8)), 0.0) | {
        "good": 0.1,
        LEAVE_ONE_OUT: -0.2,
        POPULATION_MARGINAL: -0.1,
    }
    for batteries in (GD3, GD4, GD7):
        print(
            f"any false finding of `comparisons` among 8 equal models, a good one and two baselines beside, batteries of {batteries}: "
            f"{any_found(shifts, sets // 10, 3, batteries):.1%}",
            flush=True,
        )
    for difference in (MARGIN, 0.0):
        print(f"equivalent within {MARGIN}, true difference {difference}: {equivalence_rate(difference, sets, 4):.2%}")
    for gain in (0.0, 0.03):
        print(f"responds to context, true gain {gain}: {responsive_rate(gain, sets, 5):.2%}")


if __name__ == "__main__":
    main()
