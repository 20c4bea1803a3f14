"""Which columns of a table people see: the eight most important ones, unless they ask for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_COLUMNS = 8
WIDE = 240
"""Width of a table that is not drawn for a terminal: for pipes and files."""
HOW = "--wide shows them, --csv has every column"


@dataclass(frozen=True, slots=True)
class Fit:
    """What a table has to fit into."""

    width: int | None = None
    """Of the terminal; None: there is none."""
    kept: Sequence[str] = ()
    """Columns that are always shown, because the table is about them. Without any, the first one."""
    first_out: Sequence[str] = ()
    """Columns that are hidden before all others, in this order; the others follow from the last one on."""
    how: str = HOW
    """How to see what is hidden."""
    most: int | None = None
    """Number of columns shown at most, those kept included; None: all."""


def shown_columns(columns: Sequence[str], fit: Fit) -> list[str]:
    """The columns that are shown, in their order."""
    hidden: set[str] = set()
    for name in _least_important(columns, fit):
        if fit.most is None or len(columns) - len(hidden) <= fit.most:
            break
        hidden.add(name)
    return [name for name in columns if name not in hidden]


def _least_important(columns: Sequence[str], fit: Fit) -> Iterator[str]:
    """The columns that may be hidden, the least important first."""
    kept = fit.kept or columns[:1]
    yield from (name for name in fit.first_out if name in columns and name not in kept)
    yield from (name for name in reversed(columns) if name not in kept and name not in fit.first_out)
