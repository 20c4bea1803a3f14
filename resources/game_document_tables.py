"""The tables of personas and scenarios that were made over HTTP, in the database of the response store.

Rows are added to them and never changed or taken away: a change is a further version, and a status holds until another one is said.
"""

from __future__ import annotations

import sqlalchemy as sa

from dtef_pipeline.errors import StoreError
from resources.responses.database import ResponseDatabase

DOCUMENT_SCHEMA_VERSION = 1

document_metadata = sa.MetaData()
document_schemas = sa.Table(
    "game_document_store", document_metadata, sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False)
)
document_versions = sa.Table(
    "game_documents",
    document_metadata,
    # The order in which they were made.
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("id", sa.String(200), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    # Canonical JSON: the fields without version and status.
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    # Microseconds since 1970 UTC.
    sa.Column("made_at", sa.BigInteger, nullable=False),
    # Of two that make the same version one is stored.
    sa.UniqueConstraint("kind", "id", "version"),
)
document_statuses = sa.Table(
    "game_document_statuses",
    document_metadata,
    # Of several statuses of one version the last holds.
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("id", sa.String(200), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("said_at", sa.BigInteger, nullable=False),
)
sa.Index("game_document_statuses_of", document_statuses.c.kind, document_statuses.c.id)


def make_document_tables(database: ResponseDatabase) -> None:
    """Make what is missing. Raises StoreError when newer code wrote the tables."""
    if database.read(document_schema) is None:
        database.write(_make_documents, alone=True)


def document_schema(connection: sa.Connection) -> int | None:
    """The schema version found; None: there are no such tables. Raises StoreError when newer code wrote them."""
    if not sa.inspect(connection).has_table(document_schemas.name):
        return None
    found: int | None = connection.scalar(sa.select(sa.func.max(document_schemas.c.schema_version)))
    if found is not None and found > DOCUMENT_SCHEMA_VERSION:
        raise StoreError(
            f"the personas and scenarios were written by a newer dtef-pipeline (schema version {found}; this one knows up to "
            f"{DOCUMENT_SCHEMA_VERSION}); upgrade dtef-pipeline, or choose another store with DTEF_RESPONSES"
        )
    return found


def _make_documents(connection: sa.Connection) -> None:
    """A second process waits for the first, and finds what it made."""
    if document_schema(connection) is None:
        document_metadata.create_all(connection)
        connection.execute(sa.insert(document_schemas).values(schema_version=DOCUMENT_SCHEMA_VERSION))
