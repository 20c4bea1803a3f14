"""Tables over all blueprints other than the boards: champions, agreement and validity of judges.

They use the latest run of each blueprint, as the boards do.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.boards.costs import count_calls_once
from dtef_pipeline.boards.family_calls import Calls, FamilyCalls, StoredUsage
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.board import TEST_TAG, load_rubric_snapshot_order, select_latest_runs
from dtef_pipeline.rubric.levels import cast_keys, group_rows, sort_unique, weighted_mean
from dtef_pipeline.rubric.roll_up_tables import (
    RUBRIC_AGREEMENT,
    RUBRIC_CHAMPIONS,
    RUBRIC_DISAGREED,
    RUBRIC_JUDGES,
    RUBRIC_SELF_PREFERENCE,
)
from dtef_pipeline.rubric.self_preference import estimate_self_preference, map_makers
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.rubric.validity import build_agreement_table, judge_table, list_disagreed_criteria
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.tables import convert_to_schema
from dtef_pipeline.text.number_words import format_count

MIN_GRADED = 5
"""Blueprints that a model must be graded in to become a champion."""
LATEST_GRADES, LEAST_STEADY, STEADY_GRADE = 5, 0.8, 5.0
"""For consistent champions: this share of this many latest blueprints must have at least this grade."""


def rank_champions(grades: pd.DataFrame, order: Sequence[str], *, consistency: bool = False) -> pd.DataFrame:
    """Return one row per dimension and model that is graded in it, best first.

    `grades`: blueprint, snapshot, analyst, model, `dimension` and `grade` (1-10, higher is better, null: not graded). `order`: snapshots
    from the oldest on. If a model is graded in several runs of a blueprint, the latest counts; several analysts are averaged.

    Columns: `dimension`, `rank` (equal means share the better rank; null: not eligible), `model`, `mean` (1-10), `n_blueprints`, `n_steady`
    of `n_latest` (how many of the latest 5 blueprints have a grade of 5 or more), `champion`, `reason` (why it is not eligible). With
    `consistency` a champion needs such a grade in 80 % of them. Raises ConfigError if a column is missing or a grade is outside 1-10.
    """
    keys = ("blueprint", "snapshot", "analyst", "model", "dimension")
    rows = cast_keys(grades, "grades", (*keys, "grade"))
    rows = sort_unique(rows.astype({"analyst": "str", "dimension": "str"}), keys, "grades")
    _check_grades(rows)
    counted_grades = _select_latest_grades(rows[rows["grade"].notna()].reset_index(drop=True), order)
    groups = group_rows(counted_grades, ("dimension", "model"))
    grade = counted_grades["grade"].to_numpy(dtype=np.float64)
    recent = counted_grades["age"].to_numpy() < LATEST_GRADES
    size = len(groups)
    table = groups.keys.assign(
        mean=weighted_mean(groups.code, grade, np.ones(len(grade)), size),
        n_blueprints=np.bincount(groups.code, minlength=size),
        n_steady=np.bincount(groups.code[recent & (grade >= STEADY_GRADE)], minlength=size),
        n_latest=np.bincount(groups.code[recent], minlength=size),
    )
    table["reason"] = _explain_no_champion(table, consistency)
    eligible = table["mean"].where(table["reason"] == "")
    rank = pd.Series(rank_numbers(eligible, group_rows(table, ("dimension",)).code), table.index)
    table = table.assign(rank=rank.astype("Int64"), champion=rank == 1)
    board = table.sort_values(["dimension", "rank", "mean", "model"], ascending=[True, True, False, True], ignore_index=True)
    return board[["dimension", "rank", "model", "mean", "n_blueprints", "n_steady", "n_latest", "champion", "reason"]]


def _select_latest_grades(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return one row per dimension, model and blueprint: the mean `grade` of its latest run, and its `age` among the model's runs, 0 for
    the latest.
    """
    place = {label: index for index, label in enumerate(among(order, dict.fromkeys(rows["snapshot"].tolist())))}
    keys = ["dimension", "model", "blueprint"]
    runs = group_rows(rows, (*keys, "snapshot"))
    means = weighted_mean(runs.code, rows["grade"].to_numpy(dtype=np.float64), np.ones(len(rows)), len(runs))
    run_rows = runs.keys.assign(grade=means, place=runs.keys["snapshot"].map(place).astype("int64"))
    latest = run_rows.sort_values([*keys, "place"]).drop_duplicates(keys, keep="last")
    newest_first = latest.sort_values(["dimension", "model", "place", "blueprint"], ascending=[True, True, False, True])
    grade_ages = newest_first.assign(age=newest_first.groupby(["dimension", "model"]).cumcount())
    return grade_ages.sort_values(keys, ignore_index=True)


def _explain_no_champion(table: pd.DataFrame, consistency: bool) -> list[str]:
    reasons = []
    for n, steady, latest in zip(table["n_blueprints"], table["n_steady"], table["n_latest"], strict=True):
        if n < MIN_GRADED:
            reasons.append(f"graded in {format_count(n, 'blueprint')}, at least {MIN_GRADED} are needed")
        elif consistency and steady < LEAST_STEADY * latest:
            reasons.append(f"a grade of {STEADY_GRADE:g} or more in {steady} of the latest {format_count(latest, 'blueprint')}")
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


CHAMPIONS_READ = ("rubric_grades", "rubric_runs", "rubric_blueprints")
JUDGED_READ = ("rubric_judgements", "rubric_scores", "rubric_runs", "rubric_criteria")

_LATEST_JUDGED = """
    SELECT judged.* REPLACE (blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot) FROM (
        SELECT blueprint, snapshot, prompt, model, model_variant, temperature, system_index, draw, block, path, position, judge, approach,
            judge_model, judge_variant, judge_draw, scale, class, score, reason
        FROM rubric_judgements
    ) AS judged SEMI JOIN latest USING (blueprint, snapshot)
"""
_CRITERIA = "SELECT blueprint::VARCHAR AS blueprint, prompt, block, path, position, text FROM rubric_criteria"
_COUNTED_GRADES = f"""
    SELECT grades.blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, analyst, model, dimension, grade
    FROM rubric_grades AS grades JOIN rubric_blueprints AS blueprints ON grades.blueprint = blueprints.blueprint
    WHERE NOT list_contains(coalesce(tags, []), '{TEST_TAG}')
"""


def build_champions_table(connection: duckdb.DuckDBPyConnection, *, consistency: bool = False) -> pa.Table:
    """Return RUBRIC_CHAMPIONS from the latest graded runs, without blueprints tagged `test`. `connection` has the tables of CHAMPIONS_READ."""
    grades = connection.execute(_COUNTED_GRADES).df()
    return convert_to_schema(
        rank_champions(grades, load_rubric_snapshot_order(connection), consistency=consistency), RUBRIC_CHAMPIONS
    )


def load_latest_judgements(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return the judgements of the latest run of each blueprint, without texts. `connection` has the tables of JUDGED_READ."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
    connection.register("latest", select_latest_runs(scores, load_rubric_snapshot_order(connection)))
    return connection.execute(_LATEST_JUDGED).df()


def build_agreement_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """Return `rubric_agreement` and `rubric_disagreed`. `connection` has the tables of JUDGED_READ."""
    judgements, criteria = load_latest_judgements(connection), connection.execute(_CRITERIA).df()
    cuts = build_agreement_table(judgements, criteria)
    return {
        "rubric_agreement": convert_to_schema(cuts, RUBRIC_AGREEMENT),
        "rubric_disagreed": convert_to_schema(list_disagreed_criteria(judgements, criteria), RUBRIC_DISAGREED),
    }


def build_validity_tables(connection: duckdb.DuckDBPyConnection, usage: StoredUsage) -> dict[str, pa.Table]:
    """Return `rubric_self_preference` and `rubric_judges`. `connection` has the tables of JUDGED_READ.

    The costs of judges count each call once, as in COSTS (`count_calls_once`).
    """
    rows = load_latest_judgements(connection)
    connection.execute(_LATEST_CALLS)
    count_calls_once(connection, _JUDGE_CALLS, usage)
    costs = connection.execute(_SPENT_BY_JUDGE).df()
    return {
        "rubric_self_preference": convert_to_schema(estimate_self_preference(rows, map_makers(rows)), RUBRIC_SELF_PREFERENCE),
        "rubric_judges": convert_to_schema(judge_table(rows, costs), RUBRIC_JUDGES),
    }


_JUDGE_CALLS = FamilyCalls(
    RUBRIC_SPACE, (Calls("latest_judgements", role="judge", model="judge_model", variant="judge_variant"),)
)
_LATEST_CALLS = """
    CREATE OR REPLACE TEMP VIEW latest_judgements AS
    SELECT rubric_judgements.* FROM rubric_judgements SEMI JOIN latest
    ON rubric_judgements.blueprint::VARCHAR = latest.blueprint AND rubric_judgements.snapshot::VARCHAR = latest.snapshot
"""
_SPENT_BY_JUDGE = "SELECT role AS judge, sum(replies)::BIGINT AS calls, sum(cost_usd) AS cost_usd FROM used GROUP BY role"
