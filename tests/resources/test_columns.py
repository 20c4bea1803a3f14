"""Names and types of the columns of every published table, letter by letter: what users' queries and older Parquet files rest on."""

from __future__ import annotations

from pathlib import Path

from resources.warehouse import TABLES

EXPECTED = Path(__file__).with_name("columns.txt")


def test_columns_of_published_tables_are_those_that_are_written_down() -> None:
    found = [
        f"{table}.{field.name}: {field.type}"
        for table, spec in TABLES.items()
        if spec.schema is not None
        for field in spec.schema
    ]
    assert found == EXPECTED.read_text(encoding="utf-8").splitlines()
