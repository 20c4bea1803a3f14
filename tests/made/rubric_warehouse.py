"""Made tables of the rubric family in a warehouse, as a run would leave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from resources.warehouse import Warehouse
from tests.made.qa_scores import write_parts
from tests.made.rubric_pages import RubricTables


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
