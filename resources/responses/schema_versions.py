"""The schema version of tables in the response database, and making those that are not there yet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dtef_pipeline.errors import NewerSchema

if TYPE_CHECKING:
    from resources.responses.database import ResponseDatabase


def find_schema_version(connection: sa.Connection, versions: sa.Table, newest: int, label: str) -> int | None:
    """The schema version found; None: the tables are not there. `label`: begins the message of the error, such as `the votes were`.

    Raises NewerSchema when newer code wrote them: a version above `newest`.
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
    """Columns that the table of an older database does not have yet."""
    names = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    return [column for column in table.columns if column.name not in names]


def add_missing_columns(connection: sa.Connection, table: sa.Table) -> None:
    """Make them, which `create_all` does not for a table that is there."""
    for column in find_missing_columns(connection, table):
        ddl = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {ddl}")


def make_tables(database: ResponseDatabase, versions: sa.Table, newest: int, label: str, extra: sa.Table | None = None) -> None:
    """Make the tables beside `versions` where they are missing, with their version.

    Args:
        database: that of the response store.
        versions, known, what: as `find_schema_version` takes them.
        needed: a table of others, made where it is missing.

    Raises StoreError as `find_schema_version`.
    """
    lookup = partial(find_schema_version, versions=versions, newest=newest, label=label)

    def make(connection: sa.Connection) -> None:
        # A second process waits for the first, and finds what it made.
        if lookup(connection) is None:
            versions.metadata.create_all(connection)
            if extra is not None:
                extra.create(connection, checkfirst=True)
            connection.execute(sa.insert(versions).values(schema_version=newest))

    if database.read(lookup) is None:
        database.write(make, alone=True)
