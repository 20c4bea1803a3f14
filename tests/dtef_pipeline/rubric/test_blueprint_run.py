from __future__ import annotations

import duckdb
import pyarrow as pa

from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.rubric.blueprint_run import RowsByPrompt


def rows_of(**tables: pa.Table) -> StoredRows:
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    return StoredRows(connection)


def test_columns_and_tables_that_are_not_there_are_null_or_empty() -> None:
    rows = rows_of(kept=pa.table({"a": [2, 1], "b": ["x", "y"]}))
    assert rows.rows("kept", ("a", "gone"), {"gone": 5}, ("a", "gone")) == [{"a": 1, "gone": None}, {"a": 2, "gone": None}]
    assert rows.rows("kept", ("b",), {"a": 2}) == [{"b": "x"}]
    assert rows.rows("nothing", ("a",), {"a": 1}) == []
    assert len(rows.frame("nothing")) == 0


def test_a_value_is_never_sql() -> None:
    rows = rows_of(kept=pa.table({"a": ["x' OR 1=1 --", "y"]}))
    assert rows.rows("kept", ("a",), {"a": "x' OR 1=1 --"}) == [{"a": "x' OR 1=1 --"}]


def test_rows_are_handed_out_by_prompt() -> None:
    held = RowsByPrompt(pa.table({"prompt": ["a", "a", "c"], "n": [1, 2, 3]}))
    assert [row["n"] for row in held.list_rows_of_prompt("a")] == [1, 2]
    assert [row["n"] for row in held.list_rows_of_prompt("c")] == [3]
    assert held.list_rows_of_prompt("b") == []
    assert RowsByPrompt(pa.table({"prompt": pa.nulls(0)})).list_rows_of_prompt("a") == []
