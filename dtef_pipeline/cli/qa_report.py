"""What `dtef report --family qa` does; the words are in `dtef_pipeline/cli/qa_report_group.py`."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.written_report import write_report
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.qa.report.pages import qa_pages
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ
from resources.warehouse import Warehouse


@reads_tables
def report(warehouse: Warehouse, out: Path) -> None:
    """Write the pages into a folder, which is made; say where they are."""
    if not warehouse.tables(["qa_scores"]):
        raise WarehouseError(f"no qa_scores in {warehouse.root} yet: they are made by `dtef qa run`")
    write_report(warehouse, out, qa_pages, (*QA_TABLES, *PREFERENCE_READ))
