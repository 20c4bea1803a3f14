"""What policies are replayed over, read from the tables: score, cost and latency of every response."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

OUTCOMES_READ = ("qa_scores", "qa_responses", "qa_items")
"""The tables that policies are replayed from."""
_SAME_ASKED = " AND ".join(
    f"own.{name}::VARCHAR = scored.{name}::VARCHAR"
    for name in ("suite", "part", "item_id", "condition", "model_variant", "draw", "snapshot")
)


def scored_outcomes(connection: duckdb.DuckDBPyConnection, latest: pa.Table, where: Mapping[str, str]) -> pa.Table:
    """One row per response, in the order of the items: `suite`, `item_id` (part/item), `model` (the variant), `name`, `cluster`, `score` (null:
    none), `cost_usd`, `latency_s` (null: not known) and `text_length` in characters.

    `latest`: rows of `latest_scores`; `where`: the values of columns of these that are meant. `connection` has the tables of OUTCOMES_READ.
    """
    chosen = " AND ".join(f"{column} = ${column}" for column in where) or "true"
    connection.register("scores_replayed", latest)
    found = connection.sql(
        f"""
        WITH scored AS (SELECT * FROM scores_replayed WHERE {chosen})
        SELECT scored.suite::VARCHAR AS suite, scored.part || '/' || scored.item_id AS item_id, scored.model_variant::VARCHAR AS model,
            scored.model::VARCHAR AS name, scored.cluster::VARCHAR AS cluster, scored.score, own.cost_usd, own.latency_s,
            length(items.text) AS text_length
        FROM scored LEFT JOIN qa_responses AS own ON {_SAME_ASKED}
        LEFT JOIN qa_items AS items ON items.suite::VARCHAR = scored.suite::VARCHAR AND items.part::VARCHAR = scored.part::VARCHAR
            AND items.item_id = scored.item_id
        ORDER BY scored.part, scored.item_id, model, scored.draw
        """,
        params=dict(where),
    ).to_arrow_table()
    connection.unregister("scores_replayed")
    return found
