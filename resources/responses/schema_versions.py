"""The schema version of tables in the response database, and making those that are not there yet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from dtef_pipeline.errors import NewerSchema

if TYPE_CHECKING:
    from resources.responses.database import ResponseDatabase


def find_schema_version(connection: sa.Connection, versions: sa.Table, known: int, what: str) -> int | None:
    """The schema version found; None: the tables are not there. `what`: begins the message of the error, such as `the votes were`.

    Raises NewerSchema when newer code wrote them: a version above `known`.
    """
    if not sa.inspect(connection).has_table(versions.name):
        return None
    found: int | None = connection.scalar(sa.select(sa.func.max(versions.c.schema_version)))
    if found is not None and found > known:
        raise NewerSchema(
            f"{what} written by a newer dtef-pipeline (schema version {found}; this one knows up to {known}); "
            "upgrade dtef-pipeline, or choose another store with DTEF_RESPONSES"
        )
    return found


def find_missing_columns(connection: sa.Connection, table: sa.Table) -> list[sa.Column[Any]]:
    """Columns that the table of an older database does not have yet."""
    there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    return [column for column in table.columns if column.name not in there]


def add_missing_columns(connection: sa.Connection, table: sa.Table) -> None:
    """Make them, which `create_all` does not for a table that is there."""
    for column in find_missing_columns(connection, table):
        made = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {made}")


def make_tables(database: ResponseDatabase, versions: sa.Table, known: int, what: str, needed: sa.Table | None = None) -> None:
    """Make the tables beside `versions` where they are missing, with their version.

    Args:
        database: that of the response store.
        versions, known, what: as `find_schema_version` takes them.
        needed: a table of others, made where it is missing.

    Raises StoreError as `find_schema_version`.
    """
    found = partial(find_schema_version, versions=versions, known=known, what=what)

    def make(connection: sa.Connection) -> None:
        # A second process waits for the first, and finds what it made.
        if found(connection) is None:
            versions.metadata.create_all(connection)
            if needed is not None:
                needed.create(connection, checkfirst=True)
            connection.execute(sa.insert(versions).values(schema_version=known))

    if database.read(found) is None:
        database.write(make, alone=True)
