"""Models that a provider served under one name in one snapshot: a board mixes them, and a line says so."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from dtef_pipeline.text.quantity_words import format_count


def list_mixed_served(connection: duckdb.DuckDBPyConnection, table: str, snapshot: str | None = None) -> Iterator[str]:
    """Yield a line for each model and snapshot whose responses in `table` come from several served models, with the count of each.

    `snapshot`: only this one; None for all.
    """
    columns = [column[0] for column in connection.sql(f"SELECT * FROM {table} LIMIT 0").description]
    number = "count(DISTINCT request_key)" if "request_key" in columns else "count(*)"
    rows = connection.execute(
        f"""
        SELECT any_value(model), snapshot, list(served_model ORDER BY number DESC, served_model),
            list(number ORDER BY number DESC, served_model)
        FROM (
            SELECT max(model) AS model, model_variant, snapshot::VARCHAR AS snapshot, served_model, {number} AS number
            FROM {table} WHERE served_model IS NOT NULL AND ($1 IS NULL OR snapshot::VARCHAR = $1) GROUP BY ALL
        ) GROUP BY model_variant, snapshot HAVING count(*) > 1 ORDER BY 1, 2
        """,
        [snapshot],
    ).fetchall()
    for model, label, names, numbers in rows:
        shares = " and ".join(f"{name} ({format_count(n, 'response')})" for name, n in zip(names, numbers, strict=True))
        yield f"{model} in snapshot {label} was served by {len(names)} models, whose responses are mixed here: {shares}"
