"""Each family's record for commands that read its tables, its board, and the meaning of the columns of all boards.

A family defines one record, in `NAME_board.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pandas as pd
import pyarrow as pa

from assets.engine.settings_config import load_family_panel
from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.cli.options import USUAL_FAMILY
from dtef_pipeline.cli.terminal import compute_terminal_fit, print_rows, whole_frame
from dtef_pipeline.cli.warehouse_access import NothingToShowError, reads_tables, warn_mixed, warn_stale
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILY_BY_NAME, TABLES
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import build_command_settings
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.boards.schemas import MEANINGS, list_meanings
from dtef_pipeline.survey.boards.survey_boards import PUBLISHED
from dtef_pipeline.tables import Cuts, description, select_cut
from dtef_pipeline.text.name_matching import filter_by_patterns as filter_by_patterns
from dtef_pipeline.text.name_matching import suggest_nearest
from resources.settings import Settings
from resources.warehouse import Warehouse, build_family_levels

if TYPE_CHECKING:
    from dtef_pipeline.family.stage import Stage

_ROLLED_UP_BY = "`dtef {0} run` or `dtef {0} board --refresh` makes it"


class ExplainedColumns(NamedTuple):
    """Displayed columns that are not, or not all, columns of a table."""

    place: str
    """Module and name of the column descriptions, imported on demand."""
    table: str = ""
    """The table whose columns are shown as well."""

    def load(self) -> Mapping[str, str]:
        module, _, name = self.place.rpartition(".")
        columns: Mapping[str, str] = getattr(import_module(module), name)
        return columns


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """A family's record for commands that read its tables."""

    name: str
    subject: Subject
    """The subject that is watched for drift."""
    boards: Sequence[Board] = ()
    """The choices of `board --by`."""
    cuts: Cuts = field(default_factory=dict)
    """The cuts of its board's table."""
    rows: Callable[..., pd.DataFrame] = lambda warehouse, family, board, parts: read_stored_board(warehouse, family, board)
    """Returns the rows of a board: (warehouse, this record, board, patterns of partitions, the family's own options). Default: stored rows."""
    lines: Callable[[Warehouse, Board, pd.DataFrame, Sequence[str]], Iterable[str]] = lambda warehouse, board, rows, parts: ()
    """Returns notes on a whole board, from its rows and the patterns of partitions."""
    show: Callable[..., None] | None = None
    """Prints its board, given all options, or None if `print_board` does."""
    drift_lines: Callable[[Warehouse], Iterable[str]] = lambda _: ()
    """Lines printed below the drift verdicts."""
    wait_hint: str = ""
    """The command that shows scores while snapshots are too close together to compare."""
    no_series_reason: str = "no snapshot of a language model"
    """Why there is no series, if no other reason is known."""
    explained_columns: Mapping[str, ExplainedColumns] = field(default_factory=dict)
    """Entries of `dtef explain` in addition to its boards."""

    @property
    def record(self) -> Family:
        """The family's record in the shared rooms."""
        return FAMILY_BY_NAME[self.name]

    @property
    def run(self) -> str:
        """The command that runs its stages."""
        return "dtef run" if self.name == USUAL_FAMILY else f"dtef {self.name} run"


def family_record(name: str) -> CommandFamily:
    record: CommandFamily = family_commands(name, "board", "COMMANDS")
    return record


@reads_tables
def print_board(
    warehouse: Warehouse, /, name: str, by: str, models: Sequence[str], output: str, parts: Sequence[str] = (), **own: Any
) -> None:
    """Print a board. `models`, `parts`: patterns; `own`: options that only this family has."""
    family = family_record(name)
    board = next(entry for entry in family.boards if entry.name == by)
    frame = filter_by_model(family.rows(warehouse, family, board, parts, **own), models, by)
    if not len(frame):
        raise NothingToShowError(f"nothing to show by {by}: it needs {board.needs}")
    lines = family.lines(warehouse, board, frame, parts)
    print_rows(board, frame, output, lines, f"{name}/{by}")
    if output == "table" and "rank" in board.columns:
        warn_mixed(warehouse, family.record.responses)


def read_stored_board(warehouse: Warehouse, family: CommandFamily, board: Board) -> pd.DataFrame:
    """Return the stored rows of a board. Raises WarehouseError without a roll-up."""
    require_rolled_up(warehouse, family.name, board.table, family.record.scores_table)
    return select_board_rows(family, board, warehouse.rows(board.table, **build_family_levels(board.table, family.name)))


def select_board_rows(family: CommandFamily, board: Board, rows: pa.Table) -> pd.DataFrame:
    """Return a board's rows from its table's."""
    frame = whole_frame(rows)
    return select_cut(frame, board.name, family.cuts) if board.table == family.record.board else frame


def fitting_rows(frame: pd.DataFrame, column: str, patterns: Sequence[str], given_as: str) -> pd.DataFrame:
    """Return the rows whose value matches a pattern, or all without patterns. Raises ConfigError if a pattern matches nothing."""
    return _fitting_any(frame, [column], patterns, given_as)


def _fitting_any(frame: pd.DataFrame, columns: Sequence[str], patterns: Sequence[str], given_as: str) -> pd.DataFrame:
    """Return the rows with a matching value in any of the columns (see `fitting_rows`)."""
    if not patterns:
        return frame
    values = sorted({str(value) for column in columns for value in frame[column].dropna()})
    is_chosen = frame[list(columns)].isin(filter_by_patterns(values, patterns, given_as)).any(axis=1)
    return frame[is_chosen].reset_index(drop=True)


def filter_by_model(frame: pd.DataFrame, patterns: Sequence[str], by: str) -> pd.DataFrame:
    """Return the rows of matching models, or all without patterns; a comparison matches by either model. Raises ConfigError if the rows
    have no models.
    """
    if patterns and "model" not in frame:
        raise ConfigError(f"--model does not work with --by {by}, whose rows are not about models")
    return _fitting_any(frame, [name for name in ("model", "other_model") if name in frame], patterns, "--model")


def describe_table_columns(table: str) -> dict[str, str]:
    """Return the meanings of a table's columns."""
    schema = TABLES[table].schema
    return dict(MEANINGS.get(table, {})) if schema is None else {column.name: description(column) for column in schema}


_EXPLAINED = {
    "costs": ExplainedColumns("dtef_pipeline.cli.read.SHOWN_COST", "costs"),
    "drift": ExplainedColumns("dtef_pipeline.survey.boards.schemas.DRIFT_HEADINGS", "drift"),
    "estimate": ExplainedColumns("dtef_pipeline.asking.call_plan.PLANNED"),
    "preference": ExplainedColumns("dtef_pipeline.cli.preference.preference_board.SCORE_INTERVAL", "preference_scores"),
    "preference/metrics": ExplainedColumns("dtef_pipeline.preference.score_publishing.AGREEMENT_COLUMNS"),
    "responses": ExplainedColumns("dtef_pipeline.cli.responses.STORED"),
}
"""Entries of `dtef explain` that belong to no family."""


def explain(name: str | None, output: str) -> None:
    """Print the meaning of the columns of a board or table, or all names without one. Raises ConfigError if the name is unknown."""
    if name is None:
        click.echo(render(pd.DataFrame({"name": list_board_names()}), output))
        return
    rows = pd.DataFrame(find_columns(name).items(), columns=["column", "meaning"])
    rows["meaning"] = rows["meaning"].str.replace("null: ", "- means ")
    click.echo(render(rows, output, fit=compute_terminal_fit(["column", "meaning"])))


def find_columns(name: str) -> Mapping[str, str]:
    """Return column descriptions by name. `name`: a board, a table, or a family for its first board. Raises ConfigError if unknown."""
    family = name.partition("/")[0]
    families = [family] if family in FAMILY_BY_NAME else []
    if (entry := _list_explained(families).get(name)) is not None:
        return _merge(entry.load(), describe_table_columns(entry.table) if entry.table else {})
    if (board := _list_boards(families).get(name)) is not None:
        return describe_board_columns(board, family)
    if name in TABLES:
        return describe_table_columns(name)
    raise ConfigError(f"no board or table {name!r}. {suggest_nearest(name, list_board_names())}`dtef explain` lists all")


def list_board_names() -> list[str]:
    """Return the names for `dtef explain`."""
    return sorted({*_list_boards(FAMILY_BY_NAME), *_list_explained(FAMILY_BY_NAME), *TABLES})


def _list_boards(families: Iterable[str]) -> dict[str, Board]:
    """Return the boards of these families by name. A family's name refers to its first board."""
    known = {name: family_record(name).boards for name in families}
    first = {name: boards[0] for name, boards in known.items() if boards}
    return first | {f"{name}/{board.name}": board for name, boards in known.items() for board in boards}


def _list_explained(families: Iterable[str]) -> dict[str, ExplainedColumns]:
    return {
        **_EXPLAINED,
        **{name: columns for family in families for name, columns in family_record(family).explained_columns.items()},
    }


def _merge(board_columns: Mapping[str, str], table_columns: Mapping[str, str]) -> dict[str, str]:
    """Return the displayed columns, then the other columns of the table. A displayed column keeps its meaning in `board_columns`."""
    return {**board_columns, **table_columns, **board_columns}


def describe_board_columns(board: Board, family: str) -> dict[str, str]:
    """Return the meaning of a board's columns: those of its table, and the others that it shows."""
    if board in PUBLISHED:
        return _merge(list_meanings(board.name), describe_table_columns(board.table))
    if not board.table:
        return dict(board.meanings)
    interval = {"interval": f"95 % interval of {board.estimate}"} if "interval" in board.columns else {}
    ranked, stored = describe_table_columns(FAMILY_BY_NAME[family].board), describe_table_columns(board.table)
    levels = {column: ranked[column] for column in board.columns if column in ranked and column not in stored}
    return _merge({**levels, **interval, **board.meanings}, stored)


def require_table(warehouse: Warehouse, table: str, commands: str) -> None:
    """Raise WarehouseError if a table has no files. `commands`: the commands that make it."""
    if not warehouse.tables([table]):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {commands}")


def require_rolled_up(warehouse: Warehouse, family: str, table: str, scores: str) -> None:
    """Raise WarehouseError if no roll-up has made a table from `scores`. Warns if scores are newer."""
    part = {"family": family} if TABLES[table].levels == ("family",) else {}
    if part and family not in warehouse.values(table, "family"):
        raise WarehouseError(f"no {table} of {family} in {warehouse.root} yet: {_ROLLED_UP_BY.format(family)}")
    require_table(warehouse, table, _ROLLED_UP_BY.format(family))
    warn_stale(warehouse, table, scores, f"dtef {family} board --refresh", **part)


def family_commands(name: str, module: str, kind: str) -> Any:
    """Return the record `NAME_KIND` of the file `NAME/NAME_module.py`, or one built from the family's own record if it is assembled."""
    family = FAMILY_BY_NAME[name]
    if family.is_assembled:
        return getattr(import_module("dtef_pipeline.cli.plugin_records"), f"plugin_{kind.lower()}")(family)
    return getattr(import_module(f"dtef_pipeline.cli.{name}.{name}_{module}"), f"{name.upper()}_{kind}")


def family_settings(family: str, options: Mapping[str, Any]) -> Any:
    """Return the settings that options give, completed by those that only the panel file's section has."""
    model = FAMILY_BY_NAME[family].settings
    return build_command_settings(model, options, load_family_panel(Settings.read_environment(), family, model))


def load_stages(family: str, name: str) -> Sequence[Stage]:
    """Load the stages in the variable `name` of the family's assets."""
    stages: Sequence[Stage] = getattr(import_module(f"assets.{family}.stages"), name)
    return stages
