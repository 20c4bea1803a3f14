"""What `dtef report --family rubric` does; the words are in `dtef_pipeline/cli/rubric_group.py`."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.written_report import write_report
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ
from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from dtef_pipeline.text.nearest import nearest
from resources.warehouse import Warehouse


@reads_tables
def report(warehouse: Warehouse, out: Path, snapshot: str | None) -> None:
    if not warehouse.values("rubric_scores", "blueprint"):
        raise WarehouseError(f"no rubric_scores in {warehouse.root} yet: they are made by `dtef rubric run`")
    known = {label for key in warehouse.values("rubric_scores", "blueprint") for label in _snapshots(warehouse, key)}
    if snapshot is not None and snapshot not in known:
        raise ConfigError(f"--snapshot {snapshot!r}: no blueprint has it; known: {nearest(snapshot, sorted(known))}")
    write_report(warehouse, out, lambda connection: rubric_pages(connection, snapshot), (*RUBRIC_TABLES, *PREFERENCE_READ))


def _snapshots(warehouse: Warehouse, blueprint: str) -> list[str]:
    return warehouse.values("rubric_scores", "snapshot", blueprint=blueprint)
