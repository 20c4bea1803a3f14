"""Commands that read tables do without a file that cannot be read: they name it, go on, and say so by their exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from dtef_pipeline.asking.snapshot_order import has_several, take_times, times
from dtef_pipeline.cli.places import absent
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.documents import existing
from dtef_pipeline.errors import WarehouseError, makes_again
from dtef_pipeline.text.counted import counted
from resources.settings import Settings
from resources.table_reader import FILES_NAMED, TableReader, each_command_once
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    import duckdb

    from assets.launch import Launched

Given = ParamSpec("Given")
Out = TypeVar("Out")


def open_warehouse(*, new: bool = False) -> Warehouse:
    """The warehouse of DTEF_WAREHOUSE. `new`: it may be yet to be made. Raises WarehouseError where there is none, or can be none."""
    warehouse = Warehouse(Settings.from_environment().warehouse)
    root = Path(warehouse.root)
    if not warehouse.is_local or root.is_dir():
        return warehouse
    there = existing(root)
    if not there.is_dir():
        raise WarehouseError(
            f"the warehouse {root} cannot be a folder, since {there} is a file; name another place in DTEF_WAREHOUSE"
        )
    if not new:
        if (place := absent("warehouse", root, "DTEF_WAREHOUSE")).state == "problem":
            raise WarehouseError(f"there is no warehouse {root}: {place.found}; name another place in DTEF_WAREHOUSE")
        raise WarehouseError(
            f"there is no warehouse {root}: `{_makes_it()}` makes it, or name the one you mean in DTEF_WAREHOUSE"
        )
    return warehouse


def _makes_it() -> str:
    """The command by which the family of the present command gets its first tables."""
    context = click.get_current_context(silent=True)
    words = context.command_path.split() if context else []
    return "dtef qa add SUITE PATH" if "qa" in words else "dtef games run" if "games" in words else "dtef ingest PATH"


def open_reader(warehouse: Warehouse | None = None) -> TableReader:
    """The tables; each file that is left out is a line of standard error."""
    return TableReader(warehouse or open_warehouse(), lambda line: say(f"warning: {line}", err=True))


def queried(
    reader: TableReader, use: Callable[[duckdb.DuckDBPyConnection], Out], only: Iterable[str], rounds: Sequence[str]
) -> Out:
    """What `use` makes of the tables of these rounds (none: of all), `scores` among them.

    Snapshots have the order that they have over all rounds, and batteries are linked as over all rounds.
    """
    from dtef_pipeline.survey.boards.linked import question_clusters, take_links

    if not rounds:
        return reader.query(use, only=only)
    of_all = reader.query(times, only=["scores"]) if reader.query(has_several, only=["scores"], first=rounds) else None
    linked = reader.query(question_clusters, only=["survey_responses"])

    def as_of_all(connection: duckdb.DuckDBPyConnection) -> Out:
        if of_all is not None:
            take_times(connection, of_all)
        take_links(connection, linked)
        return use(connection)

    return reader.query(as_of_all, only=only, first=rounds)


def say_files(launched: Launched) -> None:
    """Say which files a run made again, because they could not be read, what of them is lost, and which its roll-ups are made without."""
    for line in launched.made_again:
        say(line, err=True)
    for line in launched.not_restored:
        say(f"warning: some of it may not be there again: {line}", err=True)
    for line in each_command_once(launched.left_out[:FILES_NAMED]):
        say(f"warning: roll-ups: {line}", err=True)
    say_more(len(launched.left_out[FILES_NAMED:]))


def say_more(files: int, remade_by: Sequence[str] = ()) -> None:
    """Say how many files were left out besides those that were named, and what makes all of them again, where that is known."""
    if files:
        remedy = f"; {_all_again(remade_by)}" if remade_by else ""
        say(f"warning: left out as well, since they cannot be read: {counted(files, 'more file')}{remedy}", err=True)


def unreadable(reader: TableReader, what: str) -> WarehouseError:
    """Of a command that has nothing to show because of what was left out."""
    # Where there are more files than were named, the last warning has the command.
    remedy = "the last warning says what makes it again" if reader.more else _all_again(reader.remade_by())
    return WarehouseError(f"no {what} can be read, so there is nothing to show; {remedy}")


def _all_again(commands: Sequence[str]) -> str:
    return makes_again("; ".join(commands), "all that was left out")


def reads_tables(command: Callable[Concatenate[TableReader, Given], Out]) -> Callable[Given, Out]:
    """Hands the tables to a command that reads. Where a file was left out, it ends with exit code 1, unless with a higher one."""

    @wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Out:
        reader = open_reader()
        try:
            code = command(reader, *args, **kwargs)
        finally:
            say_more(reader.more, reader.remade_by() if reader.more else ())
        if reader.left_out and not code:
            sys.exit(1)
        return code

    return wrapped
