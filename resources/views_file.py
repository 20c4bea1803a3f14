"""The file `dtef.duckdb`: views of the tables for other tools."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from dtef_pipeline.errors import WarehouseError
from resources.failures import reason


def view_of(table: str, patterns: Sequence[str]) -> str:
    """Return the SQL that creates a view of these Parquet files."""
    quoted = ", ".join("'" + pattern.replace("'", "''") + "'" for pattern in patterns)
    return f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{quoted}], hive_partitioning = false)"


class ViewsFile:
    """A database of views only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: object = None

    def refresh(self, views: Mapping[str, pa.Schema | None]) -> Path:
        """Write the file if it has changed, replacing it atomically, so that no reader is ever locked out.

        Args:
            views: statements, with the columns of single-file views: a view's columns are fixed at creation.

        Raises WarehouseError if it cannot be written, and DuckDB's errors about tables' files.
        """
        if (schemas := dict(views)) == self._written and self.path.exists():
            return self.path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{uuid.uuid4().hex}.duckdb")
        try:
            with duckdb.connect(str(temporary)) as connection:
                for sql in views:
                    connection.execute(sql)
            temporary.replace(self.path)
        except (OSError, duckdb.Error) as error:
            if temporary.name not in str(error):  # of a table's file
                raise
            cause = reason(str(error)) if isinstance(error, OSError) else str(error).splitlines()[0].rpartition(": ")[2]
            raise WarehouseError(f"cannot write {self.path}: {cause}") from None
        finally:
            with suppress(OSError):
                temporary.unlink()
        self._written = schemas
        return self.path
