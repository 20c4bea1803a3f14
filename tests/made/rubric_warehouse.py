"""Made tables of the rubric family in a warehouse, as a run would leave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.rubric.roll_up_tables import RUBRIC_TABLES
from resources.warehouse import Warehouse
from tests.made.rubric_pages import RubricTables


def keep(made: RubricTables, folder: Path) -> Warehouse:
    """Each table in the folders of its blueprints and snapshots. Columns that a table lacks are null."""
    house = Warehouse(folder)
    for name, rows in made.tables().items():
        spec = RUBRIC_TABLES[name]
        assert spec.schema is not None
        if not spec.levels or not len(rows):
            continue
        whole = pa.table([rows[one.name].cast(one.type) for one in spec.schema], schema=spec.schema)
        for values in whole.select(list(spec.levels)).group_by(list(spec.levels)).aggregate([]).to_pylist():
            part = whole
            for level, value in values.items():
                part = part.filter(pc.equal(part[level], value))
            house.write(name, part, **values)
    return house


def nothing_stored(keys: Sequence[str]) -> pa.Table:
    """What a response store without any response has of these requests."""
    return pa.table({name: [] for name in ("request_key", "prompt_tokens", "completion_tokens", "cost_usd")})
