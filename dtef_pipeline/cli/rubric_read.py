"""What `dtef rubric report` does; the words are in `dtef_pipeline/cli/rubric_group.py`."""

from __future__ import annotations

from pathlib import Path

import click
import duckdb
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest
from resources.gateway.progress import waiting
from resources.table_reader import TableReader
from resources.written_pages import WrittenPages, write_pages

_PAGES_NAMED = 5


@reads_tables
def report(reader: TableReader, out: Path, snapshot: str | None) -> None:
    if not reader.warehouse.values("rubric_scores", "blueprint"):
        raise WarehouseError(f"no rubric_scores in {reader.warehouse.root} yet: they are made by `dtef rubric run`")
    known = {label for key in reader.warehouse.values("rubric_scores", "blueprint") for label in _snapshots(reader, key)}
    if snapshot is not None and snapshot not in known:
        raise ConfigError(f"--snapshot {snapshot!r}: no blueprint has it; known: {nearest(snapshot, sorted(known))}")

    def write(connection: duckdb.DuckDBPyConnection) -> WrittenPages:
        out.mkdir(parents=True, exist_ok=True)
        return write_pages(LocalFileSystem(), str(out.absolute()), rubric_pages(connection, snapshot), _write)

    with waiting("writing pages"):
        written = reader.query(write, only=RUBRIC_TABLES)
    click.echo(f"{out / 'index.html'} ({counted(len(written.sizes), 'page')})")
    if written.removed:
        click.echo(f"removed, since they do not belong to it any more: {and_more(written.removed, _PAGES_NAMED)}")


def _write(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def _snapshots(reader: TableReader, blueprint: str) -> list[str]:
    return reader.warehouse.values("rubric_scores", "snapshot", blueprint=blueprint)
