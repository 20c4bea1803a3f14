"""Roll-ups of families, made of their records: boards, and the pages of the report."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import cleandoc
from typing import Any

import dagster as dg
import duckdb
import pyarrow.compute as pc

from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, published_pages, require_made
from assets.stage.resources import Store
from dtef_pipeline.families import SHARED_TABLES
from dtef_pipeline.family.record import Family, FamilyBoard, Preview
from dtef_pipeline.family.stage import Tables
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ

Pages = Callable[[duckdb.DuckDBPyConnection], Iterable[tuple[str, str]]]
"""(file name, HTML) of each page of a report."""


def define_board(family: Family, board: FamilyBoard) -> dg.AssetsDefinition:
    """The asset of a board, which publishes its tables."""

    def compute(store: Store) -> dg.MaterializeResult[Any]:
        require_scored(store, family)
        tables = store.warehouse.query(lambda connection: board.make(connection, store), only=board.reads)
        previews = {name: _show_preview(tables, one) for name, one in board.previews.items()}
        return published(store, tables, family=family.name, **board.metadata(tables, store), **previews)

    deps = [dg.AssetKey(name) for name in board.after or (family.scored,)]
    described = {**roll_up(board.table or board.name, code_version=board.version), "group_name": family.name}
    made: dg.AssetsDefinition = dg.asset(name=board.name, deps=deps, description=cleandoc(board.description), **described)(
        compute
    )
    return made


def require_scored(store: Store, family: Family) -> None:
    """Raises WarehouseError where nothing of the family is scored."""
    require_made(store, family.scored, family.part, f"dtef {family.name} run")


def _show_preview(tables: Tables, preview: Preview) -> Any:
    rows = tables[preview.table]
    shown = rows.filter(pc.equal(rows["cut"], preview.cut)) if preview.cut else rows
    return markdown(shown, preview.columns, most=preview.most)


def define_report(
    family: Family,
    deps: Sequence[Any],
    description: str,
    pages: Callable[[Store], Pages],
    *,
    version: str = "1",
    reads: Collection[str] | None = None,
    needs_scores: bool = True,
    told: Callable[[Mapping[str, int]], Mapping[str, Any]] = lambda _: {},
) -> dg.AssetsDefinition:
    """The asset `FAMILY_report`, which writes the pages into the folder of its name in the warehouse.

    `reads`: the tables that pages are made of; None: all of the family and those over all families. `needs_scores`: whether nothing can be
    shown without them; `told`: as of `published_pages`.
    """
    name = f"{family.name}_report"
    only = (*family.all_tables, *SHARED_TABLES, *PREFERENCE_READ) if reads is None else reads

    @dg.asset(
        name=name,
        deps=deps,
        description=cleandoc(description),
        **{**roll_up(code_version=version, kinds={"html"}), "group_name": family.name},
    )
    def report(store: Store) -> dg.MaterializeResult[Any]:
        if needs_scores:
            require_scored(store, family)
        return published_pages(store, name, pages(store), only, told)

    found: dg.AssetsDefinition = report
    return found
