"""The tables of evaluations requested over HTTP, in the database of the response store: the data that Dagster does not store.

These are the request, its sender, cancellations and the result. A run's progress is in Dagster's run storage and event log. The tables are
append-only.
"""

from __future__ import annotations

import sqlalchemy as sa

from resources.responses.database import ResponseDatabase, make_tables
from resources.votes.vote_tables import actions

EVALUATION_SCHEMA_VERSION = 1

evaluation_metadata = sa.MetaData()
_Microseconds = sa.BigInteger

evaluation_versions = sa.Table(
    "evaluation_queue_store",
    evaluation_metadata,
    sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False),
)
evaluations = sa.Table(
    "evaluation_queue",
    evaluation_metadata,
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("queue_id", sa.String(32), nullable=False, unique=True),
    sa.Column("family", sa.Text, nullable=False),
    # JSON: the request, its Dagster run, and the partition and distinguishing settings of each run.
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("runs", sa.Text, nullable=False),
    sa.Column("run_count", sa.Integer, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("submitted_at", _Microseconds, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("body_digest", sa.String(32), nullable=False),
    sa.UniqueConstraint("submitted_by", "idempotency_key"),
)
evaluation_ends = sa.Table(
    "evaluation_queue_ends",
    evaluation_metadata,
    sa.Column("queue_id", sa.String(32), sa.ForeignKey(evaluations.c.queue_id), primary_key=True),
    # Number of the last event, which remains when the run is deleted in Dagster.
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("started_at", _Microseconds),
    sa.Column("ended_at", _Microseconds, nullable=False),
)
evaluation_cancels = sa.Table(
    "evaluation_queue_cancels",
    evaluation_metadata,
    sa.Column("queue_id", sa.String(32), sa.ForeignKey(evaluations.c.queue_id), primary_key=True),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("asked_at", _Microseconds, nullable=False),
)


def has_not_ended() -> sa.ColumnElement[bool]:
    """Return the condition for rows of `evaluations`."""
    return ~sa.exists().where(evaluation_ends.c.queue_id == evaluations.c.queue_id)


def make_evaluation_tables(database: ResponseDatabase) -> None:
    """Create missing tables. Raises StoreError if newer code wrote them."""
    make_tables(database, evaluation_versions, EVALUATION_SCHEMA_VERSION, "the evaluations were", extra=actions)
