"""The tables of personas and scenarios that were made over HTTP, in the database of the response store.

Rows are added to them and never changed or taken away: a change is a further version, and a status holds until another one is said.
"""

from __future__ import annotations

import sqlalchemy as sa

from resources.responses.database import ResponseDatabase
from resources.responses.schema_versions import make_tables, schema_found

DOCUMENT_SCHEMA_VERSION = 1
_WHAT_WAS_WRITTEN = "the personas and scenarios were"

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
    make_tables(database, document_schemas, DOCUMENT_SCHEMA_VERSION, _WHAT_WAS_WRITTEN)


def document_schema(connection: sa.Connection) -> int | None:
    """The schema version found; None: there are no such tables. Raises StoreError when newer code wrote them."""
    return schema_found(connection, document_schemas, DOCUMENT_SCHEMA_VERSION, _WHAT_WAS_WRITTEN)
