"""What the commands that take `--family` do for a family other than surveys. A family brings one record, in `NAME_board.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import duckdb
import pandas as pd
import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from assets.stage.panel_drift import judges_in, panel_drift, scored_in
from dtef_pipeline.cli.opened_warehouse import NothingToShowError, reads_tables, say_stale
from dtef_pipeline.cli.survey.boards import render_drift
from dtef_pipeline.cli.terminal import TableView, print_rows, say
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import place_words, reaches, told_too_early
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILY_BY_NAME, TABLES, Family
from dtef_pipeline.report.names import Names
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS, DRIFT
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest
from dtef_pipeline.text.unknown_cost import row_cost_in_words
from resources.gateway.progress import waiting
from resources.settings import Settings
from resources.warehouse import Warehouse
from resources.written_pages import PAGES_LIST, WrittenPages, foreign_pages, write_pages

Pages = Callable[[duckdb.DuckDBPyConnection], Iterable[tuple[str, str]]]
"""(file name, HTML) of each page of a report."""
NOTHING_COMPARED = 5
"""Exit code of `dtef drift --fail-on` where there is no series, or none could be compared."""
TOO_EARLY = 4
"""Exit code of `dtef drift --fail-on drift` where no series drifted, and one has too few snapshots for anybody to tell."""
SERIES_NAMED = 10
"""Series without a verdict that are named."""
_COUNTED_USAGE = ("answered", "calls", "prompt_tokens", "completion_tokens")
_SENT = ["told", "night_told"]
"""Columns on what was sent, which only the stored table knows."""
_PAGES_NAMED = 5


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """What a family brings to the commands that take `--family`."""

    name: str
    part: str
    """What a partition is called, as in `dtef drift --by part`."""
    asks: str
    """The command that has models asked."""
    names: Names
    """What drift is called."""
    costs_by: tuple[str, ...]
    """What costs are added up by where nothing is named."""
    rule_view: TableView
    """How the documented rule on drift is shown of each partition, by the columns `who`."""
    model_checks: Callable[[Warehouse, WatchOptions], pa.Table]
    """Makes the verdicts on models, as its roll-up does."""
    drift_lines: Callable[[Warehouse, WatchOptions, Sequence[Mapping[str, Any]]], Iterable[str]]
    """The lines that stand below these rows."""
    pages: Callable[[str | None], Pages]
    """The pages of its report, of a snapshot where that is named."""
    page_tables: tuple[str, ...]
    spent: Callable[[Warehouse], pd.DataFrame] | None = None
    """Rows of what models were asked; None: those of its table of costs."""
    of_snapshots: bool = False
    """Whether a report can be of one snapshot."""

    @property
    def stored(self) -> Family:
        """The family as shared rooms know it."""
        return FAMILY_BY_NAME[self.name]

    @property
    def run(self) -> str:
        """The command that runs its stages."""
        return f"dtef {self.name} run"


def family_record(name: str) -> CommandFamily:
    found: CommandFamily = getattr(import_module(f"dtef_pipeline.cli.{name}.{name}_board"), f"{name.upper()}_COMMANDS")
    return found


def fitting(known: Sequence[str], patterns: Sequence[str], given_as: str) -> list[str]:
    """Those that fit any of the patterns, in their order; all without one. Raises ConfigError for a pattern that fits none.

    `given_as`: what the patterns are called where they are given.
    """
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ConfigError(f"{given_as} {pattern!r} fits none; known: {nearest(pattern, known)}")
    return [one for one in known if not patterns or any(fnmatchcase(one, pattern) for pattern in patterns)]


def of_models(frame: pd.DataFrame, patterns: Sequence[str], by: str) -> pd.DataFrame:
    """The rows of the models that fit any of the patterns; all without one. Raises ConfigError where rows are about no model."""
    if not patterns:
        return frame
    if "model" not in frame:
        raise ConfigError(f"--model with --by {by}: allowed where rows are about models")
    return frame[frame["model"].isin(fitting(sorted(frame["model"].dropna().unique()), patterns, "--model"))].reset_index(
        drop=True
    )


def meanings_of(table: str) -> dict[str, str]:
    """What each column of a table means."""
    return {column.name: description(column) for column in TABLES[table].schema or ()}


def require_table(warehouse: Warehouse, table: str, made_by: str) -> None:
    """Raises WarehouseError where there are no files of a table. `made_by`: the commands that make it."""
    if not warehouse.tables([table]):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {made_by}")


def require_rolled_up(warehouse: Warehouse, family: str, table: str, scores: str) -> None:
    """Raises WarehouseError where no roll-up has made a table of `scores`. Says so where scores are newer."""
    require_table(warehouse, table, f"`dtef {family} run` makes it, and `dtef {family} board --refresh`")
    say_stale(warehouse, table, scores, f"dtef {family} board --refresh")


@reads_tables
def costs(warehouse: Warehouse, name: str, by: Sequence[str], output: str) -> None:
    family = family_record(name)
    frame = family.spent(warehouse) if family.spent else _stored_costs(warehouse, family)
    if not len(frame):
        raise NothingToShowError(f"nothing to show: no model was asked; `{family.asks}` asks")
    view = TableView(
        (*family.costs_by, "model_variant", *_COUNTED_USAGE, "cost"),
        ("scenario" if name == "games" else "role", "model", "model_variant", "cost"),
        ("prompt_tokens", "completion_tokens", "calls"),
    )
    meanings = meanings_of("episode_turns" if family.spent else f"{name}_costs")
    print_rows(view, _spent_by(frame, by or family.costs_by, output), output, (), {**meanings, "cost": COST_COLUMNS["cost"]})


def _stored_costs(warehouse: Warehouse, family: CommandFamily) -> pd.DataFrame:
    table = f"{family.name}_costs"
    require_rolled_up(warehouse, family.name, table, family.stored.scored)
    frame: pd.DataFrame = warehouse.rows(table).to_pandas()
    return frame


def _spent_by(spent: pd.DataFrame, by: Sequence[str], output: str) -> pd.DataFrame:
    """The rows added up by these columns (`variant` is `model_variant`), the dearest first.

    Roles, where they are told apart, stay in the order of the table. `output`: for people (`table`), costs are told in words too.
    """
    names = list(dict.fromkeys("model_variant" if name == "variant" else name for name in by))
    groups = spent.groupby(names, sort=False, dropna=False)
    dollars = groups[["cost_usd", "unknown_cost_usd_most"]].sum(min_count=1)
    whole = groups[[*_COUNTED_USAGE, "unpriced", "unknown_cost_attempts"]].sum().join(dollars).reset_index()
    whole = whole.sort_values("cost_usd", ascending=False, na_position="last", kind="stable", ignore_index=True)
    if "role" in names:
        place = {role: at for at, role in enumerate(spent["role"].unique())}
        whole = whole.sort_values("role", key=lambda role: role.map(place), kind="stable", ignore_index=True)
    if output != "table":
        return whole
    return whole.assign(cost=[row_cost_in_words(row) for row in whole.to_dict("records")])


def drift(name: str, by: str, since: Sequence[str], fail_on: str | None, output: str) -> int:
    family = family_record(name)
    if by == "model":
        return _drift_of_models(family, since, fail_on, output)
    if given := "--fail-on" if fail_on else "--since" if since else "":
        raise ConfigError(f"{given} with --by {by}: allowed with --by model; a {by} alone may have too few items")
    _drift_of_parts(family, output)
    return 0


@reads_tables
def _drift_of_parts(warehouse: Warehouse, family: CommandFamily, output: str) -> None:
    """What the documented rule says of each partition, the largest gap first."""
    table, view = f"{family.name}_drift", family.rule_view
    require_rolled_up(warehouse, family.name, table, family.stored.scored)
    frame: pd.DataFrame = warehouse.rows(table).to_pandas()
    if not len(frame):
        raise NothingToShowError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    space = family.stored.space
    order = [*filter(None, (space.first, space.second)), "model"]
    frame = frame.sort_values(["gap", *order], ascending=[False, *[True] * len(order)], na_position="last", kind="stable")
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    print_rows(view, frame, output, (), meanings_of(table))


@reads_tables
def _drift_of_models(
    warehouse: Warehouse, family: CommandFamily, since: Sequence[str], fail_on: str | None, output: str
) -> int:
    """As `exit_code`; NOTHING_COMPARED when `fail_on` is asked for and there is no series."""
    subject = family.names.subject
    options = _drift_options(warehouse, family, since)
    with waiting("comparing snapshots"):
        checks = family.model_checks(warehouse, options).drop_columns(_SENT)
    rows = checks.to_pylist()
    if not rows or (options.since and all(row["latest_snapshot"] is None for row in rows)):
        dates = f" since {' or '.join(sorted(set(options.since.values())))}" if options.since else ""
        problem = f"no snapshot of a language model{dates}"
        if not fail_on:
            raise NothingToShowError(problem)
        say(f"error: {problem}", err=True)
        return NOTHING_COMPARED
    if output != "table":
        click.echo(render(checks.to_pandas(), output))
        return exit_code(rows, fail_on, subject)
    told = {name: description(subject.models.field(name)) for name in subject.keys.asked}
    click.echo(render_drift(checks, family.names, {**DRIFT, **told}))
    if all(row["verdict"] is None for row in rows):
        say(
            f"\nTo have something to compare, ask the same again: the same `{family.run}` on another day, with that day as --snapshot "
            "(such as 2026-01-31). Only responses at temperature 0 are compared."
        )
    for line in family.drift_lines(warehouse, options, rows):
        say(line)
    return exit_code(rows, fail_on, subject)


def _drift_options(warehouse: Warehouse, family: CommandFamily, since: Sequence[str]) -> WatchOptions:
    """Raises WarehouseError where nothing is scored."""
    stored = family.stored
    if not warehouse.values(stored.scored, stored.space.first):
        raise WarehouseError(f"no {stored.scored} in {warehouse.root} yet: `{family.run} --snapshot LABEL` asks and scores")
    options = panel_drift(Settings.from_environment(), warehouse).options
    return options_since(options, since, partial(scored_in, warehouse, stored), partial(judges_in, warehouse, stored))


def options_since(
    options: WatchOptions,
    since: Sequence[str],
    scored: Callable[[], Iterable[tuple[str, str]]],
    judges: Callable[[], Iterable[tuple[str, str]]] = tuple,
) -> WatchOptions:
    """The settings with the dates that a command gives, `[MODEL=]DATE` each, in place of the panel's; as they are without one.

    `scored`: finds names and variants of the models with scores; `judges`: of those that were shown stored answers again. Raises ConfigError
    for what is no date, and for a model that is neither.
    """
    if not since:
        return options
    if nameless := [given for given in since if given.startswith("=")]:
        raise ConfigError(f"since {nameless[0]!r}: allowed: MODEL=DATE, or DATE for all models")
    options = replace(options, since={model: day for model, _, day in (given.rpartition("=") for given in since)})
    options.require_known(scored(), judges())
    return options


def exit_code(rows: Sequence[Mapping[str, Any]], fail_on: str | None, subject: Subject) -> int:
    """3 when a series has the verdict `fail_on` or a worse one; else, when it is asked for, TOO_EARLY when a drift cannot be told yet of a
    series, and NOTHING_COMPARED when none was compared.

    Says on standard error which series were not compared, and of which it is too early to tell. `watch` can be told from two snapshots on.
    """
    if not fail_on:
        return 0
    named = [(f"{row['model']}{place_words(row, subject.keys)}{subject.at(row)}", row) for row in rows]
    compared = {who for who, row in named if row["verdict"] is not None}
    if without := [
        f"{who} (other prompts of it are compared)" if who in compared else who for who, row in named if row["verdict"] is None
    ]:
        share = f"{len(without)} of {len(rows)} series, which could not be compared"
        say(f"warning: --fail-on {fail_on} says nothing about {share}: {and_more(without, SERIES_NAMED)}", err=True)
    early = [f"{who} ({words})" for who, row in named if fail_on == "drift" and (words := told_too_early(row))]
    if early:
        share = f"{len(early)} of {len(rows)} series"
        say(f"warning: --fail-on drift cannot tell yet of {share}: {and_more(early, SERIES_NAMED)}", err=True)
    return 3 if reaches(rows, fail_on) else TOO_EARLY if early else 0 if compared else NOTHING_COMPARED


@reads_tables
def report(warehouse: Warehouse, name: str, out: Path, snapshot: str | None) -> None:
    """Write the pages into a folder, which is made; say where they are.

    Raises WarehouseError where nothing is scored, and ConfigError for a snapshot that is not known, and where a file has the name of a page
    and was not written by a report: it is left as it is.
    """
    family = family_record(name)
    if snapshot is not None and not family.of_snapshots:
        raise ConfigError("--snapshot: allowed with --family rubric")
    out, scored, first = _folder_given(out, f"{name}_report"), family.stored.scored, family.stored.space.first
    if not (parts := warehouse.values(scored, first)):
        raise WarehouseError(f"no {scored} in {warehouse.root} yet: they are made by `{family.run}`")
    if snapshot is not None:
        known = {label for part in parts for label in warehouse.values(scored, "snapshot", **{first: part})}
        if snapshot not in known:
            raise ConfigError(f"--snapshot {snapshot!r}: no {family.part} has it; known: {nearest(snapshot, sorted(known))}")
    _write_report(warehouse, out, family.pages(snapshot), {*family.page_tables, *PREFERENCE_READ})


def _write_report(warehouse: Warehouse, out: Path, pages: Pages, only: Collection[str]) -> None:
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


def _folder_given(out: Path, usual: str) -> Path:
    """The folder of `--out`, or the usual one where none was given. Raises ConfigError for a file."""
    is_given = click.get_current_context().get_parameter_source("out") is not click.core.ParameterSource.DEFAULT
    if is_given and out.is_file():
        raise ConfigError(f"--out {out}: it is a file; allowed: a folder, new or there already")
    return out if is_given else Path(usual)


def _require_own(out: Path, name: str, is_foreign: Callable[[str], bool]) -> None:
    if name != PAGES_LIST and is_foreign(name):
        raise ConfigError(
            f"--out {out}: {name} is there already and was not written by dtef; allowed: a folder without it, new or there already"
        )
