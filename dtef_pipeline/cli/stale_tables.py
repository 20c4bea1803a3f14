"""What is said beside a stored table that scores are newer than."""

from __future__ import annotations

from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.text.counted import counted
from resources.newer_files import values_newer_than
from resources.warehouse import Warehouse


def say_stale(warehouse: Warehouse, table: str, scores: str, roll_up: str) -> None:
    """One line on standard error where scores are newer than the table, which the command `roll_up` makes of them."""
    if newer := values_newer_than(warehouse, scores, "snapshot", table):
        say(
            f"note: scores of {counted(len(newer), 'snapshot')} are newer than this table; make it again with `{roll_up}`",
            err=True,
        )
