"""The verbs of every family: `add`, `check`, `list`, `remove` and `board`. A family defines a record, in `NAME_files.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import click
import pandas as pd
from pyarrow.fs import FileType

from dtef_pipeline.cli.families import family_commands, family_record, filter_by_patterns, print_board
from dtef_pipeline.cli.options import USUAL_FAMILY
from dtef_pipeline.cli.stage_runs import check_home_path, open_dagster_instance, refresh_boards
from dtef_pipeline.cli.terminal import compute_terminal_fit, say
from dtef_pipeline.cli.warehouse_access import list_stored_keys, open_warehouse, warn_skipped
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILY_BY_NAME, SHARED_TABLES
from dtef_pipeline.family.record import Family
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.number_words import format_count, format_plural
from resources.gateway.progress import keep_terminal, waiting
from resources.notes import Notes
from resources.settings import Settings
from resources.site_writer import find_site_folder, write_site
from resources.warehouse import Warehouse


class AddReport(NamedTuple):
    """The result of adding files."""

    lines: Iterable[str]
    problems: Iterable[str] = ()
    """Files and parts that were left out."""
    is_clean: bool = True
    """Whether nothing was left out by mistake."""


class Addition(NamedTuple):
    """Files that were read and checked, ready to be stored together."""

    register: Callable[[Any], Any]
    """Registers their partitions with Dagster's instance, and returns a result with their `keys`."""
    report: Callable[[Any], AddReport]
    """Reports on this result, after the tables were made."""


class CheckReport(NamedTuple):
    """The result of `check`."""

    document: Any
    """For other programs, as JSON."""
    lines: Iterable[str]
    is_sound: bool
    warnings: Iterable[str] = ()


@dataclass(frozen=True)
class FamilyFiles:
    """The record of the files that a family's partitions are read from."""

    noun: str
    """The noun for a partition."""
    adds: str
    """The command that adds partitions."""
    read: Callable[..., Sequence[Addition]]
    """Reads the files of `add`: (warehouse, **options). Raises an error if nothing can be added."""
    check: Callable[..., CheckReport]
    """Reads the files of `check`: (**options)."""
    list_tables: Callable[..., Mapping[str, Sequence[Mapping[str, Any]]]]
    """Returns the tables of `list` by name: (warehouse, **options)."""
    counted_rows: Mapping[str, str]
    """Nouns for the rows of the tables that are counted on removal; responses come first."""
    stage: str = ""
    """The stage that makes tables from files; empty if none does."""
    notes: Notes[Any] | None = None
    """Notes on the files, by the names that `remove` accepts."""
    next_step: str = ""
    """What to do after adding."""
    still_there: Callable[[Warehouse, Sequence[str]], Iterable[str]] = lambda warehouse, keys: ()
    """Returns messages on files that stay when these partitions are removed."""
    by_first: bool = False
    """Whether all partitions of a first-level value are removed together, under its name; otherwise each under its key."""
    list_hint: str = ""


def family_files(name: str) -> FamilyFiles:
    record: FamilyFiles = family_commands(name, "files", "FILES")
    return record


def add_files(family: str, output: str, **options: Any) -> int:
    """Add files. Returns 1 if something was left out, or its tables could not be made."""
    files = family_files(family)
    check_home_path(Settings.read_environment())
    results = []
    with keep_terminal():
        with waiting(f"reading {format_plural(files.noun)}"):
            import assets.launch  # noqa: F401 - takes seconds, in which something is to be seen

            warehouse = open_warehouse(new=True)
            additions = files.read(warehouse, **options)
        with open_dagster_instance() if files.stage else nullcontext() as instance:
            for addition in additions:
                results.append(_store_addition(instance, warehouse, family, files, addition, output))
        if files.stage:
            with waiting("naming the tables for `dtef sql`"):
                warehouse.refresh_database()
    is_clean = all(result["is_clean"] for result in results)
    if output == "json":
        click.echo(json.dumps(results, ensure_ascii=False))
    elif is_clean and files.next_step:
        say(files.next_step)
    return 0 if is_clean else 1


def _store_addition(
    instance: Any, warehouse: Warehouse, family: str, files: FamilyFiles, addition: Addition, output: str
) -> dict[str, Any]:
    """Store an addition and print the results. Returns them for other programs."""
    from assets.launch import materialize

    added = addition.register(instance)
    keys = list(added.keys)
    outcome = materialize(instance, [files.stage], keys, {}, family=family) if keys and files.stage else None
    if outcome is not None:
        warn_skipped(outcome, warehouse)
    report = addition.report(added)
    lines = list(report.lines)
    for line in lines if output != "json" else ():
        say(line)
    failures = outcome.failures if outcome else ()
    problems = [*report.problems, *(f"error: {failure}" for failure in failures)]
    for line in problems:
        say(line, err=True)
    return {"added": keys, "lines": lines, "problems": problems, "is_clean": report.is_clean and not failures}


def check_files(family: str, output: str, **options: Any) -> int:
    """Check files. Returns 1 if there is an error."""
    report = family_files(family).check(**options)
    if output == "json":
        click.echo(json.dumps(report.document, ensure_ascii=False, allow_nan=False, indent=1))
    else:
        for line in report.lines:
            say(line)
    for line in report.warnings:
        say(line, err=True)
    return 0 if report.is_sound else 1


def list_parts(family: str, output: str, **options: Any) -> int:
    """Print the partitions. Returns 1 if a file was skipped."""
    files, warehouse = family_files(family), open_warehouse(new=True)
    tables = {name: rows for name, rows in files.list_tables(warehouse, **options).items() if rows}
    if not tables:
        raise ConfigError(f"no {format_plural(files.noun)} in {warehouse.root} yet: `{files.adds}` adds some")
    if output == "csv" and len(tables) > 1:
        raise ConfigError(f"--csv works with one table only; --json writes both, {' and '.join(tables)}")
    if output == "json" and len(tables) > 1:
        click.echo(json.dumps(tables, ensure_ascii=False))
        return 0
    for rows in tables.values():
        frame = pd.DataFrame(rows)
        texts, names = frame.map(_format_value), [*map(str, frame.columns)]
        click.echo(render(texts if output == "table" else frame, output, fit=compute_terminal_fit(names[:2], names[2:][::-1])))
    if output == "table" and files.list_hint:
        say(files.list_hint)
    return 1 if warehouse.skipped else 0


def _format_value(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def remove_parts(family: str, patterns: Sequence[str], output: str) -> int:
    """Remove the matching partitions, and print the removed and the remaining rows. Raises ConfigError if a pattern matches nothing."""
    files, record = family_files(family), FAMILY_BY_NAME[family]
    check_home_path(Settings.read_environment())
    warehouse = open_warehouse()
    with keep_terminal():
        with waiting("reading what is stored"):
            from assets.stage.file_notes import remove_files  # takes seconds
        with open_dagster_instance() as instance:
            parts = _find_known_parts(instance, warehouse, record, files)
            if not parts:
                raise ConfigError(f"no {files.noun} in {warehouse.root} yet: `{files.adds}` adds some")
            names = filter_by_patterns(list(parts), patterns, files.noun.upper())
            lines = [
                *(_describe_removal(warehouse, record, files, name) for name in names),
                *files.still_there(warehouse, names),
            ]
            asset = f"{family}_files" if files.stage else ""
            for name in names:
                remove_files(instance, warehouse, record.space, asset, lambda key: None, parts[name])
                if files.by_first:
                    warehouse.drop_first(record.space, name)
                if files.notes:
                    files.notes.delete(warehouse, name)
    lines += [
        f"stored responses stay: if the {files.noun} is added again, no request is repeated",
        describe_board_update(warehouse, record),
    ]
    if output == "json":
        click.echo(json.dumps({"removed": names, "lines": lines}, ensure_ascii=False))
    else:
        for line in lines:
            say(line)
    return 0


def _find_known_parts(instance: Any, warehouse: Warehouse, family: Family, files: FamilyFiles) -> dict[str, list[str]]:
    """Return the partitions known to Dagster, the warehouse or a note, by the names that `remove` accepts."""
    from assets.stage.file_notes import list_partitions

    space = family.space
    keys = [*list_partitions(instance, space), *list_stored_keys(warehouse, family)]
    parts: dict[str, list[str]] = {}
    for key in dict.fromkeys(keys):
        parts.setdefault(space.split(key)[0] if files.by_first else key, []).append(key)
    if files.notes:
        for note in files.notes.read_all(warehouse):
            parts.setdefault(files.notes.key_of(note), [])
    return parts


def _describe_removal(warehouse: Warehouse, family: Family, files: FamilyFiles, name: str) -> str:
    """Return `removed compass__a: 12 responses, 24 judgements, of base, night-2`."""
    levels = {family.space.first: name} if files.by_first else family.space.levels(name)
    rows: dict[str, list[str]] = {
        noun: warehouse.rows(table, columns=["snapshot"], **levels)["snapshot"].to_pylist()
        for table, noun in files.counted_rows.items()
    }
    snapshots = sorted({snapshot for labels in rows.values() for snapshot in labels})
    if not snapshots:
        return f"removed {name}, which was never run"
    return f"removed {name}: {', '.join(format_count(len(labels), noun) for noun, labels in rows.items())}, of {', '.join(snapshots)}"


def describe_board_update(warehouse: Warehouse, family: Family) -> str:
    """Describe how boards and pages change after scores were removed. They are deleted at once if no scores are left."""
    boards_left = bool(warehouse.tables([family.scores_table]))
    if not boards_left:
        warehouse.clear([*family.rolled_up, *SHARED_TABLES], family.name)
    warehouse.refresh_database()
    if boards_left:
        return f"boards and pages change with the next `dtef {family.name} board --refresh`"
    if warehouse.fs.get_file_info(find_site_folder(warehouse)).type != FileType.NotFound:
        from assets.engine.site_report import collect_site_documents

        write_site(warehouse, collect_site_documents(warehouse, Settings.read_environment()))
    return "no scores are left: boards and pages were removed too"


def show_board(family: str, *, refresh: bool, **options: Any) -> int:
    """Print the board. Returns 1 if a roll-up failed or a file was skipped."""
    metric = options["metric"] if family == USUAL_FAMILY else None  # the metric of games selects rows
    code = refresh_boards(family, metric) if refresh else 0
    show = family_record(family).show or partial(print_board, family)
    show(**options)
    return code
