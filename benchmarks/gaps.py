"""How often the intervals of `segment_gaps` hold the truth, and how often a segment that is predicted worse is found.

In surveys with the batteries of real rounds and the same people throughout, by the software's own function. How often segments are told apart
that differ in size alone: `benchmarks/type_one_error.py`.

- Worlds whose segments truly differ (`tests/made/worlds.py`) are surveyed again and again. The truth of a segment is how far its mean score by
  the true answers lies from that of the other segments of its attribute, on average over the surveys of its world.
- Segments that differ in size alone, but that in each attribute one is predicted worse by WORSE_BY.

Run: `python benchmarks/gaps.py [SETS] [--round NAME]`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.coverage import GD4
from benchmarks.type_one_error import BY_CHANCE, CEILING_DRAWS, JUDGED, OPTIONS, evidence_of
from dtef_pipeline.survey.boards.segment_gaps import compute_segment_gaps
from tests.made.world_tables import connection, measured
from tests.made.worlds import Design, Floats, Survey, World

ROUNDS = {"GD3": (13, 7, 5, 5, 4, 2, *(1,) * 7), "GD4": GD4, "GD7": (14, 7, 5, 5, 2, 2, *(1,) * 19)}
SIZES = tuple(np.geomspace(30, 400, 20).astype(int).tolist())
"""Respondents of 20 countries."""
WORSE_BY = 0.05
WORSE = ("country:country9", "country:country3", "age:age2", "gender:gender0")
WORLDS = 3


def design_of(batteries: tuple[int, ...]) -> Design:
    return Design(batteries, countries=SIZES, ages=6, models=JUDGED)


def judged(world: World, survey: Survey) -> pd.DataFrame:
    """The rows of the models of one survey."""
    tables = connection(world, survey, CEILING_DRAWS)
    cells, noise = evidence_of(tables, set(JUDGED))
    return compute_segment_gaps(cells, OPTIONS, noise)


def true_deviations(world: World, survey: Survey) -> pd.DataFrame:
    """By model and segment how far its mean score by the true answers lies from the mean of the attribute's other segments."""
    attributes, made = np.array(world.attributes), []
    for model, predicted in survey.predicted.items():
        means = _js(predicted[0], survey.truth, survey).mean(axis=0)
        for attribute in dict.fromkeys(attributes):
            own = np.flatnonzero(attributes == attribute)
            off = (means[own] - means[own].mean()) * len(own) / (len(own) - 1)
            made += [(model, world.names[at], value) for at, value in zip(own, off, strict=True)]
    return pd.DataFrame(made, columns=["model", "segment", "true"])


def _js(predicted: Floats, answers: Floats, survey: Survey) -> Floats:
    """(questions, segments) similarity; both (questions, segments, options)."""
    questions, segments, options = answers.shape
    many = np.ones(questions * segments, dtype=np.int64)
    flat = (values.reshape(-1, options) for values in (predicted, answers))
    return measured(*flat, many, np.repeat(survey.k, segments))["js"].reshape(questions, segments)


def coverage(batteries: tuple[int, ...], sets: int) -> pd.DataFrame:
    """By attribute and model: share of intervals that hold the truth, their width, distance of estimates from the truth and of it from 0."""
    found = []
    for at in range(WORLDS):
        world = World(design_of(batteries), 100 + at)
        surveys = [world.survey(np.random.default_rng([3, at, seed])) for seed in range(sets)]
        true = pd.concat([true_deviations(world, survey) for survey in surveys]).groupby(["model", "segment"])["true"].mean()
        rows = pd.concat([judged(world, survey) for survey in surveys]).astype({"model": str, "segment": str})
        found.append(rows.join(true, on=["model", "segment"]))
    rows = pd.concat(found)
    rows = rows.assign(
        held=(rows["low"] <= rows["true"]) & (rows["true"] <= rows["high"]),
        off=(rows["deviation"] - rows["true"]).abs(),
        width=rows["high"] - rows["low"],
        spread=rows["true"].abs(),
    )
    return rows.groupby(["attribute", "model"], observed=True)[["held", "width", "off", "spread"]].mean()


def power(batteries: tuple[int, ...], sets: int) -> pd.DataFrame:
    """By attribute and model: the mean deviation of the segments predicted worse, and the share of them that are found to be."""
    found = []
    for seed in range(sets):
        world = World(replace(design_of(batteries), **BY_CHANCE), seed)
        survey = world.survey(np.random.default_rng([4, seed]))
        worse = [WORSE[seed % 2], *WORSE[2:]]
        for at, name in enumerate(worse):
            predict_worse(survey, world.names.index(name), WORSE_BY, np.random.default_rng([5, seed, at]))
        rows = judged(world, survey)
        found.append(rows[rows["segment"].isin(worse)])
    rows = pd.concat(found)
    rows = rows.assign(found=rows["verdict"] == "worse")
    return rows.groupby(["attribute", "model"], observed=True)[["deviation", "found"]].mean()


def predict_worse(survey: Survey, segment: int, by: float, rng: np.random.Generator) -> None:
    """Add errors to each model's predictions of a segment, until its mean score is lower by as much. Batteries share .6 of their variance."""
    for predicted in survey.predicted.values():
        options = predicted.shape[-1]
        alike = rng.normal(size=(survey.battery.max() + 1, options))[survey.battery]
        off = np.sqrt(0.6) * alike + np.sqrt(0.4) * rng.normal(size=alike.shape)
        before, answers = predicted[:, :, segment].copy(), survey.observed[:, [segment]]

        def shifted(size: float, before: Floats = before, off: Floats = off) -> Floats:
            raised = before * np.exp(size * off)
            return raised / raised.sum(axis=-1, keepdims=True)

        wanted = _js(before[0][:, None], answers, survey).mean() - by
        low, high = 0.0, 8.0
        for _ in range(30):
            middle = (low + high) / 2
            is_enough = _js(shifted(middle)[0][:, None], answers, survey).mean() <= wanted
            low, high = (low, middle) if is_enough else (middle, high)
        predicted[:, :, segment] = shifted(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=40)
    parser.add_argument("--round", action="append", choices=list(ROUNDS), help="all, where none is named")
    asked = parser.parse_args()
    for name in asked.round or ROUNDS:
        print(f"{name}, coverage\n{coverage(ROUNDS[name], asked.sets).round(4).to_string()}", flush=True)
        print(f"{name}, power\n{power(ROUNDS[name], asked.sets).round(4).to_string()}", flush=True)


if __name__ == "__main__":
    main()
