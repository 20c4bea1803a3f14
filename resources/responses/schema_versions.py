"""Schema versions of tables in the response database, and creation of missing tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dtef_pipeline.errors import NewerSchema

if TYPE_CHECKING:
    from resources.responses.database import ResponseDatabase


def find_schema_version(connection: sa.Connection, versions: sa.Table, newest: int, label: str) -> int | None:
    """Return the schema version, or None if the tables are missing. `label`: begins the error message, such as `the votes were`.

    Raises NewerSchema if newer code wrote them: a version above `newest`.
    """
    if not sa.inspect(connection).has_table(versions.name):
        return None
    version: int | None = connection.scalar(sa.select(sa.func.max(versions.c.schema_version)))
    if version is not None and version > newest:
        raise NewerSchema(
            f"{label} written by a newer dtef-pipeline (schema version {version}; this one knows up to {newest}); "
            "upgrade dtef-pipeline, or choose another store with DTEF_RESPONSES"
        )
    return version


def find_missing_columns(connection: sa.Connection, table: sa.Table) -> list[sa.Column[Any]]:
    """Return the columns that the table of an older database lacks."""
    names = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    return [column for column in table.columns if column.name not in names]


def add_missing_columns(connection: sa.Connection, table: sa.Table) -> None:
    """Add missing columns, which `create_all` does not for an existing table."""
    for column in find_missing_columns(connection, table):
        ddl = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {ddl}")


def make_tables(database: ResponseDatabase, versions: sa.Table, newest: int, label: str, extra: sa.Table | None = None) -> None:
    """Create missing tables beside `versions`, with their version.

    Args:
        database: of the response store.
        versions, newest, label: as for `find_schema_version`.
        extra: another module's table, created if missing.

    Raises NewerSchema as `find_schema_version`.
    """
    lookup = partial(find_schema_version, versions=versions, newest=newest, label=label)

    def make(connection: sa.Connection) -> None:
        # A second process waits for the first and finds its tables.
        if lookup(connection) is None:
            versions.metadata.create_all(connection)
            if extra is not None:
                extra.create(connection, checkfirst=True)
            connection.execute(sa.insert(versions).values(schema_version=newest))

    if database.read(lookup) is None:
        database.write(make, exclusive=True)
