"""The pages that `dtef report` writes of rubrics, questions and games: into a folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import click
import duckdb
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.text.counted import and_more, counted
from resources.gateway.progress import waiting
from resources.warehouse import Warehouse
from resources.written_pages import PAGES_LIST, WrittenPages, foreign_pages, write_pages

_PAGES_NAMED = 5


def write_report(
    warehouse: Warehouse,
    out: Path,
    pages: Callable[[duckdb.DuckDBPyConnection], Iterable[tuple[str, str]]],
    only: Collection[str],
) -> None:
    """Write the pages into a folder, which is made; say where they are. `pages`: (file name, HTML) of each, made of the tables `only`.

    Raises ConfigError where a file has the name of a page and was not written by a report: it is left as it is.
    """
    fs, folder = LocalFileSystem(), str(out.absolute())
    is_foreign = foreign_pages(fs, folder)

    def put(path: str, content: bytes) -> None:
        _require_own(out, Path(path).name, is_foreign)
        Path(path).write_bytes(content)

    def write(connection: duckdb.DuckDBPyConnection) -> WrittenPages:
        _require_own(out, INDEX_PAGE, is_foreign)
        out.mkdir(parents=True, exist_ok=True)
        return write_pages(fs, folder, pages(connection), put)

    with waiting("writing pages"):
        written = warehouse.query(write, only=only)
    click.echo(f"{out / INDEX_PAGE} ({counted(len(written.sizes), 'page')})")
    if written.removed:
        click.echo(f"removed, since they do not belong to it any more: {and_more(written.removed, _PAGES_NAMED)}")


def folder_given(out: Path, usual: str) -> Path:
    """The folder of `--out`, or the usual one where none was given. Raises ConfigError for a file."""
    is_given = click.get_current_context().get_parameter_source("out") is not click.core.ParameterSource.DEFAULT
    if is_given and out.is_file():
        raise ConfigError(f"--out {out}: it is a file; allowed: a folder, new or there already")
    return out if is_given else Path(usual)


def refuse_snapshot(snapshot: str | None) -> None:
    """Raises ConfigError for a snapshot: pages of one snapshot are those of rubrics."""
    if snapshot is not None:
        raise ConfigError("--snapshot: allowed with --family rubric")


def _require_own(out: Path, name: str, is_foreign: Callable[[str], bool]) -> None:
    if name != PAGES_LIST and is_foreign(name):
        raise ConfigError(
            f"--out {out}: {name} is there already and was not written by dtef; allowed: a folder without it, new or there already"
        )
