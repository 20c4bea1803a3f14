"""Champions: of each dimension that analysts grade, the model with the best mean over blueprints.

Source: weval methodology, 5.4. Grades of the latest run of each blueprint count, and each blueprint once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.levels import grouped, in_order, weighted_mean, with_key_types
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.text.counted import counted

MIN_GRADED = 5
"""Blueprints that a model must be graded in to become a champion."""
LATEST_GRADES, LEAST_STEADY, STEADY_GRADE = 5, 0.8, 5.0
"""With the switch for consistency: of this many latest blueprints this share must have at least this grade."""


def champions(
    grades: pd.DataFrame, order: Sequence[str], *, consistency: bool = False, min_graded: int = MIN_GRADED
) -> pd.DataFrame:
    """One row per dimension and model that is graded in it, best first.

    `grades`: blueprint, snapshot, analyst, model, `dimension` and `grade` (1-10, higher is better, null: not graded); `order`: snapshots from
    the oldest on. Of a model graded in several runs of a blueprint the latest counts; several analysts are averaged.

    Columns: `dimension`, `rank` (equal means share the best of their places; null: not eligible), `model`, `mean` (1-10), `n_blueprints`,
    `n_steady` of `n_latest` (how many of the latest 5 blueprints have a grade of 5 or more), `champion`, `reason` (why it is not eligible).
    With `consistency` a champion needs such a grade in 80 % of them. Raises ConfigError for a missing column or a grade outside 1-10.
    """
    keys = ("blueprint", "snapshot", "analyst", "model", "dimension")
    rows = with_key_types(grades, "grades", (*keys, "grade"))
    rows = in_order(rows.astype({"analyst": "str", "dimension": "str"}), keys, "grades")
    _check_grades(rows)
    counted_grades = _latest(rows[rows["grade"].notna()].reset_index(drop=True), order)
    found = grouped(counted_grades, ("dimension", "model"))
    grade = counted_grades["grade"].to_numpy(dtype=np.float64)
    recent = counted_grades["age"].to_numpy() < LATEST_GRADES
    size = len(found)
    table = found.keys.assign(
        mean=weighted_mean(found.code, grade, np.ones(len(grade)), size),
        n_blueprints=np.bincount(found.code, minlength=size),
        n_steady=np.bincount(found.code[recent & (grade >= STEADY_GRADE)], minlength=size),
        n_latest=np.bincount(found.code[recent], minlength=size),
    )
    table["reason"] = _why_not(table, consistency, min_graded)
    eligible = table["mean"].where(table["reason"] == "")
    rank = pd.Series(ranks(eligible, grouped(table, ("dimension",)).code), table.index)
    table = table.assign(rank=rank.astype("Int64"), champion=rank == 1)
    ordered = table.sort_values(["dimension", "rank", "mean", "model"], ascending=[True, True, False, True], ignore_index=True)
    return ordered[["dimension", "rank", "model", "mean", "n_blueprints", "n_steady", "n_latest", "champion", "reason"]]


def _latest(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """One row per dimension, model and blueprint: the mean `grade` of its latest run, and its `age` among the model's, 0 is the latest."""
    place = {label: at for at, label in enumerate(among(order, dict.fromkeys(rows["snapshot"].tolist())))}
    keys = ["dimension", "model", "blueprint"]
    runs = grouped(rows, (*keys, "snapshot"))
    means = weighted_mean(runs.code, rows["grade"].to_numpy(dtype=np.float64), np.ones(len(rows)), len(runs))
    made = runs.keys.assign(grade=means, place=runs.keys["snapshot"].map(place).astype("int64"))
    latest = made.sort_values([*keys, "place"]).drop_duplicates(keys, keep="last")
    newest_first = latest.sort_values(["dimension", "model", "place", "blueprint"], ascending=[True, True, False, True])
    aged = newest_first.assign(age=newest_first.groupby(["dimension", "model"]).cumcount())
    return aged.sort_values(keys, ignore_index=True)


def _why_not(table: pd.DataFrame, consistency: bool, min_graded: int) -> list[str]:
    reasons = []
    for n, steady, latest in zip(table["n_blueprints"], table["n_steady"], table["n_latest"], strict=True):
        if n < min_graded:
            reasons.append(f"graded in {counted(n, 'blueprint')}, at least {min_graded} are needed")
        elif consistency and steady < LEAST_STEADY * latest:
            reasons.append(f"a grade of {STEADY_GRADE:g} or more in {steady} of the latest {counted(latest, 'blueprint')}")
        else:
            reasons.append("")
    return reasons


def _check_grades(rows: pd.DataFrame) -> None:
    grade = rows["grade"].to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero((grade < 1) | (grade > 10))
    if len(wrong):
        row = rows.iloc[wrong[0]]
        where = f"{row['blueprint']}, {row['model']}, {row['dimension']}"
        raise ConfigError(f"grades: grade of {where}: got {row['grade']}; allowed: a number from 1 to 10, or null")
