"""Tables over all blueprints, beside the boards, made of the tables of a connection: champions, agreement and validity of judges, costs.

What is judged is that of the latest run of each blueprint, as on the boards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.request import EMBEDDER
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.rubric.board import TEST_TAG, latest_runs
from dtef_pipeline.rubric.champions import champions
from dtef_pipeline.rubric.published_boards import in_schema, rubric_snapshot_order
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

CHAMPIONS_READ = ("rubric_grades", "rubric_runs", "rubric_blueprints")
JUDGED_READ = ("rubric_judgements", "rubric_scores", "rubric_runs", "rubric_criteria")
COSTS_READ = ("rubric_responses", "rubric_judgements", "rubric_summaries", "rubric_extractions")

_LATEST_JUDGED = """
    SELECT judged.* REPLACE (blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot) FROM (
        SELECT blueprint, snapshot, prompt, model, model_variant, temperature, system_index, draw, block, path, position, judge, approach,
            judge_model, judge_variant, judge_draw, scale, class, score, reason, attempts, cost_usd
        FROM rubric_judgements
    ) AS judged SEMI JOIN latest USING (blueprint, snapshot)
"""
_CRITERIA = "SELECT blueprint::VARCHAR AS blueprint, prompt, block, path, position, text FROM rubric_criteria"
_COUNTED_GRADES = f"""
    SELECT grades.blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, analyst, model, dimension, grade
    FROM rubric_grades AS grades JOIN rubric_blueprints AS blueprints ON grades.blueprint = blueprints.blueprint
    WHERE NOT list_contains(coalesce(tags, []), '{TEST_TAG}')
"""

StoredUsage = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys, with tokens and cost."""


def champions_table(connection: duckdb.DuckDBPyConnection, *, consistency: bool = False) -> pa.Table:
    """RUBRIC_CHAMPIONS: the grades of the latest graded run of each blueprint. `connection` has the tables of CHAMPIONS_READ."""
    grades = connection.execute(_COUNTED_GRADES).df()
    return in_schema(champions(grades, rubric_snapshot_order(connection), consistency=consistency), RUBRIC_CHAMPIONS)


def latest_judgements(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """The judgements of the latest run of each blueprint, without what was said. `connection` has the tables of JUDGED_READ."""
    scores = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'model'").df()
    connection.register("latest", latest_runs(scores, rubric_snapshot_order(connection)))
    return connection.execute(_LATEST_JUDGED).df()


def agreement_tables(connection: duckdb.DuckDBPyConnection, *, resamples: int, seed: int) -> dict[str, pa.Table]:
    """`rubric_agreement` and `rubric_disagreed`. `connection` has the tables of JUDGED_READ."""
    judged, criteria = latest_judgements(connection), connection.execute(_CRITERIA).df()
    cuts = agreement_table(judged, criteria, resamples=resamples, seed=seed)
    return {
        "rubric_agreement": in_schema(cuts, RUBRIC_AGREEMENT),
        "rubric_disagreed": in_schema(disagreed_criteria(judged, criteria), RUBRIC_DISAGREED),
    }


def validity_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """`rubric_self_preference`, `rubric_judges` and `rubric_variance_shares`. `connection` has the tables of JUDGED_READ."""
    judged = latest_judgements(connection)
    by_scale = variance_shares(judged, ["scale"] if judged["score"].notna().any() else [])
    by_blueprint = variance_shares(judged, ["blueprint", "scale"])
    parts = [
        by_scale.assign(cut="overall", value="all"),
        *([by_blueprint.rename(columns={"blueprint": "value"}).assign(cut="blueprint")] if len(by_blueprint) else []),
    ]
    return {
        "rubric_self_preference": in_schema(self_preference(judged, makers_by_name(judged)), RUBRIC_SELF_PREFERENCE),
        "rubric_judges": in_schema(judge_table(judged), RUBRIC_JUDGES),
        "rubric_variance_shares": in_schema(pd.concat(parts, ignore_index=True), RUBRIC_VARIANCE),
    }


_USED = """
    CREATE OR REPLACE TEMP TABLE used AS
    SELECT role, any_value(model) AS model, model_variant, request_keys, max(replies) AS replies,
        max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens, max(cost_usd) AS cost_usd
    FROM (
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
    ) WHERE replies > 0 GROUP BY role, model_variant, request_keys
"""
_SHARING = """
    SELECT request_keys FROM used SEMI JOIN (
        SELECT request_keys FROM (SELECT request_keys, unnest(request_keys) AS key FROM used)
        WHERE key IN (SELECT key FROM (SELECT unnest(request_keys) AS key FROM used) GROUP BY key HAVING count(*) > 1)
    ) AS sharing USING (request_keys)
"""
_SPENT_BY_ROLE = """
    SELECT role, model, model_variant, count(*) AS answered, sum(replies)::BIGINT AS calls, sum(prompt_tokens)::BIGINT AS prompt_tokens,
        sum(completion_tokens)::BIGINT AS completion_tokens, sum(cost_usd) AS cost_usd,
        count(*) FILTER (cost_usd IS NULL) AS unpriced
    FROM used GROUP BY role, model, model_variant
"""


def costs_table(connection: duckdb.DuckDBPyConnection, stored: StoredUsage, summary: pa.Table) -> pa.Table:
    """RUBRIC_COSTS, the dearest of each role first. `connection` has the tables of COSTS_READ.

    Rows that rest on the same calls count once. Where conversations share their first turns alone, each call is counted by itself, as
    `stored` has it. `summary`: of the response store, by model, snapshot and role: what embedders cost stands there alone.
    """
    connection.execute(
        "SET threads = 1"
    )  # Sums of several threads are added in any order: equal costs are to give equal digits.
    if not has_table(connection, "rubric_extractions"):
        connection.register("rubric_extractions", RUBRIC_EXTRACTIONS.empty_table())  # nobody was ever asked for key points
    connection.execute(_USED)
    _count_shared_calls(connection, stored)
    asked = connection.execute(_SPENT_BY_ROLE).df()
    embedders = summary.to_pandas()
    embedders = embedders[embedders["role"] == EMBEDDER].groupby("model", as_index=False, sort=True)
    sums = embedders[["answers", "prompt_tokens", "completion_tokens", "unpriced"]].sum()
    sums = sums.rename(columns={"answers": "calls"}).assign(role=EMBEDDER, model_variant=None)
    sums = sums.assign(answered=sums["calls"], cost_usd=embedders["cost_usd"].sum(min_count=1)["cost_usd"])
    rows = pd.concat([part for part in (asked, sums) if len(part)] or [asked], ignore_index=True)
    order = {role: at for at, role in enumerate(("candidate", "judge", "analyst", EMBEDDER))}
    rows = rows.assign(place=rows["role"].map(order)).sort_values(
        ["place", "cost_usd", "model", "model_variant"], ascending=[True, False, True, True], ignore_index=True
    )
    return in_schema(rows, RUBRIC_COSTS)


def _count_shared_calls(connection: duckdb.DuckDBPyConnection, stored: StoredUsage) -> None:
    """Put single calls in the place of the rows of `used` that share some of their calls, and not all."""
    lists = [keys for (keys,) in connection.execute(_SHARING).fetchall()]
    if not lists:
        return
    found = stored(sorted({key for keys in lists for key in keys})).select(
        ["request_key", "prompt_tokens", "completion_tokens", "cost_usd"]
    )
    connection.register("calls", found)
    connection.register("sharing", pa.table({"request_keys": pa.array(lists, pa.list_(pa.string()))}))
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE used AS
        SELECT * FROM used ANTI JOIN sharing USING (request_keys)
        UNION ALL
        SELECT role, any_value(model), model_variant, [key], 1, any_value(calls.prompt_tokens), any_value(calls.completion_tokens),
            any_value(calls.cost_usd)
        FROM (SELECT role, model, model_variant, unnest(request_keys) AS key FROM used SEMI JOIN sharing USING (request_keys)) AS each
        JOIN calls ON each.key = calls.request_key GROUP BY role, model_variant, key
        """
    )
