"""Context responsiveness: whether a model's scores rise if it is shown answers of the group.

Scores are paired within a (segment, question) of one model variant under one condition, at several context levels. So the difficulty of
questions and the size of segments, which are the same at every level, cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import BoardOptions, has_table
from dtef_pipeline.boards.pairs import describe_disagreement
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import CORRELATION, estimate_ratios, shared_variance
from dtef_pipeline.statistics.differences import (
    MARGIN,
    Codes,
    Floats,
    compute_paired_statistics,
    places,
    remove_rounding,
    sum_by_cluster,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.schemas import RESPONSIVENESS
from dtef_pipeline.survey.keys import KEYS

_MODEL_CONDITION = [*MODEL, "condition"]
_AT_LEVELS = [*_MODEL_CONDITION, *KEYS.pair]
"""Key columns of a model's series over context levels."""
_PROMPT = list(KEYS.cell)
_READ_AT_BOTH = {**{name: f"parsed_{name}" for name in ("difference", "verdict", "note")}, "n_pairs": "n_parsed_pairs"}
"""Columns from parsed scores only, by the name of the same column under the policy."""
_REACTIONS = ("evidence-adapting", "hurt by context", "stereotype-holding", "undecided")


class _Rows(NamedTuple):
    """The scored cells of pairs with two levels or more, as columns."""

    group: Codes
    cluster: Codes
    question: Codes
    asked: Codes  # the question to the same people
    people: Codes
    pair: Codes
    score: Floats
    size: Floats  # of the context level as it was asked for
    shown: Floats  # context questions really shown; NaN: unknown
    noise: npt.NDArray[np.float32] | None  # (rows, replicates)
    parsed: Floats  # score of parsed responses alone, NaN: none
    answered: Floats  # responses per parsed one


def load_context_shown(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return how many context questions the prompts of each (round, segment, question_id, context_level, condition) really show.

    Columns: these and `context_included` (the mean, if a question is in several prompts). Empty without a `blueprints` view.
    """
    has_blueprints = has_table(connection, "blueprints")
    if not has_blueprints:
        return pd.DataFrame({**{name: pd.Series(dtype=object) for name in _PROMPT}, "context_included": pd.Series(dtype=float)})
    keys = ", ".join(_PROMPT)
    return connection.execute(
        f"SELECT {keys}, avg(context_included) AS context_included FROM blueprints GROUP BY {keys} ORDER BY {keys}"
    ).df()


def compute_responsiveness(
    cells: pd.DataFrame, contexts: pd.DataFrame, options: BoardOptions, noise: npt.NDArray[np.float32] | None = None
) -> pd.DataFrame:
    """Return the change of each model variant's score with context, one row per condition, as RESPONSIVENESS.

    `cells` are from `load_cells` (and `noise` aligned with them, as in `comparisons`), `contexts` from `load_context_shown`. `slope`:
    change of score per context question shown, sum (x - mean x)(score - mean score) / sum (x - mean x)^2, with means within pairs with two
    levels or more; null if the numbers shown are unknown or equal. `difference`: score at the highest level minus that at the lowest, mean
    over the pairs with both; `p` is from its t test by whole batteries, `p_adjusted` (Holm) over the language models of the same condition.
    Verdict: evidence-adapting or hurt by context (p_adjusted < .05), stereotype-holding (the 90 % interval of the difference is within
    +-0.01), else undecided, also if a level has no readable response; null for a baseline. Columns that begin with `parsed` are the same
    for the pairs with readable responses at both levels. A model without two context levels has no row.
    """
    where, rows, groups, clusters = _select_paired(cells, contexts, options, noise)
    if not len(groups):
        return pd.DataFrame(RESPONSIVENESS.empty_table().to_pandas())
    shape = (clusters, len(groups))
    policy = _judge(_test_change(rows, shape), groups)
    readable = policy
    if not np.array_equal(rows.score, rows.parsed):
        # Unparseable responses have fixed scores, so they dilute the noise.
        noise = None if rows.noise is None else rows.noise * rows.answered[:, None].astype(np.float32)
        readable = _judge(_test_change(rows._replace(score=rows.parsed, noise=noise), shape), groups)
    parsed_columns = readable[list(_READ_AT_BOTH)].rename(columns=_READ_AT_BOTH)
    table = pd.concat([groups, policy.drop(columns="n_pairs"), parsed_columns, _fit_slope(rows, shape)], axis=1)
    table["levels"] = _name_levels(cells.iloc[where]["context_level"].astype(str).to_numpy(), rows.group, len(groups))
    behind = pd.DataFrame({"n_pairs": rows.pair, "n_questions": rows.question, "n_batteries": rows.cluster})
    table = pd.concat([table, behind.groupby(rows.group).nunique()], axis=1)
    unread = _describe_unread(cells.iloc[where], rows.group, len(groups))
    table["verdict"] = table["verdict"].where(unread == "", _REACTIONS[-1])
    table["note"] = table["note"].where(unread == "", unread)
    table["parsed_note"] = describe_disagreement(table, options.subject, "have readable responses at both levels", {})
    return table.assign(targets=options.targets, metric=options.metric)[list(RESPONSIVENESS.names)]


def _judge(change: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """Return the statistics of each group with `p_adjusted` and `verdict`, both null for a baseline, which sees no context."""
    is_model = ~groups["model_variant"].map(is_computed).astype(bool)
    statistics = change.assign(p_adjusted=change["p"].where(is_model).groupby(groups["condition"]).transform(lambda p: holm(p)))
    return statistics.assign(verdict=verdicts(statistics, _REACTIONS, MARGIN).where(is_model, None))


def _select_paired(
    cells: pd.DataFrame, contexts: pd.DataFrame, options: BoardOptions, noise: npt.NDArray[np.float32] | None
) -> tuple[npt.NDArray[np.intp], _Rows, pd.DataFrame, int]:
    """Return the places in `cells` of the scored rows whose pair has another level, the rows as columns, their groups, and the number of
    clusters.
    """
    pair = cells.groupby(_AT_LEVELS, observed=True, sort=False).ngroup().to_numpy()
    has_score = cells["score"].notna().to_numpy()
    where = np.flatnonzero(has_score & (np.bincount(pair, weights=has_score)[pair] > 1))
    frame = cells.iloc[where]
    group, groups = places(frame, _MODEL_CONDITION)
    (cluster, clusters), (question, _) = places(frame, ["cluster"]), places(frame, ["same_item"])
    (item, _), (people, _) = places(frame, options.item_of_people), places(frame, options.people)
    level, levels = places(frame, ["context_level"])
    size = levels["context_level"].map(_order).to_numpy(dtype=np.float64)[level]
    score = frame["score"].to_numpy(dtype=np.float64)
    deviations = None if noise is None else np.nan_to_num(noise[where])
    parsed_score, answered_ratio = (
        column.to_numpy(np.float64) for column in (frame["parsed_score"], frame["n_answered"] / frame["n_ok"].clip(1))
    )
    pairs = np.unique(pair[where], return_inverse=True)[1]
    prompt, prompts = places(frame, _PROMPT)
    context = prompts.merge(contexts, on=_PROMPT, how="left")["context_included"].to_numpy(dtype=np.float64)[prompt]
    rows = _Rows(group, cluster, question, item, people, pairs, score, size, context, deviations, parsed_score, answered_ratio)
    return where, rows, groups, len(clusters)


def _test_change(rows: _Rows, shape: tuple[int, int]) -> pd.DataFrame:
    """Return each group's statistics of the highest level against the lowest, on the pairs with a score at both."""
    highest, lowest = np.full(shape[1], -np.inf), np.full(shape[1], np.inf)
    np.maximum.at(highest, rows.group, rows.size)
    np.minimum.at(lowest, rows.group, rows.size)
    has_score = ~np.isnan(rows.score)
    is_highest, is_lowest = has_score & (rows.size == highest[rows.group]), has_score & (rows.size == lowest[rows.group])
    rows = rows._replace(score=np.nan_to_num(rows.score))
    is_paired = np.bincount(rows.pair, weights=is_highest | is_lowest)[rows.pair] > 1
    is_highest, is_lowest = is_highest & is_paired, is_lowest & is_paired
    contrast = is_highest.astype(np.float64) - is_lowest
    sums = _sum_contrast(rows, contrast, shape)
    counts = sum_by_cluster(rows.cluster, rows.group, is_highest, shape)
    shared = _estimate_variance_of_people(rows, contrast, counts.sum(axis=0))
    statistics = compute_paired_statistics(sums, counts, shared=shared, noun=KEYS.cluster_noun).drop(columns="n_clusters")
    for name, level in (("lowest", is_lowest), ("highest", is_highest)):
        pairs = counts.sum(axis=0)
        with np.errstate(invalid="ignore"):
            statistics[f"score_at_{name}_context"] = (
                np.bincount(rows.group, weights=rows.score * level, minlength=shape[1]) / pairs
            )
    return statistics


def _fit_slope(rows: _Rows, shape: tuple[int, int]) -> pd.DataFrame:
    """Return the regression of score on context questions shown, with a separate intercept for each pair."""
    is_known = ~np.isnan(rows.shown)
    pairs = np.bincount(rows.pair, weights=is_known)
    means = np.bincount(rows.pair, weights=np.where(is_known, rows.shown, 0.0)) / np.maximum(pairs, 1)
    deviations = np.where(is_known, rows.shown - means[rows.pair], 0.0)
    numerators = _sum_contrast(rows, deviations, shape)
    denominators = sum_by_cluster(rows.cluster, rows.group, deviations**2, shape)
    slope = estimate_ratios(
        numerators, denominators, shared=_estimate_variance_of_people(rows, deviations, denominators.sum(axis=0))
    )
    low, high = slope.interval()
    return pd.DataFrame({"slope": slope.value, "slope_low": low, "slope_high": high})


def _sum_contrast(rows: _Rows, contrast: Floats, shape: tuple[int, int]) -> Floats:
    """Return sums of contrast x score: 0, without rounding errors, if a score does not change."""
    sums = sum_by_cluster(rows.cluster, rows.group, contrast * rows.score, shape)
    return remove_rounding(sums, sum_by_cluster(rows.cluster, rows.group, np.abs(contrast) * rows.score, shape))


def _estimate_variance_of_people(rows: _Rows, contrast: Floats, total: Floats) -> Floats:
    """Return (groups,) the variance of the sums of contrast x score over `total` that is due to the same people.

    A part is a question to the same people.
    """
    if rows.noise is None:
        return np.zeros(len(total))
    place = rows.group * (rows.asked.max() + 1) + rows.asked
    _, first, part = np.unique(place, return_index=True, return_inverse=True)
    parts = np.stack([np.bincount(part, contrast * column).astype(np.float64) for column in rows.noise.T])
    shared = shared_variance(parts.T, rows.group[first], rows.cluster[first], rows.people[first], len(total), CORRELATION)
    return np.divide(shared, total**2, out=np.zeros(len(total)), where=total > 0)


def _describe_unread(cells: pd.DataFrame, group: Codes, groups: int) -> pd.Series:
    """Return a note on the levels of each group without a readable response, whose scores say nothing about context."""
    level = cells["context_level"].astype(str)
    read = cells["n_ok"].groupby([group, level.to_numpy()], sort=False).sum()
    none = sorted(read.index[read == 0], key=lambda pair: _order(pair[1]))
    notes = pd.Series("", index=range(groups), dtype=object)
    for place in {place for place, _ in none}:
        notes[place] = f"no readable response at level {', '.join(level for code, level in none if code == place)}"
    return notes


def _name_levels(level: npt.NDArray[np.object_], group: Codes, groups: int) -> list[str]:
    level_rows = pd.DataFrame({"group": group, "level": level}).drop_duplicates()
    level_rows = level_rows.sort_values("level", key=lambda levels: levels.map(_order))
    names = level_rows.groupby("group")["level"].agg(", ".join)
    return [str(names[place]) for place in range(groups)]


def _order(level: str) -> float:
    return ContextLevel(level).order
