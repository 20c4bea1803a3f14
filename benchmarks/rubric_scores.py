"""Points of rubrics scored up to the board: seconds and memory at growing sizes, and the same bits from rows in another order.

A point is what the judges of one criterion agreed on: with the usual two judges 500,000 points are a million judgements. Each blueprint has 15
prompts of 5 criteria, one of them in an alternative path; 20 models, two temperatures; a third of the prompts has an ideal answer. Prints a
line per size with the seconds of coverage, similarity (vectors of 384 numbers), scores and the overall board with its intervals, and the peak
memory of a process that does all of it. Run: `python benchmarks/rubric_scores.py [POINTS]`.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.rubric.aggregate import scores
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.coverage import coverage
from dtef_pipeline.rubric.levels import CRITERION_KEYS, RESPONSE_KEYS
from dtef_pipeline.rubric.similarity import similarities

PROMPTS_EACH, CRITERIA_EACH, MODELS, TEMPERATURES, DIMENSIONS = 15, 5, 20, (0.0, 0.7), 384
POINTS_EACH = PROMPTS_EACH * CRITERIA_EACH * MODELS * len(TEMPERATURES)


class Tables(NamedTuple):
    """What scores are made of."""

    responses: pd.DataFrame
    prompts: pd.DataFrame
    points: pd.DataFrame
    vectors: pd.DataFrame
    ideals: pd.DataFrame


def made(n_points: int, seed: int = 1) -> Tables:
    """Tables of so many points, in whole blueprints; 2 % of the points are unscored."""
    rng = np.random.default_rng(seed)
    n_blueprints = max(round(n_points / POINTS_EACH), 1)
    grid = np.indices((n_blueprints, PROMPTS_EACH, MODELS, len(TEMPERATURES))).reshape(4, -1)
    responses = pd.DataFrame(
        {
            "blueprint": np.array([f"folder__blueprint-{at:04d}" for at in range(n_blueprints)], dtype=object)[grid[0]],
            "snapshot": "2026-01-31",
            "prompt": np.array([f"prompt-{at:03d}" for at in range(PROMPTS_EACH)], dtype=object)[grid[1]],
            "model": np.array([f"model-{at}" for at in range(MODELS)], dtype=object)[grid[2]],
            "temperature": np.array(TEMPERATURES)[grid[3]],
            "system_index": 0,
            "draw": 0,
            "reason": None,
        }
    )
    responses["model_variant"] = responses["model"] + "[temperature=" + responses["temperature"].astype(str) + "]"
    prompts = responses[["blueprint", "prompt"]].drop_duplicates(ignore_index=True)
    prompts = prompts.assign(weight=1.0, n_criteria=CRITERIA_EACH, has_ideal=np.arange(len(prompts)) % 3 == 0)
    points = responses.loc[responses.index.repeat(CRITERIA_EACH)].reset_index(drop=True)
    position = np.tile(np.arange(CRITERIA_EACH), len(responses))
    score = rng.integers(0, 9, size=len(points)) / 8
    points = points.assign(
        block=np.where(position == 3, "should_not", "should"),
        path=np.where(position == 4, 0.0, np.nan),
        position=position,
        weight=np.where(position == 0, 2.0, 1.0),
        score=np.where(rng.random(len(points)) < 0.02, np.nan, score),
        low=score,
        high=score,
        reason="unreadable",
    )
    with_ideal = prompts[prompts["has_ideal"]]
    answers = responses.merge(with_ideal[["blueprint", "prompt"]], on=["blueprint", "prompt"]).drop(columns="reason")
    vectors = answers.assign(vector=list(rng.normal(size=(len(answers), DIMENSIONS))))
    ideals = with_ideal[["blueprint", "prompt"]].assign(vector=list(rng.normal(size=(len(with_ideal), DIMENSIONS))))
    return Tables(responses, prompts, points, vectors, ideals)


def timed(work: Callable[[], pd.DataFrame]) -> tuple[float, pd.DataFrame]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def scored(tables: Tables) -> tuple[list[float], pd.DataFrame, pd.DataFrame]:
    """Seconds of each step, the scores, and the board."""
    covering, covered = timed(lambda: coverage(tables.points))
    comparing, similar = timed(lambda: similarities(tables.vectors, tables.ideals))
    raising, table = timed(lambda: scores(tables.responses, tables.prompts, covered, similar))
    ranking, ranked = timed(lambda: board(table, ["2026-01-31"], {}))
    return [covering, comparing, raising, ranking], table, ranked


def measured(n_points: int) -> None:
    """One line; in a process of its own, for its peak memory."""
    tables = made(n_points)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, _, _ = scored(tables)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    steps = ", ".join(
        f"{name} {spent:.2f}" for name, spent in zip(("coverage", "similarity", "scores", "board"), seconds, strict=True)
    )
    print(
        f"{len(tables.points):,} points of {len(tables.responses):,} responses: {sum(seconds):.2f} s ({steps}); "
        f"peak {peak:,.0f} MB, of which {before:,.0f} MB for the tables",
        flush=True,
    )


def same_in_another_order(n_points: int) -> bool:
    """Whether scores and board have the same bits when every table is shuffled."""
    tables, rng = made(n_points), np.random.default_rng(2)
    shuffled: Any = [table.iloc[rng.permutation(len(table))] for table in tables]
    (_, *first), (_, *second) = scored(tables), scored(Tables(*shuffled))
    return all(one.equals(other) for one, other in zip(first, second, strict=True))


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    assert {*RESPONSE_KEYS, *CRITERION_KEYS} <= set(made(1).points)
    for n_points in (most // 8, most // 4, most // 2, most):
        alone = multiprocessing.get_context("spawn").Process(target=measured, args=(n_points,))
        alone.start()
        alone.join()
    print(f"the same bits from {most // 8:,} points in another order: {same_in_another_order(most // 8)}")


if __name__ == "__main__":
    main()
