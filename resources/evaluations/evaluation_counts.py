"""Numbers about evaluations, counted by the database without reading any evaluation."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.text.well_formed import replace_surrogates
from resources.evaluations.evaluation_store import EvaluationStore, evaluation_ends, evaluations, has_not_ended
from resources.responses.database import evaluation_responses, lost_attempts, responses
from resources.responses.database_stores import read_if_there
from resources.responses.response_removal import UnansweredCost, has_no_response, select_unanswered_costs
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
    column, number = responses.c, sa.func.count
    unknown = sa.func.coalesce(column.unknown_cost_attempts, 0)
    statement = (
        sa.select(
            sa.func.sum(column.cost_usd).label("usd"),
            number().label("calls"),
            sa.func.coalesce(sa.func.sum(column.prompt_tokens), 0).label("prompt_tokens"),
            sa.func.coalesce(sa.func.sum(column.completion_tokens), 0).label("completion_tokens"),
            sa.func.coalesce(sa.func.sum(sa.case((column.cost_usd.is_(None) & (unknown == 0), 1), else_=unknown)), 0).label(
                "unpriced"
            ),
            sa.func.sum(column.unknown_cost_usd_most).label("most"),
        )
        .join_from(responses, evaluation_responses, column.request_key == evaluation_responses.c.request_key)
        .where(evaluation_responses.c.queue_id == queue_id)
    )
    (row,) = store.rows(statement)
    unanswered = select_unanswered_costs().where(lost_attempts.c.queue_id == queue_id, has_no_response()).subquery().c
    sums = number().label("requests"), *(sa.func.sum(unanswered[name]).label(name) for name in UnansweredCost._fields)
    (of_lost,) = store.rows(sa.select(*sums))
    costs = [cost for cost in (row["usd"], of_lost["cost_usd"]) if cost is not None]
    most = [cost for cost in (row["most"], of_lost["most_usd"]) if cost is not None]
    return {
        **{name: int(row[name]) for name in ("calls", "prompt_tokens", "completion_tokens")},
        "unpriced": int(row["unpriced"]) + int(of_lost["unknown"] or 0),
        "usd": round_dollars(sum(costs) if costs or not (row["calls"] or of_lost["requests"]) else None),
        **({"unpriced_usd_most": round_dollars(sum(most))} if most else {}),
    }


def round_dollars(usd: float | None) -> float | None:
    """Format dollars for reports: 4.53 for a sum of floats of 4.529999999999999."""
    return None if usd is None else round(usd, _REPORTED_DECIMALS)
