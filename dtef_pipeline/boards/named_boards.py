"""The layouts of tables for people, and the named boards of a family. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns that a table shows to people."""

    columns: tuple[str, ...] = ()
    """Columns to show if any row has a value; `interval` shows the ends of the `estimate`'s interval."""
    always_shown: tuple[str, ...] = ()
    """Columns that even a narrow terminal shows."""
    hidden_first: tuple[str, ...] = ()
    """Columns that are hidden first, in this order."""
    estimate: str = ""
    """The column whose interval the column `interval` shows."""
    notes: str = "note"
    """The column with notes on a row, such as why it has no interval."""
    name_columns: tuple[str, ...] = ("model",)
    """The columns that identify the row in front of a note."""
    ends: tuple[str, str] = ("low", "high")
    """The columns with the ends of the estimate's interval."""
    further_intervals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The ends of further intervals of the estimate, by the column that shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board(TableLayout):
    """A board: rows of a table from the roll-ups, or computed by the command that shows them."""

    name: str
    """Its name for `--by`; in a table of several cuts, the cut."""
    table: str
    """The table that stores it, or whose columns it has."""
    shows: str
    """What it shows, for the help."""
    needs: str = ""
    """What it needs to have rows, with the command that makes it; empty: only scores."""
    estimate: str = "score"
    check: str = ""
    """The check whose rows it shows; empty: all rows."""
    filters_partitions: bool = False
    """Whether the option for partitions, such as `--blueprint`, filters its rows."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """The meanings of columns that the table does not have."""


def comparisons_board(shows: str, needs: str, *groups: str, of_partitions: bool = False) -> Board:
    """Return the board of the family's rows of the table `comparisons`. `groups`: columns compared separately."""
    return Board(
        (
            *groups,
            *("model", "other_model", "verdict", "difference", "interval", "score", "other_score"),
            *("n_items", "n_clusters", "p_adjusted"),
        ),
        ("model", "other_model", "verdict", "difference"),
        ("n_clusters", "n_items", *(name for name in groups if name == "measured_by"), "other_score", "score"),
        name="comparisons",
        table="comparisons",
        shows=shows,
        needs=needs,
        estimate="difference",
        name_columns=(*groups[:1], "model", "other_model"),
        filters_partitions=of_partitions,
    )
