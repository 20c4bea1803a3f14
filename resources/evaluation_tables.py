"""The tables of evaluations that were asked for over HTTP, in the database of the response store: what was asked, and what became of it.

Rows are added to them and never changed or taken away.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from resources.responses.database import ResponseDatabase
from resources.responses.schema_versions import make_tables
from resources.vote_tables import actions

EVALUATION_SCHEMA_VERSION = 1

evaluation_metadata = sa.MetaData()
_Microseconds = sa.BigInteger

evaluation_versions = sa.Table(
    "evaluation_store", evaluation_metadata, sa.Column("schema_version", sa.Integer, primary_key=True, autoincrement=False)
)
evaluations = sa.Table(
    "evaluations",
    evaluation_metadata,
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("queue_id", sa.String(32), nullable=False, unique=True),
    sa.Column("family", sa.Text, nullable=False),
    # JSON objects: what was sent, and the Dagster run that it comes to.
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("submitted_at", _Microseconds, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("body_digest", sa.String(32), nullable=False),
    sa.UniqueConstraint("submitted_by", "idempotency_key"),
)
evaluation_runs = sa.Table(
    "evaluation_runs",
    evaluation_metadata,
    sa.Column("run_id", sa.String(32), primary_key=True),
    sa.Column("queue_id", sa.String(32), sa.ForeignKey(evaluations.c.queue_id), nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    # The partition, and a JSON object with what else tells the run from the others of its evaluation.
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("asks", sa.Text, nullable=False),
    sa.UniqueConstraint("queue_id", "place"),
)
evaluation_events = sa.Table(
    "evaluation_events",
    evaluation_metadata,
    sa.Column("queue_id", sa.String(32), sa.ForeignKey(evaluations.c.queue_id), primary_key=True),
    # From 1 without gaps.
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("happened_at", _Microseconds, nullable=False),
    # What the event tells of: told again, it is the same event.
    sa.Column("source", sa.Text, nullable=False),
    sa.UniqueConstraint("queue_id", "source"),
)
evaluation_cancels = sa.Table(
    "evaluation_cancels",
    evaluation_metadata,
    sa.Column("queue_id", sa.String(32), sa.ForeignKey(evaluations.c.queue_id), primary_key=True),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("asked_at", _Microseconds, nullable=False),
)


def of_last_event(column: str) -> sa.ScalarSelect[Any]:
    """A column of the last event of the evaluation of the row: one look at the key of the events. Every evaluation has an event."""
    event = evaluation_events.c
    own = sa.select(event[column]).where(event.queue_id == evaluations.c.queue_id).correlate(evaluations)
    return own.order_by(event.seq.desc()).limit(1).scalar_subquery()


def make_evaluation_tables(database: ResponseDatabase) -> None:
    """Make what is missing. Raises StoreError when newer code wrote the tables."""
    make_tables(database, evaluation_versions, EVALUATION_SCHEMA_VERSION, "the evaluations were", needed=actions)
