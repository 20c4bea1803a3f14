"""A model compared with itself: under another condition than the first, and at several context levels.

Cells are those of `boards`: (round, segment, question) at a context level under a condition, draws averaged. Scores are paired within a
(segment, question) of one model variant, so that the difficulty of questions and the size of segments, which are the same on both sides,
cancel. The interval and the verdict on a difference are by whole batteries of questions (see `differences`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL, is_computed
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.cells import BoardOptions, add_clusters, cells_sql, has_table, parameters, require_current_scores
from dtef_pipeline.boards.costs import requests_sql
from dtef_pipeline.boards.pairs import describe_disagreement
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import CORRELATION, estimate_ratios, estimate_shared_variance
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
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.boards.schemas import RESPONSIVENESS
from dtef_pipeline.survey.boards.survey_subject import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES

VERDICTS = ("better", "worse", "equivalent", "undecided")
_REQUESTS = f"""
    SELECT *, request_keys[1] AS request_key, first_level AS round, purpose AS condition, setting AS context_level
    FROM ({requests_sql(SURVEY_CALL_TABLES)})
"""
_ROW = ["condition", "context_level", "model_variant"]
_N_BEHIND = ["n_questions", "n_batteries"]
_USAGE = ["prompt_tokens", "completion_tokens", "cost_usd", "unpriced"]
_TESTED = ["low", "high", "p", "p_adjusted", *_N_BEHIND, "verdict", "note"]
_PARSED = {
    **{name: f"parsed_{name}" for name in ("difference", "low", "high", "p", "p_adjusted", "verdict", "note")},
    "n_pairs": "n_parsed_pairs",
}
"""Columns from parsed scores only, by the name of the same column under the policy."""
_COLUMNS = [
    *("model", "model_variant", "condition", "first_condition", "context_level", "snapshot", "targets", "metric"),
    *("n_pairs", "score", "first_score", "difference", *_TESTED, *_PARSED.values(), "n_total", "parse_rate", *_USAGE),
]


def compare_conditions(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> pd.DataFrame:
    """Compare every language model in each condition with itself in the first one, over the cells that it has in both.

    The first condition is `options.condition` or, if it is None, the usual one. The snapshot is that of `options` or, if it is None, the
    latest in which a model has both conditions; responses of different snapshots are not compared. `connection` has `scores`, and optionally
    `predictions`, without which tokens and costs are null. Returns one row per condition, context level and model, levels in order; empty if
    there is nothing to compare. Columns: `n_pairs`, `score` and `first_score` (means over the pairs with both), `difference`, `low` and
    `high` (95 % interval), `p` (t test by whole batteries), `p_adjusted` (Holm, over all rows), `n_questions`, `n_batteries`, `verdict`,
    `note`, the same as `parsed_...` for the pairs with readable responses in both conditions (`n_parsed_pairs`), `n_total` (predictions),
    `parse_rate`, and tokens and cost of the condition's requests for these cells. `verdict`: `better` or `worse` (p_adjusted < .05), else
    `equivalent` (the 90 % interval is within +-MARGIN), else `undecided`. `parsed_note` says if readable responses only lead to another
    verdict.
    """
    first = options.condition or BlueprintOptions().condition
    conditions = _find_snapshots(connection, first, options)
    if not conditions:
        return pd.DataFrame(columns=_COLUMNS)
    parts = [
        _load_paired_cells(connection, first, names, replace(options, condition=None, snapshot=snapshot))
        for snapshot, names in conditions.items()
    ]
    cells = add_clusters(pd.concat(parts, ignore_index=True), connection, options.subject)
    table = _compare(cells).assign(first_condition=first, targets=options.targets, metric=options.metric)
    return table.merge(_load_usage(connection, options, cells), on=_ROW, how="left")[_COLUMNS]


def _find_snapshots(connection: duckdb.DuckDBPyConnection, first: str, options: SurveyBoardOptions) -> dict[str, list[str]]:
    """Return the conditions by the latest snapshot in which a language model was asked in them and in the first at one context level."""
    rows = connection.execute(
        f"""
        WITH asked AS (
            SELECT DISTINCT condition::VARCHAR AS condition, snapshot::VARCHAR AS snapshot, model_variant, context_level FROM scores
            WHERE NOT {COMPUTED_SQL} AND (len($rounds) = 0 OR list_contains($rounds, round)) AND ($snapshot IS NULL OR snapshot = $snapshot)
        )
        SELECT condition, list(DISTINCT snapshot) FROM asked
        SEMI JOIN (FROM asked WHERE condition = $first) USING (snapshot, model_variant, context_level)
        WHERE condition <> $first GROUP BY condition ORDER BY condition
        """,
        {"first": first, "snapshot": options.snapshot, "rounds": list(options.rounds)},
    ).fetchall()
    order = snapshot_order(connection) if rows else []
    conditions = defaultdict[str, list[str]](list)
    for condition, snapshots in rows:
        conditions[among(order, set(snapshots))[-1]].append(condition)
    return conditions


def _load_paired_cells(
    connection: duckdb.DuckDBPyConnection, first: str, conditions: list[str], options: SurveyBoardOptions
) -> pd.DataFrame:
    """Return the cells that a model has in the first and in another one of the conditions, scored or not, by model, pair and level.

    Columns: those that identify a cell, `score` (0-1; null: unscored), `parsed_score` (of parsed predictions only), `n_total`, `n_ok`,
    `n_answered` (predictions), and as `first_...` the scores and `n_ok` in the first condition.
    """
    connection.execute("SET threads = 1")
    pair = ", ".join(KEYS.pair)
    row = ", ".join(f"cells.{name}::VARCHAR AS {name}" for name in ("model", "snapshot", *_ROW))
    query = f"""
        {cells_sql(connection, options)}
        SELECT {row}, {pair}, cells.score, cells.parsed_score, cells.n_total, cells.n_ok, cells.n_answered,
            first.score AS first_score, first.parsed_score AS first_parsed, first.n_ok AS first_ok
        FROM cells JOIN cells AS first USING (model_variant, {pair}, context_level)
        WHERE list_contains($others, cells.condition) AND first.condition = $first AND NOT {COMPUTED_SQL}
        ORDER BY cells.condition, model_variant, {pair}, context_level
        """
    with require_current_scores(KEYS):
        return connection.execute(query, {**parameters(options), "first": first, "others": conditions}).df()


def _compare(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, without usage."""
    scored = _remove_pair_rounding(cells[cells["score"].notna() & cells["first_score"].notna()])
    rows, pairs = cells.groupby(_ROW), scored.groupby(_ROW)
    table = rows[["model", "snapshot"]].first().join(rows[["n_total", "n_ok", "n_answered", "first_ok"]].sum())
    table = table.join(pairs[["score", "first_score"]].mean()).join(pairs.size().rename("n_pairs"))
    table["n_pairs"] = table["n_pairs"].fillna(0).astype(int)
    table["difference"] = table["score"] - table["first_score"]
    table["parse_rate"] = table["n_ok"] / table["n_answered"].where(table["n_answered"] > 0)
    table = _add_verdicts(table, scored).astype(dict.fromkeys([*_N_BEHIND, "n_parsed_pairs"], "Int64")).reset_index()
    order = table["context_level"].map(lambda level: ContextLevel(level).order)
    return table.assign(order=order).sort_values(["condition", "order", "model_variant"])


def _add_verdicts(table: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Add to `table` the verdicts from the `scored` cells, by the policy and by parsed scores only, or why there are none."""
    parsed = scored.assign(score=scored["parsed_score"], first_score=scored["first_parsed"])
    readable = _remove_pair_rounding(parsed[parsed["score"].notna() & parsed["first_score"].notna()])
    table = table.join(_test(scored)[_TESTED]).join(_test(readable)[list(_PARSED)].rename(columns=_PARSED))
    has_no_pair = table["n_pairs"] == 0
    table.loc[has_no_pair, [*_N_BEHIND, "verdict", "note"]] = (0, 0, VERDICTS[-1], "no pair has a score in both conditions")
    is_unread = ((table["n_ok"] == 0) | (table["first_ok"] == 0)) & ~has_no_pair
    table.loc[is_unread, ["verdict", "note"]] = (VERDICTS[-1], "one of the two conditions has no readable response")
    has_no_parsed = table["n_parsed_pairs"].isna()
    table.loc[has_no_parsed, ["n_parsed_pairs", "parsed_verdict", "parsed_note"]] = (0, VERDICTS[-1], "")
    return table.assign(parsed_note=describe_disagreement(table, SCORED, "have readable responses in both conditions", {}))


def _remove_pair_rounding(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with exactly equal scores if they differ only by rounding, so that the difference is exactly 0."""
    differences = remove_rounding((cells["score"] - cells["first_score"]).to_numpy(), cells["score"].to_numpy())
    return cells.assign(score=np.where(differences == 0, cells["first_score"], cells["score"]))


def _test(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the paired statistics and the verdict of each row; p is adjusted over all of them."""
    column, rows = places(cells, _ROW)
    cluster, clusters = places(cells, ["cluster"])
    shape = (len(clusters), len(rows))
    sums = sum_by_cluster(cluster, column, cells["score"] - cells["first_score"], shape)
    counts = sum_by_cluster(cluster, column, np.ones(len(cells)), shape)
    statistics = compute_paired_statistics(sums, counts, noun=KEYS.cluster_noun)
    table = pd.concat([rows, statistics.rename(columns={"n_clusters": "n_batteries"})], axis=1)
    table["n_questions"] = cells["same_item"].groupby(column).nunique()
    table["p_adjusted"] = holm(table["p"])
    table["verdict"] = verdicts(table, VERDICTS, MARGIN)
    is_small = table["verdict"].isin(VERDICTS[:2]) & (table["difference"].abs() < MARGIN)
    table.loc[is_small, "note"] = f"significant, but smaller than the margin of {MARGIN:g}"
    return table.set_index(_ROW)


def _load_usage(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions, cells: pd.DataFrame) -> pd.DataFrame:
    """Return tokens and dollars of the conditions' requests for the cells, by condition, context level and model variant.

    Columns: `prompt_tokens`, `completion_tokens`, `cost_usd` (null: no known price), `unpriced` (responses). Empty without `predictions`. A
    request that two conditions share counts in one of them.
    """
    if not has_table(connection, "predictions"):
        return pd.DataFrame(columns=[*_ROW, *_USAGE])
    cell = [*_ROW, "snapshot", *KEYS.pair]
    connection.register("compared", cells[cell])
    usage = connection.execute(
        f"""
        WITH wanted AS (
            SELECT DISTINCT request_key, snapshot, condition FROM predictions SEMI JOIN compared USING ({", ".join(cell)})
        )
        SELECT {", ".join(_ROW)}, sum(prompt_tokens)::BIGINT AS prompt_tokens, sum(completion_tokens)::BIGINT AS completion_tokens,
            sum(cost_usd) AS cost_usd, count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced
        FROM ({_REQUESTS}) AS requests SEMI JOIN wanted USING (request_key, snapshot, condition)
        WHERE len($rounds) = 0 OR list_contains($rounds, round) GROUP BY ALL
        """,
        {"rounds": list(options.rounds)},
    ).df()
    connection.unregister("compared")
    return usage


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
    shared = estimate_shared_variance(
        parts.T, rows.group[first], rows.cluster[first], rows.people[first], len(total), CORRELATION
    )
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
