"""How often the published 95 % intervals hold the truth, through `board()` and `comparisons` themselves.

Each set is a survey of a world whose truth is known (`tests/made/worlds.py`): the same people answer all questions and stand in several
segments, questions come in batteries, marginals and ceilings are made as the pipeline makes them. The truth of a number is its expectation
over other people and other questions, for the segments as they are; skill is judged by the true distributions.

Run: `python benchmarks/coverage.py [SETS] [--regime NAME] [--out FILE]`. With a file it goes on where it stopped, and several processes, each
with regimes of its own, can share it; without a regime all are run, one after the other. `OPENBLAS_NUM_THREADS=1` is as fast.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.observations import MIN_N
from dtef_pipeline.survey.scoring.metrics import js
from tests.made.world_tables import connection, marginals
from tests.made.worlds import COUNTRIES, SINGLE, Design, Floats, Survey, World

GD3 = (13, 7, 5, 5, 4, 2, *(1,) * 7)
GD4 = (13, 12, 10, 8, 7, 7, 6, 5, 5, 5, *(2,) * 5, *(1,) * 28)
GD5 = (6, 5, 5, 3, 3, 3, 2, 2, 2, *(1,) * 15)
GD6 = (15, 9, 7, 7, 6, 5, 5, 2, 2, *(1,) * 33)
GD7 = (14, 7, 5, 5, 2, 2, *(1,) * 19)
LARGE = (600, 700, 900, 1200, 1500)


@dataclass(frozen=True)
class Regime:
    """`row`: the segment whose row of the board by segment is judged; None: the overall board. `sample_segments`: of each question, so many
    are asked, drawn anew for each survey; None: all."""

    design: Design
    row: str | None = None
    sample_segments: int | None = None


MANY: dict[str, Any] = {"countries": COUNTRIES, "ages": 6}
"""The segments of a public round: 35, of 955 people; elsewhere 12, of 300."""
REGIMES = {
    "5 questions": Regime(Design(SINGLE[:5])),
    "8 questions": Regime(Design(SINGLE[:8])),
    "20 questions": Regime(Design(SINGLE[:20])),
    "40 questions": Regime(Design()),
    "100 questions": Regime(Design((1,) * 100)),
    "100 questions, other people for each (control)": Regime(Design((1,) * 100, other_people=True)),
    "42 questions in 7 batteries": Regime(Design((6,) * 7)),
    "GD3: 43 questions in 13 batteries": Regime(Design(GD3, **MANY)),
    "GD4: 116 questions in 43 batteries": Regime(Design(GD4, **MANY)),
    "GD5: 46 questions in 24 batteries": Regime(Design(GD5, **MANY)),
    "GD6: 91 questions in 42 batteries": Regime(Design(GD6, **MANY)),
    "GD7: 54 questions in 25 batteries": Regime(Design(GD7, **MANY)),
    "GD3: 2 segments of each question": Regime(Design(GD3, **MANY), sample_segments=2),
    "GD3: 4 segments of each question": Regime(Design(GD3, **MANY), sample_segments=4),
    "GD4: 2 segments of each question": Regime(Design(GD4, **MANY), sample_segments=2),
    "GD4: 4 segments of each question": Regime(Design(GD4, **MANY), sample_segments=4),
    "54 questions, 27 countries of 10-185": Regime(Design((1,) * 54, **MANY)),
    "one country of 30 among 10, 54 questions": Regime(Design((1,) * 54, countries=(30,) * 10), row="country:country3"),
    "20 questions, half of the cells asked": Regime(Design(SINGLE[:20], asked=0.5)),
    "20 questions, 3 draws, 8 % unparsed": Regime(Design(SINGLE[:20], draws=3, unread=0.08)),
    "20 questions, skewed errors (t2)": Regime(Design(SINGLE[:20], skewed=2)),
    "10 questions, n 600-1500": Regime(Design(SINGLE[:10], countries=LARGE)),
    "20 yes/no questions, rare options": Regime(Design(SINGLE[:20], options=(2,), rare=True)),
    "40 questions, strong common factor": Regime(Design(common=0.62, country=0.7)),
    "40 questions, don't know": Regime(Design(dont_know=0.12)),
}
MODELS = ("m0", "m1", "good", POPULATION_MARGINAL, LEAVE_ONE_OUT)
NUMBERS = ("score", "skill")
PAIRS = {
    "m0 - m1": ("m0", "m1"),
    "good - m0": ("good", "m0"),
    "good - others": ("good", LEAVE_ONE_OUT),
    "good - population": ("good", POPULATION_MARGINAL),
}
_WORLD, _TRUTH, _SURVEYS = 1, 1_000_000, 600
_CEILING_DRAWS = 60
"""Enough for the mean of a thousand pairs; fewer than published, so nothing is made easier."""
Numbers = dict[str, float]


def means_of(world: World, survey: Survey, row: str | None) -> Numbers:
    """What the expectations are made of: means over the cells of one survey, by the true distributions where these are known."""
    chosen = np.flatnonzero((survey.n >= MIN_N) & (np.array([row in (None, name) for name in world.names])))
    population, others = marginals(world, survey)
    truth, observed = survey.truth[:, chosen], survey.observed[:, chosen]
    shape = observed.shape
    given = {name: predicted[:, :, chosen] for name, predicted in survey.predicted.items()}
    given |= {POPULATION_MARGINAL: np.broadcast_to(population[:, None], shape)[None], LEAVE_ONE_OUT: others[:, chosen][None]}
    found = {"ceiling": _similarity(truth, observed).mean()}
    for name, draws in given.items():
        scores = np.stack([_similarity(draw, observed) for draw in draws])
        read = survey.read[name][:, :, chosen] if name in survey.read else np.ones(scores.shape, dtype=bool)
        found[f"{name} score"] = np.where(read, scores, 0).mean()
    return {name: float(value) for name, value in found.items()}


def _similarity(predicted: Floats, observed: Floats) -> Floats:
    flat = (predicted.reshape(-1, observed.shape[-1]), observed.reshape(-1, observed.shape[-1]))
    return np.asarray(js(*flat)).reshape(observed.shape[:2])


def truths(regime: Regime, surveys: int = _SURVEYS) -> Numbers:
    """What each number is about: from the means of many surveys with other people and other questions."""
    world = World(regime.design, _WORLD)
    rng = np.random.default_rng([_TRUTH, _WORLD])
    mean = pd.DataFrame([means_of(world, world.survey(rng), regime.row) for _ in range(surveys)]).mean()
    found: Numbers = {}
    for model in MODELS:
        score, others = mean[f"{model} score"], mean[f"{LEAVE_ONE_OUT} score"]
        found[f"{model} score"] = score
        found[f"{model} skill"] = (score - others) / (mean["ceiling"] - others)
    found |= {name: mean[f"{first} score"] - mean[f"{second} score"] for name, (first, second) in PAIRS.items()}
    return found | {"ceiling": mean["ceiling"]}


def shown(regime: Regime, at: int) -> dict[str, list[float]]:
    """[value, low, high] of every number that is published of one survey; equal comparisons: [difference, low, high, p]."""
    world = World(regime.design, _WORLD)
    tables = connection(world, world.survey(np.random.default_rng([_WORLD, at])), _CEILING_DRAWS)
    options = SurveyBoardOptions(sample_segments=regime.sample_segments)
    evidence = load_evidence(tables, options)
    rows = board(tables, "segment" if regime.row else "overall", options, evidence)
    if regime.row:
        rows = rows[rows["segment"] == regime.row]
    rows = rows.set_index("model")
    found = {f"{model} {name}": _ends(rows.loc[model], name) for model in MODELS for name in NUMBERS}
    found["ceiling"] = [float(rows.loc["m0", "ceiling"])]
    if regime.row is None:
        compared = compare_all_pairs(evidence.cells, options, None if evidence.noise is None else evidence.noise.score)
        found |= {name: _difference(compared, *pair) for name, pair in PAIRS.items()}
    return found


def _ends(row: pd.Series, name: str) -> list[float]:
    return [float(row[column]) for column in (name, f"{name}_low", f"{name}_high")]


def _difference(compared: pd.DataFrame, first: str, second: str) -> list[float]:
    """Of the first less the second, whichever is better."""
    names = set(zip(compared["model"], compared["other_model"], strict=True))
    turned = (first, second) not in names
    better, other = (second, first) if turned else (first, second)
    row = compared[(compared["model"] == better) & (compared["other_model"] == other)].iloc[0]
    low, high = (-row["high"], -row["low"]) if turned else (row["low"], row["high"])
    return [float(value) for value in (-row["difference"] if turned else row["difference"], low, high, row["p"])]


def run(name: str, sets: int, out: Path | None) -> list[dict[str, Any]]:
    """The sets of a regime, those in the file included; new ones are added to it."""
    regime = REGIMES[name]
    return resumed(name, sets, out, lambda at: truths(regime) if at is None else shown(regime, at))


def resumed(name: str, sets: int, out: Path | None, numbers: Callable[[int | None], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The `numbers` of each set, and of the truth (None), those in the file included; new ones are added to it."""
    made = {line["set"]: line for line in _lines(out) if line["regime"] == name}
    for at in (None, *range(sets)):
        key = "truth" if at is None else at
        if key in made:
            continue
        made[key] = {"regime": name, "set": key, "numbers": numbers(at)}
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made[key]) + "\n")
    return list(made.values())


def _lines(out: Path | None) -> Iterator[dict[str, Any]]:
    if out is not None and out.exists():
        yield from map(json.loads, out.read_text(encoding="utf-8").splitlines())


def covered(made: list[dict[str, Any]]) -> pd.DataFrame:
    """By number: `shown`, the share of the sets with an interval; of these `covered`, the share that hold the truth, `above`, the share that lie
    above it, and the median `width`; `off`, mean of value - truth in standard deviations."""
    truth = next(line["numbers"] for line in made if line["set"] == "truth")
    sets = [line["numbers"] for line in made if line["set"] != "truth"]
    rows = {}
    for name in (name for name, value in sets[0].items() if len(value) >= 3):
        value, low, high = np.array([numbers[name][:3] for numbers in sets], dtype=np.float64).T
        there = np.isfinite(low)
        held = (low <= truth[name]) & (truth[name] <= high)
        with np.errstate(invalid="ignore"):
            width = high - low
        rows[name] = {
            "shown": there.mean(),
            "covered": held[there].mean() if there.any() else np.nan,
            "above": (low > truth[name])[there].mean() if there.any() else np.nan,
            "width": np.nanmedian(width) if there.any() else np.nan,
            "off": np.nanmean(value - truth[name]) / max(np.nanstd(value), 1e-12),
        }
    return pd.DataFrame(rows).T


def line_of(name: str, made: list[dict[str, Any]]) -> str:
    """A row of the table: coverage (median width) of the typical model, then of the good one; the share of the sets where not all have one."""
    table = covered(made)
    shown_numbers = [f"{model} {number}" for model in ("m0", "good") for number in NUMBERS]
    shown_numbers += [f"{POPULATION_MARGINAL} score", f"{LEAVE_ONE_OUT} score", *PAIRS]
    cells = [_cell(table.loc[number]) if number in table.index else "" for number in shown_numbers]
    return f"| {name} ({len(made) - 1}) | " + " | ".join(cells) + " |"


def _cell(row: pd.Series) -> str:
    if not row["shown"]:
        return "not shown"
    part = "" if row["shown"] > 0.995 else f" in {row['shown']:.2f}"
    return f"{row['covered']:.3f}".removeprefix("0") + f" ({row['width']:.3g}){part}"


HEAD = [*(f"{model}: {name}" for model in ("m0", "good") for name in NUMBERS), "population: score", "others: score", *PAIRS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=300)
    parser.add_argument("--regime", action="append", choices=list(REGIMES), help="all, where none is named")
    parser.add_argument("--out", type=Path, help="file with a line of JSON per set")
    asked = parser.parse_args()
    print("| regime (sets) | " + " | ".join(HEAD) + " |\n|" + "---|" * (len(HEAD) + 1))
    for name in asked.regime or REGIMES:
        print(line_of(name, run(name, asked.sets, asked.out)), flush=True)


if __name__ == "__main__":
    main()
