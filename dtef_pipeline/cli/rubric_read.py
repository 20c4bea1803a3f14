"""What the `dtef rubric` commands that read tables do; the words are in `dtef_pipeline/cli/rubric_group.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import duckdb
import pandas as pd

from dtef_pipeline.cli.blueprint_patterns import fitting
from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.terminal import columns_that_fit, intervals_of, render
from dtef_pipeline.rubric.report.pages import rubric_pages
from dtef_pipeline.rubric.stored_tables import RUBRIC_TABLES
from dtef_pipeline.rubric.tables import RUBRIC_BOARDS
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.nearest import nearest
from resources.gateway.progress import waiting
from resources.table_reader import TableReader

_BOARD_TABLES = {"overall": "rubric_board"}
_BOARD_SHOWN = (
    *("tag", "blueprint", "prompt", "block", "path", "position"),
    *("rank", "model", "score", "interval", "coverage", "similarity", "n_parts", "n_planned", "n_responses_scored", "n_scored"),
)


@reads_tables
def board(reader: TableReader, by: str, blueprints: Sequence[str], output: str) -> None:
    table = _BOARD_TABLES.get(by, f"rubric_board_{by}")
    if not reader.warehouse.tables_in(table) or table not in reader.warehouse.tables():
        raise WarehouseError(f"no {table} in {reader.warehouse.root} yet: `dtef rubric run` makes it, and `dtef rubric rollup`")
    frame = reader.rows(table).to_pandas()
    if blueprints:
        frame = _of_blueprints(frame, by, blueprints)
    if output != "table":
        click.echo(render(frame, output))
        return
    shown = frame.assign(interval=intervals_of(frame, "score", ("low", "high"))) if "low" in frame else frame
    columns = [name for name in _BOARD_SHOWN if name in shown and (shown[name].notna() & (shown[name] != "")).any()]
    fit = terminal_fit(["rank", "model", "score"], ["n_responses_scored", "n_planned", "similarity"])
    click.echo(render(shown, "table", columns=columns, fit=fit))
    for note in dict.fromkeys(note for note in frame.get("note", pd.Series(dtype=str)) if note):
        models = frame[frame["note"] == note]["model"].drop_duplicates()
        say(f"{', '.join(models[:5])}{', ...' if len(models) > 5 else ''}: {note}")
    for line in _of_several_policies(reader):
        say(line)
    meanings = {column.name: description(column) for column in RUBRIC_BOARDS[table]} | {"interval": "95 % interval of score"}
    click.echo(column_lines(columns_that_fit(shown, columns, None, fit), meanings, fit.width))


def _of_several_policies(reader: TableReader) -> Iterator[str]:
    """A line where the runs that the boards show were scored in several ways: their scores do not mean the same."""
    shown = reader.rows("rubric_board_blueprint", columns=["blueprint", "snapshot"]).to_pandas().drop_duplicates()
    runs = reader.rows("rubric_runs", columns=["blueprint", "snapshot", "policy"]).to_pandas()
    policies = shown.merge(runs, on=["blueprint", "snapshot"])["policy"].value_counts()
    if len(policies) > 1:
        told = "; ".join(f"{policy} ({counted(int(n), 'blueprint')})" for policy, n in policies.items())
        yield f"blueprints were scored by several policies: {told}; `dtef rubric judge` scores all of them by one"


@reads_tables
def report(reader: TableReader, out: Path, snapshot: str | None) -> None:
    if not reader.warehouse.values("rubric_scores", "blueprint"):
        raise WarehouseError(f"no rubric_scores in {reader.warehouse.root} yet: they are made by `dtef rubric run`")
    known = {label for key in reader.warehouse.values("rubric_scores", "blueprint") for label in _snapshots(reader, key)}
    if snapshot is not None and snapshot not in known:
        raise ConfigError(f"--snapshot {snapshot!r}: no blueprint has it; known: {nearest(snapshot, sorted(known))}")

    def write(connection: duckdb.DuckDBPyConnection) -> int:
        out.mkdir(parents=True, exist_ok=True)
        pages = 0
        for name, page in rubric_pages(connection, snapshot):
            (out / name).write_text(page, encoding="utf-8")
            pages += 1
        return pages

    with waiting("writing pages"):
        pages = reader.query(write, only=RUBRIC_TABLES)
    click.echo(f"{out / 'index.html'} ({counted(pages, 'page')})")


def _snapshots(reader: TableReader, blueprint: str) -> list[str]:
    return reader.warehouse.values("rubric_scores", "snapshot", blueprint=blueprint)


def _of_blueprints(frame: pd.DataFrame, by: str, patterns: Sequence[str]) -> pd.DataFrame:
    if "blueprint" not in frame:
        raise ConfigError(f"--blueprint with --by {by}: allowed with --by blueprint, prompt or criterion")
    return frame[frame["blueprint"].isin(fitting(list(frame["blueprint"].unique()), patterns))]
