"""Comparing conditions with the first: each language model's scores in one, paired with its scores in the other.

Cells are those of `boards`: (round, segment, question) at a context level, draws averaged. Each context level is compared separately. The
interval and the verdict on a difference are by whole batteries of questions (see `differences`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.cells import add_clusters, cells_sql, has_table, parameters, require_current_scores
from dtef_pipeline.boards.costs import requests_sql
from dtef_pipeline.boards.pairs import describe_disagreement
from dtef_pipeline.statistics.differences import (
    MARGIN,
    compute_paired_statistics,
    places,
    remove_rounding,
    sum_by_cluster,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.boards.survey_subject import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.table_folders import SURVEY_CALL_TABLES

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
