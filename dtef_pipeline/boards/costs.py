"""Usage of language models: calls, tokens and dollars, from a family's call tables. The only place where usage is summed.

A **request** is paid for once: one call, or the calls of one conversation. Several rows can share a request (the items of a batch, the same
text in two partitions, repeated judgements); its usage then counts under the first of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.asking.request import EMBEDDER, LAST_ERROR, ROLES
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.boards.family_calls import UNKNOWN_COSTS, FamilyCalls, StoredUsage
from dtef_pipeline.keys import MODEL
from dtef_pipeline.tables import COSTS, convert_to_schema

_COUNTED_UNDER = ("first_level", "second_level", "snapshot", "purpose", "setting", "model")
"""Under what a request counts: the least values, compared in this order, of the rows that stand on it."""
_CALL_ROWS = """
    SELECT {role}::VARCHAR AS role, {variant}::VARCHAR AS model_variant, {keys} AS request_keys, ({replies})::BIGINT AS n_replies,
        {status} AS status, {error}::VARCHAR AS error,
        prompt_tokens::BIGINT AS prompt_tokens, completion_tokens::BIGINT AS completion_tokens, cost_usd,
        {attempts}::BIGINT AS attempts, {unknown_cost_limit}::DOUBLE AS unknown_cost_limit,
        struct_pack(first_level := {first}::VARCHAR, second_level := {second}::VARCHAR, snapshot := {snapshot}::VARCHAR,
            purpose := {purpose}::VARCHAR, setting := {setting}::VARCHAR, model := {model}::VARCHAR) AS place
    FROM {table} WHERE {only} AND {is_asked} AND NOT starts_with({variant}, '{computed}')
"""
# Rows of one request may have been written by different runs, so each of its values is looked for in all of them. A row that shares a
# request with an earlier one has cost 0, also when the price is unknown; the earlier one then has none.
_EACH_REQUEST = """
    SELECT place.*, found.* EXCLUDE (place), replies > 0 AS answered, replies = 0 AND n_failed > 0 AS failed,
        replies = 0 AND n_failed = 0 AND n_stopped > 0 AS budget_stopped
    FROM (
        SELECT role, model_variant, request_keys, min(place) AS place, coalesce(max(n_replies), 0) AS replies,
            count(*) FILTER (status = 'error') AS n_failed, count(*) FILTER (status = 'budget') AS n_stopped,
            max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens,
            CASE WHEN max(cost_usd) > 0 OR NOT bool_or(n_replies > 0 AND cost_usd IS NULL) THEN max(cost_usd) END AS cost_usd,
            max(attempts) AS unknown_cost_attempts, max(unknown_cost_limit) AS unknown_cost_usd_most,
            any_value(error) FILTER (coalesce(n_replies, 0) = 0) AS reason
        FROM ({rows}) GROUP BY role, model_variant, request_keys
    ) AS found
"""
_SHARED_CALLS = """
    SELECT request_keys FROM used SEMI JOIN (
        SELECT request_keys FROM (SELECT request_keys, unnest(request_keys) AS key FROM used WHERE answered)
        WHERE key IN (SELECT key FROM (SELECT unnest(request_keys) AS key FROM used WHERE answered) GROUP BY key HAVING count(*) > 1)
    ) AS sharing USING (request_keys)
"""
_EACH_KEY = (
    f"SELECT role, model_variant, struct_pack({', '.join(_COUNTED_UNDER)}) AS place, unnest(request_keys) AS key FROM used"
)
_EACH_CALL = f"""
    SELECT place.*, found.* EXCLUDE (place) FROM (
        SELECT min(place) AS place, role, model_variant, [key] AS request_keys, 1 AS replies, true AS answered, false AS failed,
            false AS budget_stopped, any_value(calls.prompt_tokens) AS prompt_tokens,
            any_value(calls.completion_tokens) AS completion_tokens, any_value(calls.cost_usd) AS cost_usd
        FROM ({_EACH_KEY} SEMI JOIN sharing USING (request_keys)) AS each
        JOIN calls ON each.key = calls.request_key GROUP BY role, model_variant, key
    ) AS found
"""
_OF_UNKNOWN_COST = f"""
    SELECT place.*, found.* EXCLUDE (place) FROM (
        SELECT min(place) AS place, role, model_variant, any_value(unknown_costs.unknown_cost_attempts) AS unknown_cost_attempts,
            any_value(unknown_costs.unknown_cost_usd_most) AS unknown_cost_usd_most
        FROM ({_EACH_KEY} WHERE unknown_cost_attempts IS NULL) AS each
        JOIN unknown_costs ON each.key = unknown_costs.request_key GROUP BY role, model_variant, key
    ) AS found
"""
_USAGE_SUMS = """
    count(*) FILTER (answered) AS answered, count(*) FILTER (failed) AS failed, count(*) FILTER (budget_stopped) AS budget_stopped,
    coalesce(sum(replies), 0)::BIGINT AS calls, coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens,
    coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens, sum(cost_usd) AS cost_usd,
    count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced,
    coalesce(sum(unknown_cost_attempts), 0)::BIGINT AS unknown_cost_attempts, sum(unknown_cost_usd_most) AS unknown_cost_usd_most
"""
_IDENTIFYING_COLUMNS = ("role", "first_level", "second_level", "snapshot", "purpose", "model", "model_variant")


def requests_sql(family: FamilyCalls, tables: Collection[str] | None = None) -> str:
    """Return SQL for one row per request of a language model, with the place it counts under. `tables`: those available; None for all."""
    rows = []
    for calls in family.tables:
        if tables is None or calls.table in tables:
            is_single = calls.keys == "request_key"
            fields = {
                **{name: getattr(calls, name) for name in calls.__slots__},
                "keys": "[request_key]" if is_single else calls.keys,
                "is_asked": "request_key IS NOT NULL" if is_single else f"len({calls.keys}) > 0",
                "first": calls.first or family.space.first,
                "second": calls.second or family.space.second or "NULL",
                "computed": COMPUTED,
            }
            rows.append(_CALL_ROWS.format(**fields))
    return _EACH_REQUEST.format(rows=" UNION ALL ".join(rows))


def count_calls_once(
    connection: duckdb.DuckDBPyConnection, family: FamilyCalls, lookup: StoredUsage, unknown: pa.Table | None = None
) -> None:
    """Create the temporary tables `used` (see `requests_sql`), with every call in only one row, and `of_unknown_cost`.

    Requests that share some but not all of their calls become one row per call, from `lookup`. `of_unknown_cost` has a row for each call in
    `unknown` (UNKNOWN_COSTS; None if there are none). `connection` has the available tables of the family.
    """
    # Sums of several threads are added in any order: equal costs are to give equal digits.
    connection.execute("SET threads = 1")
    tables = [calls.table for calls in family.tables if has_table(connection, calls.table)]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE used AS {requests_sql(family, tables)}")
    connection.register("unknown_costs", UNKNOWN_COSTS.empty_table() if unknown is None else unknown)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE of_unknown_cost AS {_OF_UNKNOWN_COST}")
    connection.execute(
        "DELETE FROM used WHERE NOT (answered OR failed OR budget_stopped OR coalesce(cost_usd, unknown_cost_attempts, 0) > 0)"
    )
    if all(calls.keys == "request_key" for calls in family.tables):
        return
    lists = [keys for (keys,) in connection.execute(_SHARED_CALLS).fetchall()]
    if not lists:
        return
    usage = lookup(sorted({key for keys in lists for key in keys}))
    connection.register("calls", usage.select(["request_key", "prompt_tokens", "completion_tokens", "cost_usd"]))
    connection.register("sharing", pa.table({"request_keys": pa.array(lists, pa.list_(pa.string()))}))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE used AS
        SELECT * FROM used ANTI JOIN sharing USING (request_keys) UNION ALL BY NAME {_EACH_CALL}
        """
    )


def costs(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    family: FamilyCalls,
    lookup: StoredUsage,
    *,
    unknown: pa.Table | None = None,
    summary: pa.Table | None = None,
) -> pa.Table:
    """Return the COSTS of the family `name`: candidates first, most expensive first in each role. `connection` has its available tables.

    `lookup` and `unknown`: see `count_calls_once`; `summary`: of the response store, by model, snapshot and role.
    """
    count_calls_once(connection, family, lookup, unknown)
    columns = ", ".join(_IDENTIFYING_COLUMNS)
    every = "FROM used UNION ALL BY NAME FROM of_unknown_cost"
    rows = connection.execute(f"SELECT {columns}, {_USAGE_SUMS} FROM ({every}) GROUP BY {columns}").df()
    if family.embeds and summary is not None:
        rows = pd.concat([part for part in (rows, _load_embedder_costs(summary)) if len(part)] or [rows], ignore_index=True)
    place = rows["role"].map({role: index for index, role in enumerate(ROLES)})
    table = rows.assign(place=place, family=name).sort_values(
        ["place", "cost_usd", *_IDENTIFYING_COLUMNS[1:]], ascending=[True, False, *[True] * len(_IDENTIFYING_COLUMNS[1:])]
    )
    return convert_to_schema(table, COSTS)


def _load_embedder_costs(summary: pa.Table) -> pd.DataFrame:
    """Return the usage of embedders by model and snapshot."""
    rows = summary.to_pandas()
    rows = rows[rows["role"] == EMBEDDER].rename(columns={"responses": "calls"})
    unknown = {"first_level": None, "second_level": None, "purpose": None, "model_variant": None, "unknown_cost_usd_most": None}
    counts = {"answered": rows["calls"], "failed": 0, "budget_stopped": 0, "unknown_cost_attempts": 0}
    result: pd.DataFrame = rows.assign(**unknown, **counts)
    return result


def sum_usage(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Sum `calls`, `prompt_tokens`, `completion_tokens`, `cost_usd`, `unpriced`, `unknown_cost_attempts` and `unknown_cost_usd_most` over
    the tables `used` and `of_unknown_cost`; None if nothing is known.

    `unpriced`: calls not in `cost_usd`, all those of a row of unknown cost.
    """
    sums: pa.Table = connection.sql(
        f"""
        SELECT {_USAGE_SUMS}, coalesce(sum(replies) FILTER (cost_usd IS NULL), 0)::BIGINT AS unpriced_calls
        FROM (FROM used UNION ALL BY NAME FROM of_unknown_cost)
        """
    ).to_arrow_table()
    totals: dict[str, Any] = sums.to_pylist()[0]
    return {**totals, "unpriced": totals.pop("unpriced_calls")}


def load_costs(
    connection: duckdb.DuckDBPyConnection,
    family: FamilyCalls,
    group_by: Sequence[str],
    *,
    only: Sequence[str] = (),
    snapshot: str | None = None,
    variants: Sequence[str] = (),
) -> pd.DataFrame:
    """Sum requests by columns of COSTS, the most expensive first. `connection` has the tables of the family.

    Columns: `group_by`, the sums in COSTS, `reason` (most common reason for failed requests) and `stop_reason` (most common budget that stopped
    requests, and most common last error of those that were sent). `only` (values of the space's first level), `snapshot` and model
    `variants` select requests.
    """
    connection.execute("SET threads = 1")
    named = ", ".join(group_by)
    filters = {"only": list(only), "snapshot": snapshot, "variants": list(variants)}
    conditions = {
        "only": "list_contains($only, first_level)",
        "snapshot": "snapshot = $snapshot",
        "variants": "list_contains($variants, model_variant)",
    }
    parameters = {name: value for name, value in filters.items() if value}
    return connection.execute(
        f"""
        SELECT {named}, {_USAGE_SUMS}, mode(reason) FILTER (failed) AS reason,
            mode(split_part(reason, $last, 1)) FILTER (budget_stopped)
                || coalesce($last || mode(nullif(split_part(reason, $last, 2), '')) FILTER (budget_stopped), '') AS stop_reason
        FROM ({requests_sql(family)})
        WHERE {" AND ".join(conditions[name] for name in parameters) or "true"} GROUP BY {named} ORDER BY cost_usd DESC NULLS LAST, {named}
        """,
        {**parameters, "last": LAST_ERROR},
    ).df()


def sum_usage_by_model(rows: pa.Table, family: FamilyCalls) -> pa.Table:
    """Return the usage of each language model in these rows of a family's only call table (see `load_costs`)."""
    model_rows = rows.filter(pc.invert(pc.starts_with(rows["model_variant"], COMPUTED)))
    with duckdb.connect() as connection:
        connection.register(family.tables[0].table, model_rows)
        return pa.Table.from_pandas(load_costs(connection, family, MODEL), preserve_index=False)
