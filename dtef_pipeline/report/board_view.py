"""One of the tables that `board --by` of a family shows. Loads nothing heavy."""

from __future__ import annotations

from typing import NamedTuple


class BoardView(NamedTuple):
    """A table with its columns for people, and what fills it."""

    name: str
    """What `--by` calls it."""
    table: str
    """The table that it is stored as; empty: it is made of the scores each time."""
    shows: str
    """What its rows say, in the words of the help."""
    columns: tuple[str, ...]
    """Columns shown to people, where any row says something in them."""
    kept: tuple[str, ...]
    """Those of the columns that are shown however narrow the terminal is."""
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
    of_blueprints: bool = False
    """Whether `--blueprint` chooses among its rows."""
    needs: str = ""
    """What there must be for it to have rows, and the command that makes it."""
