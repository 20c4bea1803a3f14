"""A family of evaluations as one record, from which the engine makes everything that the family does not bring itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from dtef_pipeline.boards.family_calls import FamilyCalls
from dtef_pipeline.boards.named_boards import Board
from dtef_pipeline.errors import DtefError
from dtef_pipeline.family.item_scores import ItemScores, build_board_schema
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import Stage, Tables
from dtef_pipeline.keys import Space
from dtef_pipeline.preference.pairing import PairedSource
from dtef_pipeline.tables import TableSpec


class LoadedPart(NamedTuple):
    """A partition as read from a file."""

    key: str
    rows: pa.Table
    """Rows of the family's first table."""


class Preview(NamedTuple):
    """Rows of a roll-up that Dagster shows."""

    table: str
    columns: tuple[str, ...]
    """Columns to show, if the table has them."""
    most: int = 30
    cut: str = ""
    """Only rows of this cut; empty: all rows."""

    @classmethod
    def from_board(cls, board: Board, most: int = 30, cut: str = "") -> Preview:
        """Return the rows of a board with the columns that it shows, interval ends and notes."""
        columns = [end for name in board.columns for end in (board.ends if name == "interval" else (name,))]
        return cls(board.table, (*dict.fromkeys((*columns, board.notes)),), most, cut)


@dataclass(frozen=True)
class FamilyBoard:
    """A roll-up: tables over all partitions, computed from the family's scores."""

    name: str
    """Name of the asset."""
    description: str
    make: Callable[[duckdb.DuckDBPyConnection, Any], Tables]
    """Returns tables by name, the asset's own first, given a connection to the tables that it reads, and `Inputs.outside`."""
    reads: tuple[str, ...]
    previews: Mapping[str, Preview] = field(default_factory=dict)
    """Previews by name of the metadata entry."""
    version: str = "1"
    after: tuple[str, ...] = ()
    """Assets that it depends on; empty: the family's scores."""
    table: str = ""
    """Its own table; empty: the table has the name of the asset."""
    metadata: Callable[[Tables, Any], Mapping[str, Any]] = field(default=lambda tables, outside: {})
    """Returns further metadata (texts, numbers), given its tables and the installation."""


@dataclass(frozen=True)
class Family:
    """One kind of evaluation, with its own items, judges and partitions."""

    name: str
    space: Space
    """Its partitions."""
    tables: Mapping[str, TableSpec]
    """Its tables by name; the first one lists the partitions."""
    calls: FamilyCalls
    """Its tables whose rows come from calls of models."""
    scores_table: str
    """Its table of scores, with a column for each model's name and variant."""
    computed_models: Mapping[str, int | None] = field(default_factory=dict)
    """The models that it computes itself, such as baselines, with their default seeds: see `asking.models.load_models`."""
    pair_source: PairedSource | None = None
    """The source of responses that people compare in pairs; None: there is none."""
    settings: type[RunSettings] = RunSettings
    """The settings of its runs."""
    stage_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The settings of each stage in pipeline order, if `stages` does not define them."""
    roles: tuple[str, ...] = ()
    """Roles besides candidates whose responses are in this family's tables only."""
    help: str = ""
    """A sentence on what it evaluates."""
    load: Callable[[Path], Iterable[LoadedPart]] | None = None
    """Reads a file of `add`. Raises DtefError. None: the family has its own packages.

    With it, the engine assembles the whole family: its space has two levels, its settings are PartSettings, and its scores have the columns
    of `scores`.
    """
    stages: Callable[[], Sequence[Stage]] = tuple
    """Returns its stages after the first, which loads the files."""
    scores: ItemScores = field(default_factory=ItemScores)
    """The columns of its score table, if the engine makes its board."""
    boards: tuple[FamilyBoard, ...] = ()
    """Its other roll-ups."""

    @property
    def is_assembled(self) -> bool:
        """Whether the engine makes everything from this record; otherwise the family has its own packages."""
        return self.load is not None

    @property
    def part(self) -> str:
        """Name of the last partition level."""
        return self.space.last

    @property
    def first_table(self) -> str:
        """Name of the stage and table that files are read into."""
        return next(iter(self.tables))

    @property
    def board(self) -> str:
        """Name of the board's table, if the engine computes the board."""
        return f"{self.name}_board"

    @property
    def all_tables(self) -> Mapping[str, TableSpec]:
        """The family's tables including its board."""
        if not self.is_assembled:
            return self.tables
        schema = self.tables[self.scores_table].schema
        assert schema is not None, f"{self.scores_table} has no schema"
        board = TableSpec(build_board_schema(schema, self.space, self.scores), remake=f"dtef {self.name} board --refresh")
        return {**self.tables, self.board: board}

    @property
    def rolled_up(self) -> list[str]:
        """The tables over all partitions, which roll-ups compute from the scores."""
        return [name for name, t in self.all_tables.items() if t.space is None and t.remake.endswith("board --refresh")]

    @property
    def roll_ups(self) -> list[str]:
        """The assets over all partitions that the engine makes, ending with the report."""
        boards = [board.name for board in self.boards]
        return [self.board, *boards, *(f"{self.name}_{name}" for name in ("costs", "drift")), "report"]

    @property
    def settings_by_stage(self) -> Mapping[str, tuple[str, ...]]:
        """The settings of each stage, in pipeline order."""
        settings = {stage.name: stage.settings for stage in self.stages()}
        return {self.first_table: (), **settings} if self.is_assembled else self.stage_settings

    @property
    def responses(self) -> str:
        """Name of the first call table, the table of responses."""
        return self.calls.tables[0].table


def load_parts(family: Family, path: Path) -> Mapping[str, LoadedPart]:
    """Return the partitions of a file by key. Raises DtefError if the file is faulty or names a partition twice."""
    assert family.load is not None, f"{family.name} loads no files"
    parts: dict[str, LoadedPart] = {}
    for part in family.load(path):
        if part.key in parts:
            raise DtefError(f"{path}: the file has {part.key} twice")
        parts[part.key] = part
    return parts
