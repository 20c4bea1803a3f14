"""The pages of the rubric family: the board with its slider, and a page per blueprint."""

from typing import Any

import dagster as dg
import duckdb

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.boards import rubric_board
from assets.rubric.corrected import rubric_corrected
from assets.rubric.drift import rubric_drift
from assets.rubric.roll_ups import rubric_agreement, rubric_champions, rubric_costs, rubric_validity
from assets.stage.broken_files import left_out
from assets.stage.partitions import roll_up
from assets.stage.resources import Store
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from resources.written_pages import WrittenPages, write_pages

PAGES_FOLDER = "rubric_report"


@dg.asset(
    deps=[rubric_board, rubric_corrected, rubric_champions, rubric_agreement, rubric_validity, rubric_drift, rubric_costs],
    **{**roll_up(code_version="1", kinds={"html"}), **RUBRIC_GROUP},
)
def rubric_report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Self-contained pages for researchers: the board with a slider for the weight of similarity, and a page per blueprint.

    A blueprint's page has its prompts, the responses side by side, every criterion with each judge's class and reflection, agreement, costs and
    the findings of the loader. Kept in the folder `rubric_report` of the warehouse, where pages of blueprints and prompts that are no more are
    removed; `dtef rubric report` writes the pages elsewhere.
    """
    if not store.warehouse.values("rubric_scores", "blueprint"):
        raise WarehouseError("no rubric_scores yet: materialize the stages of a blueprint first, or `dtef rubric run`")
    folder = f"{store.warehouse.root}/{PAGES_FOLDER}"

    def write(connection: duckdb.DuckDBPyConnection) -> WrittenPages:
        return write_pages(store.warehouse.fs, folder, rubric_pages(connection), store.warehouse.put)

    written = store.reader.query(write, only=RUBRIC_TABLES)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(f"{folder}/index.html"),
            "pages": len(written.sizes),
            "bytes": sum(written.sizes.values()),
            "removed": len(written.removed),
            **left_out(context, store.reader),
        }
    )
