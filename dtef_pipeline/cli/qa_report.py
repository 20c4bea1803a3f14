"""What `dtef qa report` does; the words are in `dtef_pipeline/cli/qa_report_group.py`."""

from __future__ import annotations

from pathlib import Path

import click
import duckdb
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.qa.report.pages import qa_pages
from dtef_pipeline.qa.stored_tables import QA_TABLES
from dtef_pipeline.text.counted import and_more, counted
from resources.gateway.progress import waiting
from resources.table_reader import TableReader
from resources.written_pages import WrittenPages, write_pages

_REMOVED_NAMED = 5


@reads_tables
def report(reader: TableReader, out: Path) -> None:
    """Write the pages into a folder, which is made; say where they are."""
    if not reader.warehouse.values("qa_scores", "suite"):
        raise WarehouseError(f"no qa_scores in {reader.warehouse.root} yet: they are made by `dtef qa run`")

    def write(connection: duckdb.DuckDBPyConnection) -> WrittenPages:
        out.mkdir(parents=True, exist_ok=True)
        return write_pages(LocalFileSystem(), str(out.absolute()), qa_pages(connection), _put)

    with waiting("writing pages"):
        written = reader.query(write, only=QA_TABLES)
    click.echo(f"{out / 'index.html'} ({counted(len(written.sizes), 'page')})")
    if written.removed:
        click.echo(f"removed, since they do not belong to it any more: {and_more(written.removed, _REMOVED_NAMED)}")


def _put(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
