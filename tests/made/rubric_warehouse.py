"""Made tables of the rubric family in a warehouse, as a run would leave them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.board import build_comparisons_table, rubric_board
from dtef_pipeline.rubric.site.blueprint_pages import blueprint_pages
from dtef_pipeline.rubric.site.family_site import RUBRIC_SITE
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.content import DataFile
from dtef_pipeline.site.paths import SCRIPT_MARK
from dtef_pipeline.site.rendering import render_data, render_page
from resources.warehouse import Warehouse
from tests.made.qa_scores import write_parts
from tests.made.rubric_pages import RubricTables, connected


def keep(made: RubricTables, folder: Path) -> Warehouse:
    """Each table in the folders of its blueprints and snapshots. Columns that a table lacks are null."""
    house = Warehouse(folder)
    for name, rows in made.tables().items():
        spec = RUBRIC_TABLES[name]
        assert spec.schema is not None
        if not spec.levels or not len(rows):
            continue
        write_parts(house, name, pa.table([rows[one.name].cast(one.type) for one in spec.schema], schema=spec.schema))
    return house


def keep_blueprint(house: Warehouse, file: Path) -> None:
    """Write the tables of a file without errors, under its name."""
    read = read_blueprint(file, file.stem)
    assert read.blueprint is not None
    for table, rows in build_blueprint_tables(read, read.blueprint, file.name).items():
        house.write(table, rows, blueprint=file.stem)


def nothing_stored(keys: Sequence[str]) -> pa.Table:
    """What a response store without any response has of these requests."""
    return pa.table({name: [] for name in ("request_key", "prompt_tokens", "completion_tokens", "cost_usd")})


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
