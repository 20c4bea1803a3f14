"""The `dtef` commands that only read: queries, costs, models, exports, reports. They load no Dagster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import click
import duckdb
import pandas as pd
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.terminal import compute_terminal_fit, print_rows
from dtef_pipeline.cli.warehouse_access import reads_tables, warn_stale
from dtef_pipeline.documents import explain_missing_folder
from dtef_pipeline.errors import ConfigError, DtefError, WarehouseError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.family.record import Family
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.export import write_weval_yaml
from dtef_pipeline.tables import COSTS, description
from dtef_pipeline.text.amounts import format_row_cost
from dtef_pipeline.text.name_matching import suggest_nearest
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.file_systems import write_text
from resources.gateway.model_checks import resolve_route
from resources.gateway.progress import waiting
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.site_writer import PAGES_LIST, SiteWriteResult, make_foreign_check, write_pages
from resources.warehouse import TABLES, Warehouse

_FILES_NAMED = 5


@reads_tables
def export_prompts(
    warehouse: Warehouse, out: Path, rounds: tuple[str, ...], contexts: tuple[str, ...], conditions: tuple[str, ...]
) -> None:
    from dtef_pipeline.survey.predictions import select_prompts

    if len(rounds) != 1:
        raise ConfigError(f"--round: got {', '.join(rounds) or 'none'}; name the one round whose prompts to write")
    n_files, round_id = 0, rounds[0]
    segments = warehouse.values("blueprints", "segment", round=round_id)
    if not segments:
        rounds_with_blueprints = ", ".join(warehouse.values("blueprints", "round")) or "none"
        raise ConfigError(
            f"round {round_id} has no blueprints; rounds with blueprints: {rounds_with_blueprints}; make them with `dtef run --round {round_id}`"
        )
    out.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        partition = {"round": round_id, "segment": segment}
        survey, blueprints = warehouse.rows("survey_responses", **partition), warehouse.rows("blueprints", **partition)
        if not len(survey) or not len(blueprints):
            continue
        prompts = select_prompts(blueprints, survey, context_levels=contexts, conditions=conditions)
        n_files += 1
        write_text(out / f"{round_id}__{segment.replace(':', '_')}.yml", write_weval_yaml(prompts, survey))
    click.echo(f"{format_count(n_files, 'file')} in {out}")


@reads_tables
def sql(warehouse: Warehouse, query: str, output: str) -> None:
    def answer(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        result = connection.sql(query)
        frame: pd.DataFrame = pd.DataFrame() if result is None else _rename_duplicates(result.to_arrow_table()).to_pandas()
        return frame

    if not query.strip():
        raise ConfigError("the query is empty; write SQL such as 'SELECT * FROM leaderboard'")
    try:
        frame = warehouse.query(answer, only=warehouse.find_tables(query))
    except duckdb.CatalogException as error:
        raise DtefError(_format_missing_table(str(error), warehouse.tables())) from error
    except duckdb.Error as error:
        raise DtefError(f"DuckDB cannot run this query: {error}") from error
    click.echo(render(frame, output, as_named=True, fit=compute_terminal_fit()))


def _format_missing_table(message: str, stored_tables: Sequence[str]) -> str:
    """Return DuckDB's message on a missing table or function; of a table, without the names that DuckDB guesses from its own."""
    if (match := re.match(r"Catalog Error: Table with name (\w+) does not exist", message)) is None:
        return f"DuckDB cannot run this query: {message}; `dtef sql` only reads, so write a SELECT"
    name, where = match[1].lower(), '`dtef sql "SHOW TABLES"` lists all'
    if name in TABLES:
        return f"the table {name} does not exist yet; {where} that do"
    return f"no table {name!r}. {suggest_nearest(name, stored_tables)}{where}"


def _rename_duplicates(rows: pa.Table) -> pa.Table:
    """Return the table with repeated column names numbered: a, a_1."""
    counts: dict[str, int] = {}
    names = []
    for name in rows.column_names:
        names.append(f"{name}_{counts[name]}" if name in counts else name)
        counts[name] = counts.get(name, 0) + 1
    return rows.rename_columns(names)


@reads_tables
def report(warehouse: Warehouse, out: Path) -> None:
    """Write the site into a folder or zip file. Raises ConfigError if another file is in the way."""
    # Imported here, because the other reading commands make no pages.
    from assets.engine.site_report import collect_site_documents
    from dtef_pipeline.site.paths import FRONT_PAGE
    from dtef_pipeline.sites import list_results_tables, list_site_tables, make_site

    if not warehouse.tables(list_results_tables()):
        raise WarehouseError(f"no results in {warehouse.root} yet: `dtef run` asks models and scores what they answer")
    documents = collect_site_documents(warehouse, Settings.read_environment())

    def pages(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
        return make_site(connection, documents)

    if out.suffix == ".zip":
        count = warehouse.query(lambda connection: _write_zip(out, pages(connection)), only=list_site_tables())
        click.echo(f"{out} ({format_count(count, 'file')})")
        return
    if out.is_file():
        raise ConfigError(f"--out {out} is a file; name a folder, or a file whose name ends in .zip")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = explain_missing_folder(out, error)
        raise ConfigError(f"--out {out} cannot be created: {problem}; name another folder with --out") from error
    with waiting("writing pages"):
        site = warehouse.query(lambda connection: _write_folder(out, pages(connection)), only=list_site_tables())
    click.echo(f"{out / FRONT_PAGE} ({format_count(len(site.sizes), 'file')})")
    if site.removed:
        click.echo(f"removed, because they no longer belong to the site: {list_first_names(site.removed, _FILES_NAMED)}")


def _write_zip(file: Path, pages: Iterator[tuple[str, str]]) -> int:
    """Write a zip file, and return its number of files. An existing file is replaced once the new one is complete."""
    partial_file = file.with_suffix(".part")
    count = 0
    try:
        with ZipFile(partial_file, "w", ZIP_DEFLATED) as archive:
            for path, text in pages:
                count += 1
                archive.writestr(f"{file.stem}/{path}", text)
        partial_file.replace(file)
    finally:
        partial_file.unlink(missing_ok=True)
    return count


def _write_folder(root: Path, pages: Iterator[tuple[str, str]]) -> SiteWriteResult:
    fs, folder = LocalFileSystem(), str(root.absolute())
    is_foreign = make_foreign_check(fs, folder)

    def put(path: str, content: bytes) -> None:
        target = Path(path)
        name = target.relative_to(folder).as_posix()
        if name != PAGES_LIST and is_foreign(name):
            raise ConfigError(f"--out {root}: {name} exists already and was not written by dtef; name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    return write_pages(fs, folder, pages, put)


def list_scored_rounds(warehouse: Warehouse, rounds: Sequence[str]) -> list[str]:
    """Return all rounds with scores. Raises ConfigError if a requested one is not among them."""
    known_rounds = warehouse.values("scores", "round")
    if absent := [r for r in rounds if r not in known_rounds]:
        raise ConfigError(f"no scores of round {', '.join(absent)}; scored so far: {', '.join(known_rounds)}")
    return known_rounds


_COST_COUNTS = ("answered", "failed", "budget_stopped", "calls", "prompt_tokens", "completion_tokens", "unpriced")
_BY_ANY_FAMILY: Mapping[str, str] = {
    **{name: name for name in ("family", "role", "model", "snapshot")},
    "variant": "model_variant",
}
"""The columns of COSTS that `--by` accepts with every family, by option value."""
SHOWN_COST = {"cost": description(COSTS.field("cost_usd")).partition(";")[0]}
"""Descriptions of columns that `dtef costs` shows but COSTS does not have."""


@reads_tables
def costs(warehouse: Warehouse, family: str | None, by: Sequence[str], snapshot: str | None, output: str) -> None:
    """Print calls and costs. Raises ConfigError if a column or snapshot is unknown, and WarehouseError if no family has costs."""
    families = [record for record in FAMILIES if family in (None, record.name)]
    columns = _map_columns(families[0]) if family else _BY_ANY_FAMILY
    by = by or (families[0].calls.summed_by if family else ("family", "role"))
    if unknown := [name for name in by if name not in columns]:
        scope = f"--family {family}" if family else "all families"
        raise ConfigError(f"--by {', '.join(unknown)} does not work with {scope}; choose from {', '.join(columns)}")
    frame = _read_cost_rows(warehouse, families, family)
    snapshots = sorted(frame["snapshot"].dropna().unique())
    if snapshot and snapshot not in snapshots:
        raise ConfigError(f"no costs of snapshot {snapshot}; there are: {', '.join(snapshots) or 'none'}")
    frame = frame[frame["snapshot"] == snapshot] if snapshot else frame
    if not len(frame) and output == "table":
        click.echo("no language model was called, and baselines cost nothing")
        return
    named = {"model_variant" if name == "variant" else name: columns[name] for name in by}
    totals = _sum_by_columns(frame.rename(columns={column: name for name, column in named.items()}), list(named))
    table = totals if output != "table" else _format_costs(totals)
    counts = ("answered", "failed", "budget_stopped", "calls", "prompt_tokens", "completion_tokens")
    layout = TableLayout(
        (*named, *counts, "cost"), (*named, "cost"), ("prompt_tokens", "completion_tokens", "budget_stopped", "calls")
    )
    print_rows(layout, table, output, (), "costs")


def _format_costs(totals: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for people: `cost` in words, and no tokens if the stored responses do not state them."""
    is_unstated = (totals["answered"] > 0) & (totals["prompt_tokens"] == 0)
    tokens = {name: totals[name].astype("Int64").mask(is_unstated) for name in ("prompt_tokens", "completion_tokens")}
    return totals.assign(cost=[format_row_cost(row) for row in totals.to_dict("records")], **tokens)


def _map_columns(family: Family) -> dict[str, str]:
    """Return the columns of COSTS by the family's names for them."""
    space = family.space
    levels = {space.first: "first_level", space.second: "second_level", family.calls.purpose: "purpose"}
    return {**_BY_ANY_FAMILY, **{name: column for name, column in levels.items() if name}}


def _read_cost_rows(warehouse: Warehouse, families: Sequence[Family], family: str | None) -> pd.DataFrame:
    """Return the rows of the families that have costs. Warns if a family's scores are newer."""
    names = warehouse.values("costs", "family")
    records = [record for record in families if record.name in names]
    if not records:
        run = "`dtef run`" if family in (None, "survey") else f"`dtef {family} run`"
        roll_up = f"`dtef {family or 'survey'} board --refresh`"
        raise WarehouseError(
            f"no costs{f' of {family}' if family else ''} in {warehouse.root} yet: {run} or {roll_up} makes it"
        )
    for record in records:
        warn_stale(warehouse, "costs", record.scores_table, f"dtef {record.name} board --refresh", record.name)
    parts = [warehouse.rows("costs", family=record.name) for record in records]
    frame: pd.DataFrame = pa.concat_tables(parts).to_pandas()
    return frame


def _sum_by_columns(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the rows added up by these columns, the most expensive first.

    If snapshot, role or family is among the columns, the rows are grouped by it: snapshots sorted, roles and families in the order of
    `frame`.
    """
    groups = frame.groupby(names, sort=False, dropna=False)
    dollars = groups[["cost_usd", "unknown_cost_usd_most"]].sum(min_count=1)
    totals = groups[[*_COST_COUNTS, "unknown_cost_attempts"]].sum().join(dollars).reset_index()
    totals = totals.sort_values("cost_usd", ascending=False, na_position="last", kind="stable", ignore_index=True)
    for name in [column for column in ("snapshot", "role", "family") if column in names]:
        values = sorted(frame[name].dropna().unique()) if name == "snapshot" else frame[name].unique()
        place = {value: index for index, value in enumerate(values)}
        totals = totals.sort_values(name, key=lambda values, place=place: values.map(place), kind="stable", ignore_index=True)
    return totals


def list_models(output: str) -> None:
    models = load_known_models(Settings.read_environment(), BASELINES)
    rows = []
    for spec in models.specs.values():
        collections = ", ".join(name for name, members in models.collections.items() if spec.name in members)
        transport, address = resolve_route(spec, os.environ)
        row = {"model": spec.name, "variant": spec.variant, "collections": collections, "key": spec.api_key_env or ""}
        rows.append({**row, "transport": transport, "address": address})
    click.echo(render(pd.DataFrame(rows), output, fit=compute_terminal_fit(["model", "key"], ["collections"])))
