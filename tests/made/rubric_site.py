"""The site of made tables of rubrics."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.rubric.board import build_comparisons_table, rubric_board
from dtef_pipeline.rubric.site.blueprint_pages import blueprint_pages
from dtef_pipeline.rubric.site.family_site import RUBRIC_SITE
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.content import DataFile
from dtef_pipeline.site.paths import SCRIPT_MARK
from dtef_pipeline.site.rendering import render_data, render_page
from tests.made.rubric_pages import RubricTables, connected


def whole(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """The tables, and those that are missing without rows, as the warehouse gives them."""
    empty = {name: spec.schema.empty_table() for name, spec in RUBRIC_TABLES.items()}
    return connected({**empty, **tables})


def rolled_up(made: RubricTables | Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """The tables with the boards that follow from them."""
    tables = dict(made.tables() if isinstance(made, RubricTables) else made)
    connection = whole(tables)
    boards = {"rubric_board": rubric_board(connection), "comparisons": build_comparisons_table(connection)}
    for name, rows in boards.items():
        if name not in tables:
            connection.register(name, rows)
    return connection


def site_of(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Every page and data file, without what all sites share."""
    files = build_site_files(connection, [RUBRIC_SITE], {"rubric": ()}, "made for a test")
    return {path: text for path, text in files if not path.startswith("static/")}


def blueprint_site_of(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """The blueprint pages and their data, without boards, comparisons and all other pages."""
    return {
        page.path: render_data(page) if isinstance(page, DataFile) else render_page(page, {"navigation": [], "made": ""})
        for page in blueprint_pages(RubricRows(whole(tables)))
    }


def data_of(script: str) -> Any:
    """What a data file holds."""
    found = re.fullmatch(rf'{re.escape(SCRIPT_MARK)}dtef\.receive\("([^"]+)","([A-Za-z0-9+/=]+)"\);\n', script)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[2])))
