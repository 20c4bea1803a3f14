"""What the boards of a family show by name: each view with its table and its columns for people. Loads nothing heavy."""

from __future__ import annotations

from typing import NamedTuple


class BoardView(NamedTuple):
    """Rows of a table that roll-ups make, or what a command makes of other tables when it shows them."""

    name: str
    """What `--by` calls it; of a table of several cuts its cut."""
    table: str
    """The table it is stored as, or whose columns it has."""
    shows: str
    """What its rows say, in the words of the help."""
    columns: tuple[str, ...]
    """Columns shown to people, where any row says something in them."""
    kept: tuple[str, ...]
    """Those of the columns that are shown however narrow the terminal is."""
    needs: str
    """What there must be for it to have rows, and the command that makes it."""
    first_out: tuple[str, ...] = ()
    """Those that a narrow terminal is the first to do without."""
    estimate: str = "score"
    """The column whose interval is shown as one column."""
    ends: tuple[str, str] = ("low", "high")
    """The columns with the ends of the estimate's interval."""
    notes: str = "note"
    """The column of what is to be known of a row, such as why it has no interval."""
    who: tuple[str, ...] = ("model",)
    """The columns that name the row in front of such a note."""
    check: str = ""
    """Only rows of this check; empty: all rows."""
    of_partitions: bool = False
    """Whether the command's option for partitions, such as `--blueprint`, chooses among its rows."""
