"""Numbers about evaluations, counted by the database: none of them is read for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from dtef_pipeline.text.well_formed import well_formed
from resources import evaluation_tables as tables
from resources.evaluations import TERMINAL, EvaluationStore
from resources.vote_tables import time_of

_LATELY_SUBMITTED = 200
"""Evaluations among which the last event of all is looked for."""


def run_counts(store: EvaluationStore, queue_ids: Sequence[str]) -> dict[str, int]:
    """How many runs each of these evaluations has."""
    of = tables.evaluation_runs.c
    counts = sa.select(of.queue_id, sa.func.count().label("n")).where(of.queue_id.in_(queue_ids)).group_by(of.queue_id)
    return dict.fromkeys(queue_ids, 0) | {row["queue_id"]: row["n"] for row in store.rows(counts)}


def count_unended(store: EvaluationStore, submitted_by: str | None = None) -> int:
    """How many evaluations have not ended; `submitted_by`: of those alone that this one has submitted."""
    is_unended = tables.of_last_event("kind").not_in(TERMINAL)
    statement = sa.select(sa.func.count().label("n")).select_from(tables.evaluations).where(is_unended)
    if submitted_by is not None:
        statement = statement.where(tables.evaluations.c.submitted_by == well_formed(submitted_by))
    return int(store.rows(statement)[0]["n"])


def last_event_at(store: EvaluationStore) -> datetime | None:
    """When something happened last to one of the evaluations that were submitted lately; None: there is none."""
    kept = tables.evaluations.c
    happened = sa.select(tables.of_last_event("happened_at").label("at")).select_from(tables.evaluations)
    lately = happened.order_by(kept.place.desc()).limit(_LATELY_SUBMITTED).subquery()
    return time_of(store.rows(sa.select(sa.func.max(lately.c.at).label("at")))[0]["at"])
