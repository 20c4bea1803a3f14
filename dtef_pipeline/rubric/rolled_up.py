"""Tables over all blueprints, beside the boards, made of the tables of a connection: champions, agreement and validity of judges, costs.

What is judged is that of the latest run of each blueprint, as on the boards.
"""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.request import EMBEDDER
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.used_calls import StoredUsage, count_calls_once
from dtef_pipeline.rubric.board import TEST_TAG, latest_runs
from dtef_pipeline.rubric.champions import champions
from dtef_pipeline.rubric.published_boards import rubric_snapshot_order
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_CHAMPIONS, RUBRIC_COSTS, RUBRIC_VARIANCE
from dtef_pipeline.rubric.self_preference import makers_by_name, self_preference
from dtef_pipeline.rubric.tables import RUBRIC_EXTRACTIONS
from dtef_pipeline.rubric.validity import agreement_table, disagreed_criteria, judge_table
from dtef_pipeline.rubric.validity_tables import (
    RUBRIC_AGREEMENT,
    RUBRIC_DISAGREED,
    RUBRIC_JUDGES,
    RUBRIC_SELF_PREFERENCE,
)
from dtef_pipeline.rubric.variance_shares import variance_shares
from dtef_pipeline.tables import in_schema

CHAMPIONS_READ = ("rubric_grades", "rubric_runs", "rubric_blueprints")
JUDGED_READ = ("rubric_judgements", "rubric_scores", "rubric_runs", "rubric_criteria")
COSTS_READ = ("rubric_responses", "rubric_judgements", "rubric_summaries", "rubric_extractions")

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


def champions_table(connection: duckdb.DuckDBPyConnection, *, consistency: bool = False) -> pa.Table:
    """RUBRIC_CHAMPIONS: the grades of the latest graded run of each blueprint. `connection` has the tables of CHAMPIONS_READ."""
    grades = connection.execute(_COUNTED_GRADES).df()
    return in_schema(champions(grades, rubric_snapshot_order(connection), consistency=consistency), RUBRIC_CHAMPIONS)


def latest_judgements(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """The judgements of the latest run of each blueprint, without what was said. `connection` has the tables of JUDGED_READ."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
    connection.register("latest", latest_runs(scores, rubric_snapshot_order(connection)))
    return connection.execute(_LATEST_JUDGED).df()


def agreement_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """`rubric_agreement` and `rubric_disagreed`. `connection` has the tables of JUDGED_READ."""
    judged, criteria = latest_judgements(connection), connection.execute(_CRITERIA).df()
    cuts = agreement_table(judged, criteria)
    return {
        "rubric_agreement": in_schema(cuts, RUBRIC_AGREEMENT),
        "rubric_disagreed": in_schema(disagreed_criteria(judged, criteria), RUBRIC_DISAGREED),
    }


def validity_tables(connection: duckdb.DuckDBPyConnection, stored: StoredUsage) -> dict[str, pa.Table]:
    """`rubric_self_preference`, `rubric_judges` and `rubric_variance_shares`. `connection` has the tables of JUDGED_READ.

    What judges cost is of each call once, as in RUBRIC_COSTS (`count_calls_once`).
    """
    judged = latest_judgements(connection)
    any_class = judged["score"].notna().any()
    by_scale = variance_shares(judged, ["scale"]) if any_class else variance_shares(judged).assign(scale=None)
    by_blueprint = variance_shares(judged, ["blueprint", "scale"])
    parts = [
        by_scale.assign(cut="overall", value="all"),
        *([by_blueprint.rename(columns={"blueprint": "value"}).assign(cut="blueprint")] if len(by_blueprint) else []),
    ]
    count_calls_once(connection, _USED_BY_JUDGE, stored)
    spent = connection.execute(_SPENT_BY_JUDGE).df()
    return {
        "rubric_self_preference": in_schema(self_preference(judged, makers_by_name(judged)), RUBRIC_SELF_PREFERENCE),
        "rubric_judges": in_schema(judge_table(judged, spent), RUBRIC_JUDGES),
        "rubric_variance_shares": in_schema(pd.concat(parts, ignore_index=True), RUBRIC_VARIANCE),
    }


_USED_BY_ROLE = """
    SELECT 'candidate' AS role, model, model_variant, request_keys, turns::BIGINT AS replies, prompt_tokens, completion_tokens, cost_usd
    FROM rubric_responses
    UNION ALL
    SELECT 'judge', judge_model, judge_variant, request_keys, len(raw), prompt_tokens, completion_tokens, cost_usd
    FROM rubric_judgements
    UNION ALL
    SELECT 'analyst', analyst, analyst_variant, request_keys, len(raw), prompt_tokens, completion_tokens, cost_usd
    FROM rubric_summaries
    UNION ALL
    SELECT 'analyst', analyst, analyst_variant, request_keys, len(raw), prompt_tokens, completion_tokens, cost_usd
    FROM rubric_extractions
"""
_USED_BY_JUDGE = """
    SELECT judge AS role, judge_model AS model, judge_variant AS model_variant, request_keys, len(raw) AS replies, prompt_tokens,
        completion_tokens, cost_usd
    FROM rubric_judgements SEMI JOIN latest
    ON rubric_judgements.blueprint::VARCHAR = latest.blueprint AND rubric_judgements.snapshot::VARCHAR = latest.snapshot
"""
_SPENT_BY_JUDGE = "SELECT role AS judge, sum(replies)::BIGINT AS calls, sum(cost_usd) AS cost_usd FROM used GROUP BY role"
_SPENT_BY_ROLE = """
    SELECT role, model, model_variant, count(replies) AS answered, coalesce(sum(replies), 0)::BIGINT AS calls,
        coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens, coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
        sum(cost_usd) AS cost_usd, count(*) FILTER (replies > 0 AND cost_usd IS NULL) AS unpriced,
        coalesce(sum(unknown_cost_attempts), 0)::BIGINT AS unknown_cost_attempts, sum(unknown_cost_usd_most) AS unknown_cost_usd_most
    FROM (FROM used UNION ALL BY NAME FROM of_unknown_cost) GROUP BY role, model, model_variant
"""


def costs_table(
    connection: duckdb.DuckDBPyConnection, stored: StoredUsage, summary: pa.Table, unknown: pa.Table | None = None
) -> pa.Table:
    """RUBRIC_COSTS, the dearest of each role first. `connection` has the tables of COSTS_READ.

    Each call counts once (`count_calls_once`). `summary`: of the response store, by model, snapshot and role: what embedders cost stands there
    alone. `unknown`: UNKNOWN_COSTS of the response store.
    """
    if not has_table(connection, "rubric_extractions"):
        connection.register("rubric_extractions", RUBRIC_EXTRACTIONS.empty_table())  # nobody was ever asked for key points
    count_calls_once(connection, _USED_BY_ROLE, stored, unknown=unknown)
    asked = connection.execute(_SPENT_BY_ROLE).df()
    embedders = summary.to_pandas()
    embedders = embedders[embedders["role"] == EMBEDDER].groupby("model", as_index=False, sort=True)
    sums = embedders[["answers", "prompt_tokens", "completion_tokens", "unpriced"]].sum()
    sums = sums.rename(columns={"answers": "calls"}).assign(role=EMBEDDER, model_variant=None, unknown_cost_attempts=0)
    sums = sums.assign(answered=sums["calls"], cost_usd=embedders["cost_usd"].sum(min_count=1)["cost_usd"])
    rows = pd.concat([part for part in (asked, sums) if len(part)] or [asked], ignore_index=True)
    order = {role: at for at, role in enumerate(("candidate", "judge", "analyst", EMBEDDER))}
    rows = rows.assign(place=rows["role"].map(order)).sort_values(
        ["place", "cost_usd", "model", "model_variant"], ascending=[True, False, True, True], ignore_index=True
    )
    return in_schema(rows, RUBRIC_COSTS)
