"""What language models cost: calls, tokens and dollars, from the `predictions` table. The one place where usage is added up.

A **request** is one draw of one prompt by one model variant in one snapshot: what is paid for, once. Several prediction rows can stand on
one request (the questions of a batch, a prompt that reads the same at two context levels or in two rounds); its usage then counts once,
under the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.tables import SPENDING

VIEWS: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "model_variant"),
    "round": ("round",),
    "segment": ("round", "segment"),
    "snapshot": ("snapshot",),
    "condition": ("condition",),
}
"""What costs can be broken down by, and the columns that take part."""

_KEYS = ("round", "segment", "snapshot", "model", "model_variant", "condition")

# Rows of one request may have been written by different runs, so each of its values is looked for in all of them. A question that shares a
# prompt with an earlier one has cost 0, also when the price is unknown; the earlier one then has none.
REQUESTS_SQL = f"""
    SELECT place.*, found.* EXCLUDE (place) FROM (
        SELECT request_key, min(struct_pack(round, segment, condition, context_level, model)) AS place,
            any_value(snapshot) AS snapshot, any_value(model_variant) AS model_variant,
            bool_or(call_status = 'answered') AS answered, NOT answered AND bool_or(call_status = 'error') AS failed,
            NOT answered AND NOT failed AS stopped, max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens,
            CASE WHEN max(cost_usd) > 0 OR NOT bool_or(call_status = 'answered' AND cost_usd IS NULL) THEN max(cost_usd) END AS cost_usd,
            any_value(error) FILTER (call_status <> 'answered') AS reason
        FROM predictions WHERE NOT {COMPUTED_SQL} GROUP BY request_key
    ) AS found
"""
"""One row a request of a language model, with the round, segment, condition, context level and model name under which it counts."""

_SUMS = """
    count(*) FILTER (answered) AS answered, count(*) FILTER (failed) AS failed, count(*) FILTER (stopped) AS budget_stopped,
    coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens, coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
    sum(cost_usd) AS cost_usd, count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced
"""


def costs(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The `costs` table: one row a (round, segment, snapshot, model variant, condition). `connection` has a `predictions` view."""
    _add_in_one_order(connection)
    keys = ", ".join(_KEYS)
    sql = f"SELECT {keys}, {_SUMS} FROM ({REQUESTS_SQL}) GROUP BY ALL ORDER BY {keys}"
    rows: pa.Table = connection.sql(sql).to_arrow_table()
    return rows.cast(pa.schema([*(rows.schema.field(key) for key in _KEYS), *SPENDING]))


def cost_breakdown(
    connection: duckdb.DuckDBPyConnection,
    by: Sequence[str],
    *,
    rounds: Sequence[str] = (),
    snapshot: str | None = None,
    variants: Sequence[str] = (),
) -> pd.DataFrame:
    """Costs summed by one or several of VIEWS, dearest first. `connection` has a `predictions` view.

    Columns: those of the views and of the sums in `costs`, and `reason` (why requests failed, the commonest), `stop_reason` (what budget
    stopped them, the commonest). `rounds`, `snapshot` and model `variants` narrow what is counted. Raises ConfigError for an unknown view.
    """
    if unknown := [view for view in by if view not in VIEWS]:
        raise ConfigError(f"costs by {', '.join(unknown)}: allowed: {', '.join(VIEWS)}")
    _add_in_one_order(connection)
    keys = ", ".join(dict.fromkeys(column for view in by for column in VIEWS[view]))
    wanted = {"rounds": list(rounds), "snapshot": snapshot, "variants": list(variants)}
    conditions = {
        "rounds": "list_contains($rounds, round)",
        "snapshot": "snapshot = $snapshot",
        "variants": "list_contains($variants, model_variant)",
    }
    given = {name: value for name, value in wanted.items() if value}
    return connection.execute(
        f"""
        SELECT {keys}, {_SUMS}, mode(reason) FILTER (failed) AS reason,
            mode(reason) FILTER (stopped) AS stop_reason
        FROM ({REQUESTS_SQL})
        WHERE {" AND ".join(conditions[name] for name in given) or "true"} GROUP BY {keys} ORDER BY cost_usd DESC NULLS LAST, {keys}
        """,
        given,
    ).df()


def answer_lengths(connection: duckdb.DuckDBPyConnection, rounds: Sequence[str]) -> dict[tuple[str, str], float]:
    """Mean tokens of the answers to requests so far, by (model variant, condition). `connection` has a `predictions` view."""
    rows = connection.execute(
        f"""
        SELECT model_variant, condition, avg(completion_tokens) FROM ({REQUESTS_SQL})
        WHERE answered AND completion_tokens > 0 AND list_contains($rounds, round) GROUP BY ALL
        """,
        {"rounds": list(rounds)},
    ).fetchall()
    return {(variant, condition): mean for variant, condition, mean in rows}


def _add_in_one_order(connection: duckdb.DuckDBPyConnection) -> None:
    """Sums of several threads are added in any order: equal costs are to give equal digits."""
    connection.execute("SET threads = 1")
