"""The site of the qa family made of its tables, for tests and for looking at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa

from dtef_pipeline.qa.site.family_site import QA_SITE, read
from dtef_pipeline.qa.suites import build_qa_boards
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.content import DataFile, Page
from dtef_pipeline.site.family_content import FamilyContent
from tests.made.qa_tables import QaMade


def connected_qa(tables: Mapping[str, pa.Table], *, boards: bool = True) -> duckdb.DuckDBPyConnection:
    """A connection with the tables, and the boards of their scores."""
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    for name, rows in (build_qa_boards(connection, exposure={"mmlu": "public for long"}) if boards else {}).items():
        connection.register(name, rows)
    return connection


def view_of(made: QaMade, *, boards: bool = True) -> FamilyContent:
    """What the family shows."""
    return read(connected_qa(made.tables(), boards=boards))


def pages_of(view: FamilyContent) -> dict[str, Page]:
    """Its pages of details by path."""
    return {one.path: one for one in view.pages() if isinstance(one, Page)}


def data_of(view: FamilyContent) -> dict[str, Any]:
    """The values of its data files by path."""
    return {one.path: one.value for one in view.pages() if isinstance(one, DataFile)}


def items_of(data: Mapping[str, Any], suite: str) -> list[dict[str, Any]]:
    """Every item of a suite as the explorer opens it, in order."""
    folder = f"qa/suites/{suite}/items-"
    paths = sorted((path for path in data if path.startswith(folder)), key=lambda path: int(path.removeprefix(folder)[:-3]))
    return [item for path in paths for item in data[path]["items"]]


def qa_site_files(made: QaMade) -> dict[str, str]:
    """Every file of a site of this family alone, without those that all sites share: the chart library takes seconds."""
    with mock.patch("dtef_pipeline.site.build.static_files", return_value=()):
        return dict(build_site_files(connected_qa(made.tables()), [QA_SITE], {}, "Made today."))
