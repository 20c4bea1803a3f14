"""Files that could not be read: what a run says of those that it made again, and of those that it did without."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from resources.table_reader import TableReader
from resources.warehouse import Warehouse

Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext
MADE_AGAIN, LEFT_OUT, NOT_RESTORED = "files_made_again", "files_left_out", "not_restored"
"""Metadata of a materialization: a list of lines."""
_MADE = "could not be read, and was made again: "


def made_again(context: Context, warehouse: Warehouse) -> dict[str, Any]:
    """The metadata and the log line of each file that could not be read and was written anew since this was asked last."""
    lines = [f"{_MADE}{path}" for path in warehouse.take_damaged()]
    return _told(context, MADE_AGAIN, lines)


def left_out(context: Context, reader: TableReader) -> dict[str, Any]:
    """The metadata and the log line of each file that what was made does without, and of those that were made again."""
    reader.forget_mended()
    return {**_told(context, LEFT_OUT, list(reader.left_out.values())), **made_again(context, reader.warehouse)}


def unmended(left_out: Sequence[str], made_again: Sequence[str]) -> tuple[str, ...]:
    """The lines on files that were left out and have not been made again since."""
    mended = [line.removeprefix(_MADE) for line in made_again]
    return tuple(line for line in left_out if not any(f": {path}: " in line for path in mended))


def not_restored(context: Context, lines: Sequence[str]) -> dict[str, Any]:
    """The metadata and the log line of what stood in a file that was made again and may not stand in it any more."""
    return _told(context, NOT_RESTORED, list(lines))


def _told(context: Context, name: str, lines: list[str]) -> dict[str, Any]:
    for line in lines:
        context.log.warning(line)
    return {name: dg.MetadataValue.json(lines)} if lines else {}
