"""The calls that rows rest on, each once: texts that read the same share one call, and conversations their first turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:  # the response store reads UNKNOWN_COSTS, and `dtef api` starts without DuckDB
    import duckdb

StoredUsage = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys, with tokens and cost."""

UNKNOWN_COSTS = pa.schema(
    [("request_key", pa.string()), ("unknown_cost_attempts", pa.int64()), ("unknown_cost_usd_most", pa.float64())]
)
"""Requests with calls that may have been billed at an unknown cost, whether they have a response or none."""

_CALLS_USED_ONCE = """
    CREATE OR REPLACE TEMP TABLE used AS
    SELECT role, any_value(model) AS model, model_variant, request_keys, min({under}) AS under, max(replies) AS replies,
        max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens, max(cost_usd) AS cost_usd
    FROM ({asked}) WHERE replies > 0 GROUP BY role, model_variant, request_keys
"""
_OF_UNKNOWN_COST = """
    CREATE OR REPLACE TEMP TABLE of_unknown_cost AS
    SELECT each.*, unknown_cost_attempts, unknown_cost_usd_most
    FROM (
        SELECT role, any_value(model) AS model, model_variant, key, min({under}) AS under
        FROM (SELECT *, unnest(request_keys) AS key FROM ({asked})) GROUP BY role, model_variant, key
    ) AS each
    JOIN unknown_costs ON each.key = unknown_costs.request_key
"""
_SHARING = """
    SELECT request_keys FROM used SEMI JOIN (
        SELECT request_keys FROM (SELECT request_keys, unnest(request_keys) AS key FROM used)
        WHERE key IN (SELECT key FROM (SELECT unnest(request_keys) AS key FROM used) GROUP BY key HAVING count(*) > 1)
    ) AS sharing USING (request_keys)
"""

_SPENT_IN_ALL = """
    SELECT sum(replies)::BIGINT AS calls, sum(prompt_tokens)::BIGINT AS prompt_tokens, sum(completion_tokens)::BIGINT AS completion_tokens,
        sum(cost_usd) AS cost_usd, sum(replies) FILTER (cost_usd IS NULL)::BIGINT AS unpriced,
        sum(unknown_cost_attempts)::BIGINT AS unknown_cost_attempts, sum(unknown_cost_usd_most) AS unknown_cost_usd_most
    FROM (FROM used UNION ALL BY NAME FROM of_unknown_cost)
"""


def spent_in_all(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Sums over the tables `used` and `of_unknown_cost`: `calls`, `prompt_tokens`, `completion_tokens`, `cost_usd`, `unpriced`,
    `unknown_cost_attempts` and `unknown_cost_usd_most`; None where there is no row.

    `unpriced`: calls that are not in `cost_usd`, those of a row where the cost of one of them is not known.
    """
    sums: pa.Table = connection.sql(_SPENT_IN_ALL).to_arrow_table()
    found: dict[str, Any] = sums.to_pylist()[0]
    return found


def count_calls_once(
    connection: duckdb.DuckDBPyConnection, asked: str, stored: StoredUsage, under: str = "NULL", unknown: pa.Table | None = None
) -> None:
    """Make the temporary table `used` of what the query `asked` selects: rows of which every call stands in one, and in one alone.

    The temporary table `of_unknown_cost` has a row for each request of `asked` that stands in `unknown` (UNKNOWN_COSTS; None: there are none),
    with `role`, `model`, `model_variant` and `under` as in `used`.

    `asked` has the columns `role`, `model`, `model_variant`, `request_keys`, `replies`, `prompt_tokens`, `completion_tokens` and `cost_usd`;
    so has `used`. Rows without a reply are left out. Rows that rest on the same calls are one. Where they share some of their calls, and
    not all, each call is a row by itself, as `stored` has it. `under` is an SQL expression over further columns
    of `asked`, and a column of `used`: where rows that rest on one call differ in it, the least value counts.
    """
    # Sums of several threads are added in any order: equal costs are to give equal digits.
    connection.execute("SET threads = 1")
    connection.execute(_CALLS_USED_ONCE.format(asked=asked, under=under))
    connection.register("unknown_costs", UNKNOWN_COSTS.empty_table() if unknown is None else unknown)
    connection.execute(_OF_UNKNOWN_COST.format(asked=asked, under=under))
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
        SELECT role, any_value(model), model_variant, [key], min(under), 1, any_value(calls.prompt_tokens), any_value(calls.completion_tokens),
            any_value(calls.cost_usd)
        FROM (
            SELECT role, model, model_variant, under, unnest(request_keys) AS key FROM used SEMI JOIN sharing USING (request_keys)
        ) AS each
        JOIN calls ON each.key = calls.request_key GROUP BY role, model_variant, key
        """
    )
