"""The warehouse of a command: its location, unreadable files, and scores newer than a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from dtef_pipeline.asking.snapshot_order import has_several_snapshots, read_snapshot_times, take_times
from dtef_pipeline.boards.item_board import list_mixed_served
from dtef_pipeline.cli.doctor import diagnose_absent
from dtef_pipeline.cli.options import USUAL_FAMILY
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.documents import find_existing_parent
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.text.number_words import format_count
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    import duckdb

    from assets.launch import LaunchResult
    from dtef_pipeline.family.record import Family


Given = ParamSpec("Given")
Out = TypeVar("Out")


class NothingToShowError(WarehouseError):
    """The tables of a command have no rows. If a file was unreadable, only its warning is printed."""


def open_warehouse(*, new: bool = False) -> Warehouse:
    """Return the warehouse of DTEF_WAREHOUSE. `new`: it may not exist yet. Raises WarehouseError if it does not exist or cannot."""
    warehouse = Warehouse(Settings.read_environment().warehouse, lambda line: say(f"warning: {line}", err=True))
    root = Path(warehouse.root)
    if not warehouse.is_local or root.is_dir():
        return warehouse
    parent = find_existing_parent(root)
    if not parent.is_dir():
        raise WarehouseError(
            f"the warehouse {root} cannot be a folder, since {parent} is a file; name another place in DTEF_WAREHOUSE"
        )
    if not new:
        if (place := diagnose_absent(root, "DTEF_WAREHOUSE")).state == "problem":
            raise WarehouseError(f"there is no warehouse {root}: {place.message}; name another place in DTEF_WAREHOUSE")
        raise WarehouseError(
            f"there is no warehouse {root}: `{_find_making_command()}` creates it, or name another one in DTEF_WAREHOUSE"
        )
    return warehouse


def list_stored_keys(warehouse: Warehouse, family: Family) -> list[str]:
    """Return the partitions that a family has tables of, in order."""
    space, table = family.space, next(iter(family.tables))
    firsts = warehouse.values(table, space.first)
    if not space.second:
        return firsts
    return [space.key(top, below) for top in firsts for below in warehouse.values(table, space.second, **{space.first: top})]


def _find_making_command() -> str:
    """Return the command that creates the first tables of the current command's family."""
    from dtef_pipeline.cli.family_verbs import family_files
    from dtef_pipeline.families import FAMILY_BY_NAME

    context = click.get_current_context(silent=True)
    words = context.command_path.split() if context else []
    return family_files(next((name for name in FAMILY_BY_NAME if name in words), USUAL_FAMILY)).adds


def query_rounds(
    warehouse: Warehouse, use: Callable[[duckdb.DuckDBPyConnection], Out], only: Iterable[str], rounds: Sequence[str]
) -> Out:
    """Return the result of `use` on the tables of these rounds (empty: all), including `scores`.

    Snapshots are ordered, and batteries linked, as over all rounds.
    """
    from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters, take_links

    if not rounds:
        return warehouse.query(use, only=only)
    all_times = (
        warehouse.query(read_snapshot_times, only=["scores"])
        if warehouse.query(has_several_snapshots, only=["scores"], first=rounds)
        else None
    )
    clusters = warehouse.query(load_question_clusters, only=["survey_responses"])

    def run_query(connection: duckdb.DuckDBPyConnection) -> Out:
        if all_times is not None:
            take_times(connection, all_times)
        take_links(connection, clusters)
        return use(connection)

    return warehouse.query(run_query, only=only, first=rounds)


def warn_skipped(outcome: LaunchResult, warehouse: Warehouse) -> None:
    """Warn of files that a run skipped and did not rewrite, unless already done. Adds them to `warehouse.skipped`."""
    before = set(warehouse.skipped)
    warehouse.skipped |= dict(outcome.skipped)
    warehouse.drop_readable_skips()
    for path, line in warehouse.skipped.items():
        if path not in before:
            say(f"warning: {line}", err=True)


def reads_tables(command: Callable[Concatenate[Warehouse, Given], Out]) -> Callable[Given, Out]:
    """Pass the warehouse to a command that reads. If a file was skipped, the exit code is at least 1."""

    @wraps(command)
    def run_reader(*args: Given.args, **kwargs: Given.kwargs) -> Out:
        warehouse = open_warehouse()
        try:
            code = command(warehouse, *args, **kwargs)
        except NothingToShowError:
            if warehouse.skipped:
                sys.exit(1)
            raise
        if warehouse.skipped and not code:
            sys.exit(1)
        return code

    return run_reader


def warn_stale(warehouse: Warehouse, table: str, scores: str, roll_up: str, family: str = "") -> None:
    """Print a line to standard error if scores are newer than the table. `roll_up`: the command that updates it.

    `family`: the family of a table over all families.
    """
    if newer := warehouse.find_newer_values(scores, "snapshot", table, family):
        say(
            f"note: scores of {format_count(len(newer), 'snapshot')} are newer than this table; update it with `{roll_up}`",
            err=True,
        )


def warn_mixed(warehouse: Warehouse, table: str, first: Sequence[str] = (), snapshot: str | None = None) -> None:
    """Print a line for each model whose responses in one snapshot are by several served models. `first`: of the space's first level."""
    if not warehouse.tables([table]):
        return
    for line in warehouse.query(
        lambda connection: list(list_mixed_served(connection, table, snapshot)), only=[table], first=first
    ):
        say(line)
