"""Roll-ups of families, built from their records."""

from inspect import cleandoc
from typing import Any

import dagster as dg
import pyarrow.compute as pc

from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.table_publishing import publish_tables, require_made
from dtef_pipeline.family.record import Family, FamilyBoard, Preview
from dtef_pipeline.family.stage import Tables


def build_board_asset(family: Family, board: FamilyBoard) -> dg.AssetsDefinition:
    """Return a board's asset, which publishes its tables."""

    def compute(store: Store) -> dg.MaterializeResult[Any]:
        require_scored(store, family)
        tables = store.warehouse.query(lambda connection: board.make(connection, store), only=board.reads)
        previews = {name: _show_preview(tables, preview) for name, preview in board.previews.items()}
        return publish_tables(store, tables, family=family.name, **board.metadata(tables, store), **previews)

    deps = [dg.AssetKey(name) for name in board.after or (family.scores_table,)]
    options = {**roll_up(board.table or board.name, code_version=board.version), "group_name": family.name}
    asset: dg.AssetsDefinition = dg.asset(name=board.name, deps=deps, description=cleandoc(board.description), **options)(
        compute
    )
    return asset


def require_scored(store: Store, family: Family) -> None:
    """Raise WarehouseError if nothing of the family is scored."""
    require_made(store, family.scores_table, family.part, f"dtef {family.name} run")


def _show_preview(tables: Tables, preview: Preview) -> Any:
    rows = tables[preview.table]
    selection = rows.filter(pc.equal(rows["cut"], preview.cut)) if preview.cut else rows
    return markdown(selection, [name for name in preview.columns if name in rows.column_names], n=preview.most)
