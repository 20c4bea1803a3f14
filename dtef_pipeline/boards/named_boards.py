"""How tables are displayed, and the named boards of a family. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableView:
    """The columns of a table that are shown."""

    columns: tuple[str, ...] = ()
    """Columns shown to people, where any row says something in them; `interval` is made of the ends of the `estimate`."""
    always_shown: tuple[str, ...] = ()
    """Those of the columns that are shown however narrow the terminal is."""
    hidden_first: tuple[str, ...] = ()
    """Those that are hidden first where there are too many."""
    estimate: str = ""
    """The column whose interval is shown as one column."""
    notes: str = "note"
    """The column of what is to be known of a row, such as why it has no interval."""
    name_columns: tuple[str, ...] = ("model",)
    """The columns that name the row in front of such a note."""
    ends: tuple[str, str] = ("low", "high")
    """The columns with the ends of the estimate's interval."""
    further_intervals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By the column that shows it, the ends of another interval of the estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardView(TableView):
    """Rows of a table made by roll-ups, or computed from other tables by the command that shows them."""

    name: str
    """What `--by` calls it; of a table of several cuts its cut."""
    table: str
    """The table it is stored as, or whose columns it has."""
    shows: str
    """What its rows say, in the words of the help."""
    needs: str = ""
    """What there must be for it to have rows, and the command that makes it; empty: scores."""
    estimate: str = "score"
    check: str = ""
    """Only rows of this check; empty: all rows."""
    filters_partitions: bool = False
    """Whether the command's option for partitions, such as `--blueprint`, chooses among its rows."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Of columns that the table does not have."""


def comparisons_view(shows: str, needs: str, *groups: str, of_partitions: bool = False) -> BoardView:
    """Return the view of the family's part of the table `comparisons`. `groups`: columns compared separately."""
    return BoardView(
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
