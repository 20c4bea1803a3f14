"""Comparing two conditions: each language model's scores in one, paired with its scores in the other.

Cells are those of `boards`: (round, segment, question) at a context level, draws averaged. Each context level is compared separately. The
interval and the verdict on a difference are by whole batteries of questions (see `differences`).
"""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.cells import add_clusters, cells_sql, has_table, parameters, require_current_scores
from dtef_pipeline.boards.costs import requests_sql
from dtef_pipeline.boards.families import describe_disagreement
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
_ROW = ["model_variant", "context_level"]
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


def compare_all_conditions(connection: duckdb.DuckDBPyConnection, options: SurveyBoardOptions) -> pd.DataFrame:
    """Return the rows of `compare_conditions` for every condition against `options.condition`, or against the usual one if that is None."""
    first = options.condition or BlueprintOptions().condition
    rows = connection.execute(
        f"SELECT DISTINCT condition::VARCHAR FROM scores WHERE NOT {COMPUTED_SQL} AND condition <> ? ORDER BY 1", [first]
    ).fetchall()
    frames = [compare_conditions(connection, first, condition, options) for (condition,) in rows]
    return pd.concat([frame for frame in frames if len(frame)] or [pd.DataFrame(columns=_COLUMNS)], ignore_index=True)


def compare_conditions(
    connection: duckdb.DuckDBPyConnection, first: str, condition: str, options: SurveyBoardOptions
) -> pd.DataFrame:
    """Compare every language model in a condition with itself in the `first` one, over the cells that it has in both.

    The snapshot is that of `options` or, if it is None, the latest in which a model has both; responses of different snapshots are not
    compared. `connection` has `scores`, and optionally `predictions`, without which tokens and costs are null. Returns one row per model and
    context level, levels in order; empty if there is nothing to compare. Columns: `n_pairs`, `score` and `first_score` (means over the pairs
    with both), `difference`, `low` and `high` (95 % interval), `p` (t test by whole batteries), `p_adjusted` (Holm, over the rows of the
    level), `n_questions`, `n_batteries`, `verdict`, `note`, the same as `parsed_...` for the pairs with readable responses in both conditions
    (`n_parsed_pairs`), `n_total` (predictions), `parse_rate`, and tokens and cost of the condition's requests for these cells. `verdict`:
    `better` or `worse` (p_adjusted < .05), else `equivalent` (the 90 % interval is within +-MARGIN), else `undecided`. `parsed_note` says if
    readable responses only lead to another verdict.
    """
    empty = pd.DataFrame(columns=_COLUMNS)
    snapshot = options.snapshot or _find_latest_snapshot(connection, first, condition, options)
    if snapshot is None:
        return empty
    options = replace(options, condition=None, snapshot=snapshot)
    cells = _load_paired_cells(connection, first, condition, options)
    if not len(cells):
        return empty
    levels = sorted(cells["context_level"].unique(), key=lambda level: ContextLevel(level).order)
    table = pd.concat([_compare_at_level(cells[cells["context_level"] == level]) for level in levels], ignore_index=True)
    table = table.assign(
        condition=condition, first_condition=first, snapshot=snapshot, targets=options.targets, metric=options.metric
    )
    return table.merge(_load_usage(connection, condition, options, cells), on=_ROW, how="left")[_COLUMNS]


def _find_latest_snapshot(
    connection: duckdb.DuckDBPyConnection, first: str, condition: str, options: SurveyBoardOptions
) -> str | None:
    """Return the latest snapshot in which a language model was asked in both conditions at one context level, or None."""
    asked = (
        "SELECT snapshot::VARCHAR, model_variant, context_level FROM scores "
        f"WHERE NOT {COMPUTED_SQL} AND (len($rounds) = 0 OR list_contains($rounds, round)) AND condition ="
    )
    rows = connection.execute(
        f"{asked} $first INTERSECT {asked} $condition",
        {"first": first, "condition": condition, "rounds": list(options.rounds)},
    ).fetchall()
    return among(snapshot_order(connection), {label for label, *_ in rows})[-1] if rows else None


def _load_paired_cells(
    connection: duckdb.DuckDBPyConnection, first: str, condition: str, options: SurveyBoardOptions
) -> pd.DataFrame:
    """Return the cells that a model has in both conditions, scored or not, by model, pair and level.

    Columns: those that identify a cell, `same_item` and `cluster` (as in `load_cells`), `score` (0-1; null: unscored), `parsed_score` (of
    parsed predictions only), `n_total`, `n_ok`, `n_answered` (predictions), and as `first_...` the scores and `n_ok` in the first condition.
    """
    connection.execute("SET threads = 1")
    pair = ", ".join(KEYS.pair)
    query = f"""
        {cells_sql(connection, options)}
        SELECT cells.model, model_variant, {pair}, context_level, cells.score, cells.parsed_score,
            cells.n_total, cells.n_ok, cells.n_answered,
            first.score AS first_score, first.parsed_score AS first_parsed, first.n_ok AS first_ok
        FROM cells JOIN cells AS first USING (model_variant, {pair}, context_level)
        WHERE cells.condition = $other AND first.condition = $first AND NOT {COMPUTED_SQL}
        ORDER BY model_variant, {pair}, context_level
        """
    with require_current_scores(KEYS):
        rows = connection.execute(query, {**parameters(options), "first": first, "other": condition}).df()
    return add_clusters(rows, connection, options.subject)


def _compare_at_level(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one context level, without usage."""
    scored = _remove_pair_rounding(cells[cells["score"].notna() & cells["first_score"].notna()])
    models, pairs = cells.groupby("model_variant", sort=False), scored.groupby("model_variant")
    table = models[["model", "context_level"]].first().join(models[["n_total", "n_ok", "n_answered", "first_ok"]].sum())
    table = table.join(pairs[["score", "first_score"]].mean()).join(pairs.size().rename("n_pairs"))
    table["n_pairs"] = table["n_pairs"].fillna(0).astype(int)
    table["difference"] = table["score"] - table["first_score"]
    table["parse_rate"] = table["n_ok"] / table["n_answered"].where(table["n_answered"] > 0)
    table = _add_verdicts(table, scored)
    return table.astype(dict.fromkeys([*_N_BEHIND, "n_parsed_pairs"], "Int64")).reset_index()


def _add_verdicts(table: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Add to `table` the verdicts from the `scored` cells, by the policy and by parsed scores only, or why there are none."""
    tests = _test(scored)
    readable = scored.assign(score=scored["parsed_score"], first_score=scored["first_parsed"])
    if not readable.equals(scored):
        readable = _remove_pair_rounding(readable[readable["score"].notna() & readable["first_score"].notna()])
    table = table.join(tests[_TESTED]).join(_test(readable)[list(_PARSED)].rename(columns=_PARSED))
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
    """Return the paired statistics and the verdict of each model variant."""
    column, rows = places(cells, ["model_variant"])
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
    return table.set_index("model_variant")


def _load_usage(
    connection: duckdb.DuckDBPyConnection, condition: str, options: SurveyBoardOptions, cells: pd.DataFrame
) -> pd.DataFrame:
    """Return tokens and dollars of the condition's requests for the cells, by model variant and context level.

    Columns: `prompt_tokens`, `completion_tokens`, `cost_usd` (null: no known price), `unpriced` (responses). Empty without `predictions`. A
    request that two conditions share counts in one of them.
    """
    if not has_table(connection, "predictions"):
        return pd.DataFrame(columns=[*_ROW, *_USAGE])
    cell = [*_ROW, *KEYS.pair]
    connection.register("compared", cells[cell])
    usage = connection.execute(
        f"""
        WITH wanted AS (
            SELECT DISTINCT request_key FROM predictions SEMI JOIN compared USING ({", ".join(cell)})
            WHERE snapshot = $snapshot AND condition = $condition
        )
        SELECT model_variant, context_level, sum(prompt_tokens)::BIGINT AS prompt_tokens,
            sum(completion_tokens)::BIGINT AS completion_tokens, sum(cost_usd) AS cost_usd,
            count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced
        FROM ({_REQUESTS}) AS requests SEMI JOIN wanted USING (request_key)
        WHERE snapshot = $snapshot AND condition = $condition AND (len($rounds) = 0 OR list_contains($rounds, round)) GROUP BY ALL
        """,
        {"snapshot": options.snapshot, "condition": condition, "rounds": list(options.rounds)},
    ).df()
    connection.unregister("compared")
    return usage
