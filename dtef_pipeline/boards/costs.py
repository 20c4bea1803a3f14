"""What language models cost: calls, tokens and dollars, from the `predictions` table. The one place where usage is added up.

A **request** is one draw of one prompt by one model variant in one snapshot: what is paid for, once. Several prediction rows can stand on
one request (the items of a batch, a prompt that reads the same asked in two ways or in two partitions); its usage then counts once, under the
first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import COMPUTED, COMPUTED_SQL
from dtef_pipeline.asking.request import LAST_ERROR
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import MODEL, Keys
from dtef_pipeline.tables import SPENDING


def cost_views(keys: Keys) -> Mapping[str, tuple[str, ...]]:
    """What costs can be broken down by, and the columns that take part: `suite`, `blueprint`, and all ways of asking but the first."""
    first, second = keys.space
    others = {name: (name,) for name in keys.asked[1:]}
    return {"model": MODEL, first: (first,), second: keys.space, "snapshot": ("snapshot",), **others}


def requests_sql(keys: Keys) -> str:
    """One row per request of a language model, with the partition, way of asking and model name under which it counts."""
    # Rows of one request may have been written by different runs, so each of its values is looked for in all of them. An item that shares a
    # prompt with an earlier one has cost 0, also when the price is unknown; the earlier one then has none.
    place = ", ".join((*keys.space, *reversed(keys.asked), "model"))
    return f"""
    SELECT place.*, found.* EXCLUDE (place) FROM (
        SELECT request_key, min(struct_pack({place})) AS place,
            any_value(snapshot) AS snapshot, any_value(model_variant) AS model_variant,
            bool_or(call_status = 'answered') AS answered, NOT answered AND bool_or(call_status = 'error') AS failed,
            NOT answered AND NOT failed AND bool_or(call_status = 'budget') AS stopped,
            max(prompt_tokens) AS prompt_tokens, max(completion_tokens) AS completion_tokens,
            CASE WHEN max(cost_usd) > 0 OR NOT bool_or(call_status = 'answered' AND cost_usd IS NULL) THEN max(cost_usd) END AS cost_usd,
            max(reported_cost_usd) AS reported_cost_usd, max(cached_tokens) AS cached_tokens, max(reasoning_tokens) AS reasoning_tokens,
            max(unknown_cost_attempts) AS unknown_cost_attempts, max(unknown_cost_usd_most) AS unknown_cost_usd_most,
            any_value(error) FILTER (call_status <> 'answered') AS reason
        FROM predictions WHERE NOT {COMPUTED_SQL} GROUP BY request_key
    ) AS found
"""


_SPENT = """
    count(*) FILTER (answered) AS answered, count(*) FILTER (failed) AS failed, count(*) FILTER (stopped) AS budget_stopped,
    coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens, coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens,
    sum(cost_usd) AS cost_usd, count(*) FILTER (answered AND cost_usd IS NULL) AS unpriced,
    sum(reported_cost_usd) AS reported_cost_usd,
    coalesce(sum(cached_tokens), 0)::BIGINT AS cached_tokens, coalesce(sum(reasoning_tokens), 0)::BIGINT AS reasoning_tokens,
    coalesce(sum(unknown_cost_attempts), 0)::BIGINT AS unknown_cost_attempts,
    sum(unknown_cost_usd_most) AS unknown_cost_usd_most
"""

_USED_BY_MODEL = (*MODEL, *(column.name for column in SPENDING))
_DOLLAR_SUMS = frozenset(column.name for column in SPENDING if pa.types.is_floating(column.type))


def costs(connection: duckdb.DuckDBPyConnection, keys: Keys) -> pa.Table:
    """The `costs` table: one row per partition, snapshot, model variant and way of asking. `connection` has a `predictions` view.

    Of the ways of asking the first does not count: what is paid for once may stand in several of its values.
    """
    _add_in_one_order(connection)
    names = (*keys.space, "snapshot", *MODEL, *keys.asked[1:])
    by = ", ".join(names)
    sql = f"SELECT {by}, {_SPENT} FROM ({requests_sql(keys)}) GROUP BY ALL ORDER BY {by}"
    rows: pa.Table = connection.sql(sql).to_arrow_table()
    return rows.cast(pa.schema([*(rows.schema.field(name) for name in names), *SPENDING]))


def cost_breakdown(
    connection: duckdb.DuckDBPyConnection,
    by: Sequence[str],
    keys: Keys,
    *,
    only: Sequence[str] = (),
    snapshot: str | None = None,
    variants: Sequence[str] = (),
) -> pd.DataFrame:
    """Costs summed by one or several of `cost_views`, dearest first. `connection` has a `predictions` view.

    Columns: those of the views and of the sums in `costs`, and `reason` (why requests failed, the commonest), `stop_reason` (what budget
    stopped them, and the last error of those that were sent, the commonest of each). `only` (values of the space's first level), `snapshot`
    and model `variants` narrow what is counted. Raises ConfigError for an unknown view.
    """
    views = cost_views(keys)
    if unknown := [view for view in by if view not in views]:
        raise ConfigError(f"costs by {', '.join(unknown)}: allowed: {', '.join(views)}")
    _add_in_one_order(connection)
    named = ", ".join(dict.fromkeys(column for view in by for column in views[view]))
    wanted = {"only": list(only), "snapshot": snapshot, "variants": list(variants)}
    conditions = {
        "only": f"list_contains($only, {keys.space[0]})",
        "snapshot": "snapshot = $snapshot",
        "variants": "list_contains($variants, model_variant)",
    }
    given = {name: value for name, value in wanted.items() if value}
    return connection.execute(
        f"""
        SELECT {named}, {_SPENT}, mode(reason) FILTER (failed) AS reason,
            mode(split_part(reason, $last, 1)) FILTER (stopped)
                || coalesce($last || mode(nullif(split_part(reason, $last, 2), '')) FILTER (stopped), '') AS stop_reason
        FROM ({requests_sql(keys)})
        WHERE {" AND ".join(conditions[name] for name in given) or "true"} GROUP BY {named} ORDER BY cost_usd DESC NULLS LAST, {named}
        """,
        {**given, "last": LAST_ERROR},
    ).df()


def usage_by_model(rows: pa.Table, keys: Keys) -> pa.Table:
    """What each language model used in these rows of calls, dearest first: the columns of `cost_breakdown` by model but the reasons.

    Where no two rows share a request, as in nearly every partition, without a database: opening one takes longer than adding up.
    """
    asked = rows.filter(pc.invert(pc.starts_with(rows["model_variant"], COMPUTED)))
    if pc.count_distinct(asked["request_key"]).as_py() == len(asked):
        return _added_up(asked)
    with duckdb.connect() as connection:
        connection.register("predictions", asked)
        found = cost_breakdown(connection, ["model"], keys)
    return pa.Table.from_pandas(found[list(_USED_BY_MODEL)], preserve_index=False)


def _added_up(requests: pa.Table) -> pa.Table:
    status, cost = requests["call_status"], requests["cost_usd"]
    is_answered, is_failed = pc.equal(status, "answered"), pc.equal(status, "error")
    counted = {
        "answered": is_answered,
        "failed": is_failed,
        "budget_stopped": pc.equal(status, "budget"),
        "unpriced": pc.and_(is_answered, pc.is_null(cost)),
    }
    counted |= {name: requests[name] for name in _DOLLAR_SUMS}
    counted |= {name: pc.fill_null(requests[name], 0) for name in _USED_BY_MODEL if name not in (*MODEL, *counted)}
    whole = pa.table({**{name: requests[name] for name in MODEL}, **counted})
    sums = whole.group_by(list(MODEL), use_threads=False).aggregate([(name, "sum") for name in counted])
    columns = [sums[f"{column.name}_sum"].cast(column.type) for column in SPENDING]
    found = pa.table([*(sums[name] for name in MODEL), *columns], names=_USED_BY_MODEL)
    # The dearest first; those without a known cost come last.
    return found.sort_by([("cost_usd", "descending"), *((name, "ascending") for name in MODEL)])


def answer_lengths(connection: duckdb.DuckDBPyConnection, keys: Keys, only: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Mean tokens of the responses to requests so far, by model variant and all ways of asking but the first.

    `connection` has a `predictions` view; `only`: these values of the space's first level.
    """
    rows = connection.execute(
        f"""
        SELECT {", ".join(("model_variant", *keys.asked[1:]))}, avg(completion_tokens) FROM ({requests_sql(keys)})
        WHERE answered AND completion_tokens > 0 AND list_contains($only, {keys.space[0]}) GROUP BY ALL
        """,
        {"only": list(only)},
    ).fetchall()
    return {tuple(key): mean for *key, mean in rows}


def _add_in_one_order(connection: duckdb.DuckDBPyConnection) -> None:
    """Sums of several threads are added in any order: equal costs are to give equal digits."""
    connection.execute("SET threads = 1")
