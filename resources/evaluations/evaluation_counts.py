"""Numbers about evaluations, counted by the database without reading any evaluation."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.text.well_formed import replace_surrogates
from resources.evaluations.evaluation_store import EvaluationStore, evaluation_ends, evaluations, has_not_ended
from resources.responses.database import evaluation_responses, lost_attempts, read_if_there
from resources.responses.store import ResponseStore
from resources.votes.vote_tables import decode_time

_REPORTED_DECIMALS = 12
"""Decimals of dollars in reports, far below the price of a token."""
_LATELY_SUBMITTED = 200
"""Number of running evaluations among which the newest event is sought."""
_UNENDED = sa.select(sa.func.count().label("n")).select_from(evaluations).where(has_not_ended())


def count_unended(store: EvaluationStore, submitted_by: str | None = None) -> int:
    """Return how many evaluations have not ended; `submitted_by`: only those of this sender."""
    statement = _UNENDED
    if submitted_by is not None:
        statement = statement.where(evaluations.c.submitted_by == replace_surrogates(submitted_by))
    return int(store.rows(statement)[0]["n"])


def count_unended_if_present(location: str | Path, patience_s: float) -> int:
    """Return how many evaluations of a response store have not ended; creates nothing if the store does not exist.

    `patience_s`: how long to wait for an unreachable server. Raises ConfigError and StoreError.
    """

    def count_rows(connection: sa.Connection) -> int:
        exists = sa.inspect(connection).has_table(evaluation_ends.name)
        return int(connection.execute(_UNENDED).scalar_one()) if exists else 0

    return read_if_there(location, count_rows, 0, patience_s=patience_s)


def last_event_at(store: EvaluationStore) -> datetime | None:
    """Return the time of the last submission, end, or event of a running evaluation, or None."""
    ends, fields = evaluation_ends.c, evaluations.c
    times = [store.rows(sa.select(sa.func.max(column).label("at")))[0]["at"] for column in (fields.submitted_at, ends.ended_at)]
    event_times = [
        event.happened_at
        for evaluation in store.latest(_LATELY_SUBMITTED, status="running")
        for event in store.log.events(evaluation.queue_id)[-1:]
    ]
    return max([*filter(None, map(decode_time, times)), *event_times], default=None)


def sum_call_costs_by(store: EvaluationStore, queue_id: str) -> dict[str, Any]:
    """Return the cost of all calls that an evaluation's runs made themselves: `usd` (None if no cost is known), `calls` answered,
    `prompt_tokens`, `completion_tokens`, and `unpriced`, the attempts of unknown cost, which cost at most `unpriced_usd_most` where that
    is known. Cache hits cost nothing.
    """
    keys = {
        row["request_key"]
        for table in (evaluation_responses, lost_attempts)
        for row in store.rows(sa.select(table.c.request_key).where(table.c.queue_id == queue_id))
    }
    costs = ResponseStore(store.database).sum_call_costs(keys, queue_id)
    totals = {name: getattr(costs, name) for name in ("calls", "prompt_tokens", "completion_tokens", "unpriced")}
    most = {} if costs.most_usd is None else {"unpriced_usd_most": round_dollars(costs.most_usd)}
    return {**totals, "usd": round_dollars(costs.cost_usd), **most}


def round_dollars(usd: float | None) -> float | None:
    """Format dollars for reports: 4.53 for a sum of floats of 4.529999999999999."""
    return None if usd is None else round(usd, _REPORTED_DECIMALS)
