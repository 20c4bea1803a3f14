"""What candidates and judges of the qa family cost, by suite and evaluator: each call once."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.request import CANDIDATE
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.used_calls import StoredUsage, count_calls_once
from dtef_pipeline.qa.result_tables import QA_ANCHORS, QA_COSTS
from dtef_pipeline.qa.tables import QA_JUDGEMENTS
from dtef_pipeline.tables import in_schema

QA_COSTS_READ = ("qa_responses", "qa_judgements", "qa_anchors")
# A call whose price is unknown has no cost in its first row, and 0 in the others.
_OF_CANDIDATES = f"""
    SELECT '{CANDIDATE}' AS role, any_value(model) AS model, model_variant, [request_key] AS request_keys, 1::BIGINT AS replies,
        max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens,
        CASE WHEN max(cost_usd) > 0 OR NOT bool_or(cost_usd IS NULL) THEN max(cost_usd) END AS cost_usd,
        min(suite::VARCHAR) AS suite, NULL AS evaluator
    FROM qa_responses WHERE call_status = 'answered' GROUP BY model_variant, request_key
"""
# Of requests without a response, the attempts of unknown cost count.
_OF_FAILED = f"""
    SELECT '{CANDIDATE}', model, model_variant, [request_key], 0, NULL, NULL, NULL, suite::VARCHAR, NULL
    FROM qa_responses WHERE call_status <> 'answered' AND request_key IS NOT NULL
"""
_OF_JUDGES = """
    SELECT 'judge' AS role, judge_model AS model, judge_variant AS model_variant, request_keys, len(raw) AS replies,
        prompt_tokens, completion_tokens, cost_usd, suite::VARCHAR AS suite, evaluator
"""
_SPENT_BY_EVALUATOR = """
    SELECT role, under.suite AS suite, under.evaluator AS evaluator, model, model_variant, count(replies) AS answered,
        coalesce(sum(replies), 0)::BIGINT AS calls, coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens,
        coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
        sum(cost_usd) AS cost_usd, count(*) FILTER (replies > 0 AND cost_usd IS NULL) AS unpriced,
        coalesce(sum(unknown_cost_attempts), 0)::BIGINT AS unknown_cost_attempts, sum(unknown_cost_usd_most) AS unknown_cost_usd_most
    FROM (FROM used UNION ALL BY NAME FROM of_unknown_cost) GROUP BY ALL
    ORDER BY role, cost_usd DESC NULLS LAST, suite, evaluator, model, model_variant
"""


def qa_costs(connection: duckdb.DuckDBPyConnection, stored: StoredUsage, unknown: pa.Table | None = None) -> pa.Table:
    """QA_COSTS, candidates before judges, the dearest of each first. `connection` has the tables of QA_COSTS_READ, or but the first.

    Each call counts once, over all snapshots (`count_calls_once`): one that several suites rest on counts for the first of them by name.
    `unknown`: UNKNOWN_COSTS of the response store.
    """
    for name, schema in (("qa_judgements", QA_JUDGEMENTS), ("qa_anchors", QA_ANCHORS)):
        if not has_table(connection, name):
            connection.register(name, schema.empty_table())  # nobody was ever asked to judge
    asked = f"{_OF_CANDIDATES} UNION ALL {_OF_FAILED} UNION ALL {_OF_JUDGES} FROM qa_judgements UNION ALL {_OF_JUDGES} FROM qa_anchors"
    count_calls_once(connection, asked, stored, under="struct_pack(suite, evaluator)", unknown=unknown)
    return in_schema(connection.execute(_SPENT_BY_EVALUATOR).df(), QA_COSTS)
