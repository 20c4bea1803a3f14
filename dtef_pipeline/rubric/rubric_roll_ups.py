"""Tables over all blueprints other than the boards: champions, agreement of judges, and their preference for models of their own maker.

They use the latest run of each blueprint, as the boards do.

Self-preference: let y be the point of a judgement (1 - the class's number for should_not) and an item a criterion of a response. The model
is y = item + judge + gamma x (judge and model have one maker) + error. The item effect removes the quality of the response as all its judges
see it, the judge effect removes strictness; gamma is how much more a judge gives to responses of its own maker than others give to the same
responses. Both effects are removed exactly, even if judgements are missing (Frisch & Waugh 1933; Lovell 1963), which leaves a ratio of
sums; its interval and test are by whole prompts (`estimate_ratios`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.makers import find_maker
from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.boards.costs import count_calls_once
from dtef_pipeline.boards.family_calls import Calls, FamilyCalls, StoredUsage
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.board import TEST_TAG, load_rubric_snapshot_order, select_latest_runs
from dtef_pipeline.rubric.levels import Codes, Floats, cast_keys, group_rows, number_groups, sort_unique
from dtef_pipeline.rubric.tables import (
    JUDGED_UNIT,
    RUBRIC_AGREEMENT,
    RUBRIC_CHAMPIONS,
    RUBRIC_DISAGREED,
    RUBRIC_JUDGES,
    RUBRIC_SELF_PREFERENCE,
    RUBRIC_SPACE,
)
from dtef_pipeline.statistics.agreement import agreement, grade_alpha
from dtef_pipeline.statistics.cluster_robust import estimate_ratios, explain_missing
from dtef_pipeline.statistics.multiplicity import holm
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
    `consistency` a champion needs such a grade in 80 % of them.
    """
    keys = ("blueprint", "snapshot", "analyst", "model", "dimension")
    rows = sort_unique(cast_keys(grades).astype({"analyst": "str", "dimension": "str"}), keys, "grades")
    counted_grades = _select_latest_grades(rows[rows["grade"].notna()].reset_index(drop=True), order)
    groups = group_rows(counted_grades, ("dimension", "model"))
    is_recent = counted_grades["age"] < LATEST_GRADES
    table = groups.keys.assign(
        mean=groups.mean(counted_grades["grade"]),
        n_blueprints=groups.count(),
        n_steady=groups.count(is_recent & (counted_grades["grade"] >= STEADY_GRADE)),
        n_latest=groups.count(is_recent),
    )
    table["reason"] = _explain_no_champion(table, consistency)
    eligible = table["mean"].where(table["reason"] == "")
    rank = pd.Series(rank_numbers(eligible, group_rows(table, ("dimension",)).code), table.index)
    table = table.assign(rank=rank.astype("Int64"), champion=rank == 1)
    return table.sort_values(["dimension", "rank", "mean", "model"], ascending=[True, True, False, True], ignore_index=True)


def _select_latest_grades(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return one row per dimension, model and blueprint: the mean `grade` of its latest run, and its `age` among the model's runs, 0 for
    the latest.
    """
    place = {label: index for index, label in enumerate(among(order, dict.fromkeys(rows["snapshot"].tolist())))}
    keys = ["dimension", "model", "blueprint"]
    runs = group_rows(rows, (*keys, "snapshot"))
    run_rows = runs.keys.assign(grade=runs.mean(rows["grade"]), place=runs.keys["snapshot"].map(place).astype("int64"))
    latest = run_rows.sort_values([*keys, "place"]).drop_duplicates(keys, keep="last")
    newest_first = latest.sort_values(["dimension", "model", "place", "blueprint"], ascending=[True, True, False, True])
    return latest.assign(age=newest_first.groupby(["dimension", "model"]).cumcount()).reset_index(drop=True)


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
    return {
        "rubric_agreement": convert_to_schema(build_agreement_table(judgements, criteria), RUBRIC_AGREEMENT),
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
        "rubric_self_preference": convert_to_schema(estimate_self_preference(rows), RUBRIC_SELF_PREFERENCE),
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


UNREADABLE_REASONS = ("unreadable", "cut", "empty", "declined")
"""Reasons of a missing class when a judge replied, and its reply says none."""
UNREADABLE_FROM = 0.05
"""Share of a judge's replies without a class above which it is warned of."""
DISAGREED_FROM = 0.3
"""Standard deviation of the judges of one response, as a mean over responses, above which a criterion is listed."""
NO_TEXT = "unknown"


def build_agreement_table(judgements: pd.DataFrame, criteria: pd.DataFrame) -> pd.DataFrame:
    """Return one row per `scale`, `cut` and `value`: `overall`, each `blueprint`, pair of `judges`, kind of `criterion` and `language`.

    Columns: see `agreement`, plus `reading` (reliable from .8, tentative from .667, else unreliable; empty: no alpha). Intervals are by
    prompts. Classes of different judges for one response, criterion and `judge_draw` are compared before should_not is inverted, so one
    judge's repeats are no agreement. The kind of a criterion is its block, and whether it is in an alternative path. The language is the
    script of its text (`find_script`) in `criteria` (see rubric_criteria). Judgements on two scales (column `scale`, the
    number of classes) are never compared.
    """
    rows = judgements[judgements["score"].notna()].reset_index(drop=True)
    scales = sorted(rows["scale"].unique()) or [None]
    parts = ((scale, rows[rows["scale"] == scale].reset_index(drop=True)) for scale in scales)
    tables = [_compute_cuts(part, criteria).assign(scale=scale) for scale, part in parts]
    return pd.concat(tables, ignore_index=True)


def _compute_cuts(rows: pd.DataFrame, criteria: pd.DataFrame) -> pd.DataFrame:
    """Build the agreement table on one scale."""
    unit, prompt = number_groups(rows, JUDGED_UNIT), number_groups(rows, ["blueprint", "prompt"])
    score = rows["score"].to_numpy(dtype=np.float64)

    def cut(name: str, values: Iterable[object], mask: npt.NDArray[np.bool_] | None = None) -> pd.DataFrame:
        selection = np.ones(len(rows), dtype=bool) if mask is None else mask
        codes, names = pd.factorize(np.asarray(list(values), dtype=object)[selection], sort=True)
        agreements = agreement(score[selection], unit[selection], prompt[selection], codes, noun="prompt")
        return agreements.assign(cut=name, value=[str(names[group]) for group in agreements["group"]])

    kinds: pd.Series = rows["block"].astype(str) + np.where(rows["path"].isna(), "", ", alternative path")
    tables = [cut("overall", ["all"] * len(rows)), cut("blueprint", rows["blueprint"])]
    codes, names = pd.factorize(rows["judge"], sort=True)
    for first, second in combinations(range(len(names)), 2):
        mask = (codes == first) | (codes == second)
        tables.append(cut("judges", [f"{names[first]} x {names[second]}"] * len(rows), mask))
    scripts = [find_script(text) if isinstance(text, str) else NO_TEXT for text in _list_criterion_texts(rows, criteria)]
    tables += [cut("criterion", kinds), cut("language", scripts)]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(reading=[grade_alpha(value) for value in table["alpha"]])


def list_disagreed_criteria(judgements: pd.DataFrame, criteria: pd.DataFrame) -> pd.DataFrame:
    """Return one row per criterion whose judges differ by more than DISAGREED_FROM, the worst first.

    Columns: `blueprint`, `prompt`, `block`, `path`, `position`, `mean_sd` (mean over responses of the judges' standard deviation, 0-0.5),
    `max_sd` (the largest), `n_responses` (with two judges or more), `text` (from `criteria`, see rubric_criteria).
    """
    rows = judgements[judgements["score"].notna()].reset_index(drop=True)
    unit = number_groups(rows, JUDGED_UNIT)
    n, score = np.bincount(unit), rows["score"].to_numpy(dtype=np.float64)
    mean = np.bincount(unit, score) / np.maximum(n, 1)
    spread = np.sqrt(np.bincount(unit, (score - mean[unit]) ** 2) / np.maximum(n, 1))
    first = np.unique(unit, return_index=True)[1]
    place = ["blueprint", "prompt", "block", "path", "position"]
    units = rows.iloc[first][place].assign(mean_sd=spread, several=n > 1)
    items = (
        units[units["several"]]
        .groupby(place, dropna=False)["mean_sd"]
        .agg(mean_sd="mean", max_sd="max", n_responses="size")
        .reset_index()
    )
    items = items[items["mean_sd"] > DISAGREED_FROM].sort_values(["mean_sd", *place[:2]], ascending=[False, True, True])
    return items.assign(text=_list_criterion_texts(items, criteria)).reset_index(drop=True)


def judge_table(judgements: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per judge: the outcomes of its judgements, and their cost.

    `costs`: `judge`, `calls` and `cost_usd` of each judge with a reply. Judgements of equal texts share one call, which counts once there;
    all other columns count judgements.

    Columns: `judge`, `n` (planned), `n_scored`, `n_unreadable` (a reply without a class), `n_failed` (the call failed or a budget stopped
    it), `unreadable` (share of its replies, 0-1: lower is better), `partial` (share of its judgements that are missing although another
    judged the point), `mean` (class number, before should_not is inverted), `calls` (answered, with second attempts), `cost_usd` (null:
    none is known), `flagged` (unreadable above 5 %).
    """
    has_score = judgements["score"].notna()
    unreadable = ~has_score & judgements["reason"].isin(UNREADABLE_REASONS)
    unit = number_groups(judgements, JUDGED_UNIT)
    has_answer = np.bincount(unit, has_score)[unit] > 0
    rows = pd.DataFrame(
        {
            "judge": judgements["judge"],
            "n": 1,
            "n_scored": has_score.astype(np.int64),
            "n_unreadable": unreadable.astype(np.int64),
            "n_failed": (~has_score & ~unreadable).astype(np.int64),
            "partial": (~has_score & has_answer).astype(np.float64),
            "mean": judgements["score"],
        }
    )
    groups = rows.groupby("judge", sort=True)
    table = groups[["n", "n_scored", "n_unreadable", "n_failed"]].sum()
    replies = (table["n_scored"] + table["n_unreadable"]).to_numpy(dtype=np.float64)
    share = np.divide(table["n_unreadable"], replies, out=np.full(len(table), np.nan), where=replies > 0)
    table = table.assign(unreadable=share, partial=groups["partial"].mean(), mean=groups["mean"].mean())
    judge_costs = costs.set_index("judge").reindex(table.index)
    table = table.assign(calls=judge_costs["calls"].fillna(0).astype(np.int64), cost_usd=judge_costs["cost_usd"])
    return table.assign(flagged=share > UNREADABLE_FROM).reset_index()


@lru_cache(maxsize=4096)
def find_script(text: str) -> str:
    """Return the script of most letters in a text, by their Unicode names: `Latin`, `Devanagari`, `Cjk`; `unknown` if it has no letters.

    Han characters count as `Cjk`, but a text with any Hiragana or Katakana is `Japanese`.
    """
    names = Counter(_name_script(letter) for letter in text if letter.isalpha())
    if names["Hiragana"] or names["Katakana"]:
        return "Japanese"
    return max(sorted(names), key=names.__getitem__) if names else NO_TEXT


@lru_cache(maxsize=65_536)
def _name_script(letter: str) -> str:
    return unicodedata.name(letter, NO_TEXT).partition(" ")[0].title()


def _list_criterion_texts(rows: pd.DataFrame, criteria: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return the text of each row's criterion, (rows,); None if it is not in `criteria`."""
    place = ["blueprint", "prompt", "block", "path", "position"]
    left, right = (part[place].assign(path=part["path"].astype("Int64").fillna(-1)) for part in (rows, criteria))
    texts = right.assign(text=criteria["text"].to_numpy()).drop_duplicates(place)
    matches = left.merge(texts, on=place, how="left")["text"]
    return np.asarray(matches.astype(object).where(matches.notna(), None), dtype=object)


ALL_JUDGES = "all"
FAVOURED_AT = 0.05
_NO_OTHER_JUDGE = "no judge of another maker judged the same responses"
_NO_VARIATION = 1e-9
_NOT_IDENTIFIABLE = (
    "cannot be separated from the judge's strictness: judges of other makers must judge the same responses, and a judge or a model of a "
    "third maker is needed"
)
_GAMMA_NUMBERS = ("gamma", "low", "high", "p")


def is_same_maker(judgements: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return whether `judge_variant` and `model_variant` are of the same known maker, (judgements,)."""
    judges, models = (_find_makers(judgements[name]) for name in ("judge_variant", "model_variant"))
    return np.asarray(judges.notna() & (judges == models), dtype=bool)


def _find_makers(variants: pd.Series) -> pd.Series:
    return variants.map({variant: find_maker(str(variant)) for variant in variants.unique()})


def remove_own_judges(judgements: pa.Table) -> pa.Table:
    """Return the rows of `rubric_judgements` without judgements of a model by a judge of its own maker."""
    return judgements.filter(pa.array(~is_same_maker(judgements.select(["judge_variant", "model_variant"]).to_pandas())))


def estimate_self_preference(judgements: pd.DataFrame) -> pd.DataFrame:
    """Return one row for all judges together (`judge` and `model` are `all`), then one per judge and model of one maker.

    Columns: `judge`, `model`, `maker`, `gamma` (units of the score; above 0: the own maker is favoured), `low`, `high` (95 %), `p`
    (two-sided), `p_adjusted` (over all pairs; in the first row, p), `n` (same-maker judgements used), `n_prompts` (of these), `flagged`
    (gamma above 0 and p_adjusted below .05), `reason` (why there is no estimate or interval). A pair is compared only with judgements by
    judges of other makers; other pairs of one maker are left out.

    `judgements`: see rubric_judgements; judgements without a class and items with one judge are ignored.
    """
    rows = judgements[judgements["score"].notna()].reset_index(drop=True)
    is_own = is_same_maker(rows)
    score = rows["score"].to_numpy(dtype=np.float64)
    y = np.where(rows["block"].to_numpy() == SHOULD_NOT, 1 - score, score)
    item = number_groups(rows, JUDGED_UNIT)
    judge, prompt = number_groups(rows, ["judge"]), number_groups(rows, ["blueprint", "prompt"])
    estimates: list[dict[str, Any]] = [
        {"judge": ALL_JUDGES, "model": ALL_JUDGES, "maker": None, **_estimate(y, is_own, item, judge, prompt)}
    ]
    names, models = rows["judge"].to_numpy(), rows["model"].to_numpy()
    own_rows = rows[is_own].sort_values(["judge", "model"]).drop_duplicates(["judge", "model"])
    for pair in own_rows.itertuples():
        is_pair = is_own & (names == pair.judge) & (models == pair.model)
        mask = ~is_own | is_pair
        estimate = _estimate(y[mask], is_pair[mask], item[mask], judge[mask], prompt[mask])
        estimates.append({"judge": pair.judge, "model": pair.model, "maker": find_maker(pair.judge_variant), **estimate})
    table = pd.DataFrame(estimates)
    adjusted = np.concatenate([table["p"].to_numpy()[:1], holm(table["p"].to_numpy()[1:])])
    is_favoured = (adjusted < FAVOURED_AT) & (table["gamma"].to_numpy() > 0)
    return table.assign(p_adjusted=adjusted, flagged=is_favoured)


def _estimate(y: Floats, is_own: npt.NDArray[np.bool_], item: Codes, judge: Codes, prompt: Codes) -> dict[str, Any]:
    several = np.bincount(item)[item] > 1
    y, x = y[several], is_own[several].astype(np.float64)
    item, judge, prompt = (
        np.asarray(pd.factorize(code[several], sort=True)[0], dtype=np.int64) for code in (item, judge, prompt)
    )
    row: dict[str, Any] = dict.fromkeys(_GAMMA_NUMBERS, np.nan)
    clusters = np.unique(prompt[x > 0])
    row |= {"n": int(x.sum()), "n_prompts": len(clusters)}
    if not len(clusters):
        return row | {"reason": _NO_OTHER_JUDGE if is_own.any() else "no judge shares a maker with a model it judged"}
    residuals = _remove_judge_effects(np.stack([y, x], axis=1), item, judge)
    size = float(residuals[:, 1] @ residuals[:, 1])
    if size <= _NO_VARIATION * len(y):
        return row | {"reason": _NOT_IDENTIFIABLE}
    sums, squares = (np.bincount(prompt, residuals[:, 1] * column)[:, None] for column in residuals.T)
    informs = squares > _NO_VARIATION * size
    ratio = estimate_ratios(np.where(informs, sums, 0), np.where(informs, squares, 0))
    row |= {"gamma": float(ratio.value[0]), "reason": explain_missing(min(int(ratio.n_clusters[0]), len(clusters)), "prompt")}
    if row["reason"]:
        return row
    (low, high), p = ratio.interval(), ratio.p()
    return row | {"low": float(low[0]), "high": float(high[0]), "p": float(p[0])}


def _remove_judge_effects(columns: Floats, item: Codes, judge: Codes) -> Floats:
    """Return `columns` (rows, columns) minus the item and judge effects that fit each best."""
    dummies = (judge[:, None] == np.arange(1, judge.max() + 1)).astype(np.float64)
    sizes = np.bincount(item)
    deviations = np.stack([column - (np.bincount(item, column) / sizes)[item] for column in (*columns.T, *dummies.T)], axis=1)
    mine, judges = deviations[:, : columns.shape[1]], deviations[:, columns.shape[1] :]
    if not judges.shape[1]:
        return mine
    slopes = np.linalg.lstsq(judges.T @ judges, judges.T @ mine, rcond=1e-10)[0]
    return np.asarray(mine - judges @ slopes)
