"""The pages that are made of tables of the qa family, for tests and for looking at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.qa.report.part_page import qa_pages
from dtef_pipeline.qa.suite_boards import qa_boards
from tests.made.qa_tables import QaMade


def connected_qa(tables: Mapping[str, pa.Table], *, boards: bool = True) -> duckdb.DuckDBPyConnection:
    """A connection with the tables, and the boards of their scores."""
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    for name, rows in (qa_boards(connection, exposure={"mmlu": "public for long"}) if boards else {}).items():
        connection.register(name, rows)
    return connection


def qa_pages_of(made: QaMade, **options: Any) -> dict[str, str]:
    return dict(qa_pages(connected_qa(made.tables()), **options))


def written_qa_pages(folder: Path, made: QaMade, **options: Any) -> Path:
    for name, page in qa_pages_of(made, **options).items():
        (folder / name).write_text(page, encoding="utf-8")
    return folder
