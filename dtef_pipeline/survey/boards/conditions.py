"""Comparing the conditions of an experiment: every model in every condition, paired with the same model in the first condition.

Cells are those of `boards`: (round, segment, question) at a context level, draws averaged. Each context level is compared separately. If
the conditions show different context, their context levels are paired in order. The interval and the decision on a difference are by whole
batteries of questions (see `differences`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.boards.cells import add_clusters, cells_sql, has_table, parameters, require_current_scores
from dtef_pipeline.boards.costs import requests_sql
from dtef_pipeline.boards.families import describe_disagreement
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.differences import (
    MARGIN,
    compute_paired_statistics,
    places,
    remove_rounding,
    sum_by_cluster,
    verdicts,
)
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.boards.survey_subject import SCORED, SurveyBoardOptions
from dtef_pipeline.survey.experiments import ConditionModel
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.table_folders import SURVEY_CALL_TABLES

DECISIONS = ("better", "worse", "equivalent", "undecided")
_REQUESTS_ASKED = f"""
    SELECT *, request_keys[1] AS request_key, first_level AS round, purpose AS condition, way AS context_level
    FROM ({requests_sql(SURVEY_CALL_TABLES)})
"""
_COMPARED_BY = ["model", "condition"]
_N_BEHIND = ["n_questions", "n_batteries"]
_AT_LEVEL = ["model", "context_place"]
_PAID_COLUMNS = [*_COMPARED_BY, "context_place", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced"]
_DECIDED_BY = ["low", "high", "p", "p_adjusted", "n_questions", "n_batteries", "decision", "note"]
_READ_IN_BOTH = {
    **{name: f"parsed_{name}" for name in ("difference", "low", "high", "p", "p_adjusted", "decision", "note")},
    "n_pairs": "n_parsed_pairs",
}
"""Columns from parsed scores only, by the name of the same column under the policy."""
_STATISTICS = [*_DECIDED_BY[:-2], "margin", "decision", "note", *_READ_IN_BOTH.values()]


def load_paired_cells(
    connection: duckdb.DuckDBPyConnection, cases: Sequence[ConditionModel], options: SurveyBoardOptions
) -> pd.DataFrame:
    """Return the scored and unscored cells of an experiment, each with the scores of the same model's cell in the first condition.

    `connection` has a `scores` view. `options.snapshot` is set, because responses of different snapshots cannot be compared. Columns:
    `model`, `condition` (the name in the experiment), `condition_place` (0: the first), `round`, `segment`, `question_id`, `context_level`,
    `context_place` (of the level among those of the condition), `same_item` and `cluster` (as in `load_cells`), `score` (0-1; null:
    unscored), `parsed_score` (of parsed predictions only), `first_score`, `first_parsed`, `n_total`, `n_ok`, `n_answered` (predictions).
    """
    connection.execute("SET threads = 1")
    connection.register("asked", _build_asked_frame(cases))
    pair = ", ".join(KEYS.pair)
    query = f"""
        {cells_sql(connection, options)}
        , placed AS (
            SELECT asked.model, asked.name AS condition, asked.model_place, asked.condition_place, asked.context_place,
                cells.* EXCLUDE (model, condition)
            FROM cells JOIN asked ON cells.model_variant = asked.variant AND cells.condition = asked.condition
                AND cells.context_level = asked.context_level
        ), first AS (FROM placed WHERE condition_place = 0)
        SELECT model, placed.condition, placed.condition_place, {pair}, placed.context_level, context_place,
            placed.score, first.score AS first_score,
            placed.parsed_score, first.parsed_score AS first_parsed, placed.n_total, placed.n_ok, placed.n_answered
        FROM placed LEFT JOIN first USING (model, {pair}, context_place)
        ORDER BY placed.model_place, placed.condition_place, {pair}, context_place
        """
    with require_current_scores(KEYS):
        rows = connection.execute(query, parameters(options)).df()
    connection.unregister("asked")
    return add_clusters(rows, connection, options.subject)


def compare_conditions(
    connection: duckdb.DuckDBPyConnection,
    cases: Sequence[ConditionModel],
    options: SurveyBoardOptions,
    *,
    margin: float = MARGIN,
    segments: Sequence[str] = (),
) -> pd.DataFrame:
    """Return `compare_paired_cells` for the models with two or more conditions at a level, and only for `segments` if any are given.

    `connection`: see `load_paired_cells`; without `predictions` there are no tokens and costs. The result is empty if nothing can be
    compared.
    """
    cells = load_paired_cells(connection, cases, options)
    cells = cells[cells["segment"].isin(segments)] if segments else cells
    several = cells.groupby(_AT_LEVEL)["condition"].transform("nunique") > 1
    paid = (
        load_condition_usage(connection, cases, options, cells)
        if has_table(connection, "predictions")
        else pd.DataFrame(columns=_PAID_COLUMNS)
    )
    return compare_paired_cells(cells[several], paid, margin=margin)


def compare_paired_cells(cells: pd.DataFrame, usage: pd.DataFrame, *, margin: float = MARGIN) -> pd.DataFrame:
    """Compare each model in each condition with the first condition, over the cells with a score in both and a response in every condition.

    Each context level is compared separately; its rows are adjacent, and levels are in order. `cells` are from `load_paired_cells`, `usage`
    from `load_condition_usage`. Columns: `model`, `condition`, `context_level`, `n_pairs`, `score` and `first_score` (means over the
    pairs), `difference` (null in the first condition), `low` and `high` (95 % interval), `p` (t test by whole batteries), `p_adjusted`
    (Holm, over the rows of the level), `n_questions`, `n_batteries`, `margin`, `decision`, `note`, the same as `parsed_...` for the pairs
    with readable responses in both conditions (`n_parsed_pairs`), `n_total` (predictions), `parse_rate`, and the columns of `usage`.
    `decision`: `better` or `worse` (p_adjusted < .05), else `equivalent` (the 90 % interval is within +-`margin`), else `undecided`.
    `parsed_note` says if readable responses only lead to another decision. Raises ConfigError for a margin that is not above 0 and below 1.
    """
    if not 0 < margin < 1:
        raise ConfigError(f"margin {margin}: allowed: a difference of scores above 0 and below 1, such as {MARGIN}")
    cells = filter_asked_everywhere(cells)
    levels = sorted(cells["context_place"].unique()) or [0]
    parts = [
        _compare_at_level(
            cells[cells["context_place"] == level],
            usage[usage["context_place"] == level].drop(columns="context_place"),
            margin,
        )
        for level in levels
    ]
    return pd.concat(parts, ignore_index=True)


def _compare_at_level(cells: pd.DataFrame, usage: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return the rows of one context level, from its `cells` and `usage`."""
    paired = _remove_pair_rounding(cells[cells["score"].notna() & cells["first_score"].notna()])
    means = paired.groupby(_COMPARED_BY)[["score", "first_score"]].mean().assign(n_pairs=paired.groupby(_COMPARED_BY).size())
    table = cells.groupby(_COMPARED_BY, sort=False)[["context_level", "condition_place", "n_total", "n_ok", "n_answered"]].agg(
        {"context_level": "first", "condition_place": "first", "n_total": "sum", "n_ok": "sum", "n_answered": "sum"}
    )
    table = table.join(means)
    table["n_pairs"] = table["n_pairs"].fillna(0).astype(int)
    table["difference"] = (table["score"] - table["first_score"]).where(table["condition_place"] > 0)
    table["parse_rate"] = table["n_ok"] / table["n_answered"].where(table["n_answered"] > 0)
    table = _add_decisions(table, paired[paired["condition_place"] > 0], margin)
    is_compared = table["condition_place"] > 0
    table["margin"] = np.where(is_compared, margin, np.nan)
    table[_N_BEHIND] = table[_N_BEHIND].astype("Int64")
    columns = ["context_level", "n_pairs", "score", "first_score", "difference", *_STATISTICS, "n_total", "parse_rate"]
    return table[columns].reset_index().merge(usage, on=_COMPARED_BY, how="left")


def _add_decisions(table: pd.DataFrame, paired: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Add to `table` the decisions from `paired`, by the policy and by parsed scores only, or why there are none."""
    decisions = _decide(paired, margin).set_index(_COMPARED_BY)
    readable = paired.assign(score=paired["parsed_score"], first_score=paired["first_parsed"])
    if not readable.equals(paired):
        readable = _remove_pair_rounding(readable[readable["score"].notna() & readable["first_score"].notna()])
        of_parsed = _decide(readable, margin).set_index(_COMPARED_BY)
    else:
        of_parsed = decisions
    table = table.join(decisions[_DECIDED_BY]).join(of_parsed[list(_READ_IN_BOTH)].rename(columns=_READ_IN_BOTH))
    is_compared = table["condition_place"] > 0
    has_no_pair = is_compared & (table["n_pairs"] == 0)
    table.loc[has_no_pair, [*_N_BEHIND, "decision", "note"]] = (0, 0, DECISIONS[-1], "no pair has a score in both conditions")
    unread = is_compared & ((table["n_ok"] == 0) | _take_first_condition(table, "n_ok").eq(0)) & ~has_no_pair
    table.loc[unread, ["decision", "note"]] = (DECISIONS[-1], "one of the two conditions has no readable response")
    none_read = is_compared & table["n_parsed_pairs"].isna()
    table.loc[none_read, ["n_parsed_pairs", "parsed_decision", "parsed_note"]] = (0, DECISIONS[-1], "")
    renamed_table = table.rename(columns={"decision": "verdict", "parsed_decision": "parsed_verdict"})
    table["parsed_note"] = describe_disagreement(renamed_table, SCORED, "have readable responses in both conditions", {})
    table["parsed_note"] = table["parsed_note"].where(is_compared)
    return table.astype({"n_parsed_pairs": "Int64"})


def _remove_pair_rounding(paired: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with exactly equal scores if they differ only by rounding, so that the difference is exactly 0."""
    apart = remove_rounding((paired["score"] - paired["first_score"]).to_numpy(), paired["score"].to_numpy())
    return paired.assign(score=np.where(apart == 0, paired["first_score"], paired["score"]))


def _take_first_condition(table: pd.DataFrame, name: str) -> pd.Series:
    """Return a column's value in the first condition of each row's model."""
    first = table[name].where(table["condition_place"] == 0)
    return first.groupby(level="model").transform("first")


def _decide(paired: pd.DataFrame, margin: float) -> pd.DataFrame:
    column, rows = places(paired, _COMPARED_BY)
    cluster, clusters = places(paired, ["cluster"])
    shape = (len(clusters), len(rows))
    sums = sum_by_cluster(cluster, column, paired["score"] - paired["first_score"], shape)
    statistics = compute_paired_statistics(
        sums,
        sum_by_cluster(cluster, column, np.ones(len(paired)), shape),
        noun=KEYS.cluster_noun,
    )
    table = pd.concat([rows, statistics.rename(columns={"n_clusters": "n_batteries"})], axis=1)
    table["n_questions"] = paired["same_item"].groupby(column).nunique()
    table["p_adjusted"] = holm(table["p"])
    table["decision"] = verdicts(table, DECISIONS, margin)
    small = table["decision"].isin(DECISIONS[:2]) & (table["difference"].abs() < margin)
    table.loc[small, "note"] = f"significant, but smaller than the margin of {margin:g}"
    return table


def filter_asked_everywhere(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of `load_paired_cells` that a model has in all of its conditions of the level; others cannot be compared."""
    cell = [*_AT_LEVEL, *KEYS.pair]
    in_conditions = cells.groupby(cell)["condition"].transform("nunique")
    return cells[in_conditions == cells.groupby(_AT_LEVEL)["condition"].transform("nunique")]


def load_condition_usage(
    connection: duckdb.DuckDBPyConnection, cases: Sequence[ConditionModel], options: SurveyBoardOptions, cells: pd.DataFrame
) -> pd.DataFrame:
    """Return tokens and dollars of each model in each condition at each context level, for the requests of the compared cells.

    `cells` are from `load_paired_cells`; cells with only one condition do not count. Columns: `model`, `condition`, `context_place`,
    `prompt_tokens`, `completion_tokens`, `cost_usd` (null: no known price), `unpriced` (responses). `connection` has a `predictions` view.
    A request that two conditions share counts in one of them. Baselines have no rows.
    """
    place = [*_COMPARED_BY, *KEYS.pair, "context_place"]
    connection.register("asked", _build_asked_frame(cases))
    connection.register("compared", filter_asked_everywhere(cells)[place])
    bindings: Mapping[str, object] = {"snapshot": options.snapshot, "rounds": list(options.rounds)}
    how = "asked.variant = {0}.model_variant AND asked.condition = {0}.condition AND asked.context_level = {0}.context_level"
    usage = connection.execute(
        f"""
        WITH wanted AS (
            SELECT DISTINCT request_key
            FROM predictions JOIN asked ON {how.format("predictions")}
                JOIN compared ON compared.model = asked.model AND compared.condition = asked.name
                    AND compared.context_place = asked.context_place
                    AND {" AND ".join(f"compared.{name} = predictions.{name}" for name in KEYS.pair)}
            WHERE snapshot = $snapshot
        )
        SELECT asked.model, asked.name AS condition, asked.context_place, sum(prompt_tokens)::BIGINT AS prompt_tokens,
            sum(completion_tokens)::BIGINT AS completion_tokens, sum(cost_usd) AS cost_usd,
            count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced
        FROM ({_REQUESTS_ASKED}) AS requests SEMI JOIN wanted USING (request_key) JOIN asked ON {how.format("requests")}
        WHERE snapshot = $snapshot AND (len($rounds) = 0 OR list_contains($rounds, round)) GROUP BY ALL
        """,
        bindings,
    ).df()
    connection.unregister("asked")
    connection.unregister("compared")
    return usage


def _build_asked_frame(cases: Sequence[ConditionModel]) -> pd.DataFrame:
    """Return one row per (model, condition, context level), with their places in the experiment."""
    models = {name: place for place, name in enumerate(dict.fromkeys(case.model for case in cases))}
    names = {name: place for place, name in enumerate(dict.fromkeys(case.name for case in cases))}
    rows = [
        (case.model, models[case.model], case.name, names[case.name], case.options.condition, case.spec.variant, level, place)
        for case in cases
        for place, level in enumerate(case.options.context_levels)
    ]
    columns = ["model", "model_place", "name", "condition_place", "condition", "variant", "context_level", "context_place"]
    return pd.DataFrame(rows, columns=columns)
