"""The reliability of judgements: agreement of the judges in many cuts, criteria that they disagree on, and outcomes of each judge's calls."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.rubric.levels import number_groups
from dtef_pipeline.rubric.tables import JUDGED_UNIT
from dtef_pipeline.statistics.agreement import agreement, grade_alpha

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

UNREADABLE_REASONS = ("unreadable", "cut", "empty", "declined")
"""Reasons of a missing class when a judge replied, and its reply says none."""
UNREADABLE_FROM = 0.05
"""Share of a judge's replies without a class above which it is warned of."""
DISAGREED_FROM = 0.3
"""Standard deviation of the judges of one response, as a mean over responses, above which a criterion is listed."""
NO_TEXT = "unknown"
_AGREEMENT = ("cut", "value", "scale", "alpha", "low", "high", "reading", "n_units", "n_values", "n_clusters", "reason")


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
    return pd.concat(tables, ignore_index=True)[list(_AGREEMENT)]


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
