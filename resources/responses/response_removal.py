"""Removed responses, which are requested again, and calls without one: the cost of both stays known.

Both have their own tables: the costs of their requests remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa

from resources.responses import database as db
from resources.responses.database import ResponseDatabase


class UnansweredCost(NamedTuple):
    """The cost of unanswered calls."""

    cost_usd: float | None
    """US dollars of calls with a known bill; None: none is known."""
    unknown: int
    """Calls of unknown cost."""
    most_usd: float | None
    """The most US dollars that these may have cost; None: there are none, or no price is known."""


def select_unanswered_costs() -> sa.Select[Any]:
    """Select the request key and the columns of `UnansweredCost`."""
    cols = db.lost_attempts.c
    unknown = sa.func.count() - sa.func.count(cols.cost_usd)
    sums = sa.func.sum(cols.cost_usd).label("cost_usd"), unknown.label("unknown"), sa.func.sum(cols.most_usd).label("most_usd")
    return sa.select(cols.request_key, *sums).group_by(cols.request_key)


def has_no_response() -> sa.ColumnElement[bool]:
    """Return the condition that a lost attempt's request has no response yet."""
    responses = db.responses.c
    return ~sa.exists().where(responses.request_key == db.lost_attempts.c.request_key)


def add_unanswered_cost(row: dict[str, Any], loss: UnansweredCost) -> dict[str, Any]:
    """Return a response's row with the cost of its lost attempts."""
    bounds = [value for value in (row["unknown_cost_usd_most"], loss.most_usd) if value is not None]
    cost, lost_cost = row["cost_usd"], loss.cost_usd or 0.0
    if cost is None and lost_cost:
        bounds.append(lost_cost)
    return {
        **row,
        "cost_usd": None if cost is None else cost + lost_cost,
        "unknown_cost_attempts": (row["unknown_cost_attempts"] or 0) + loss.unknown,
        "unknown_cost_usd_most": math.fsum(bounds) if bounds else None,
    }


class ResponseSelection(NamedTuple):
    """A selection of stored responses that meet all given conditions."""

    empty: bool = False
    """Remove responses without text. With `truncated`: those with either fault."""
    truncated: bool = False
    """Remove responses that were cut off at `max_tokens`."""
    models: tuple[str, ...] = ()
    """Names or variants of models."""
    snapshots: tuple[str, ...] = ()
    since: datetime | None = None
    """Only responses that arrived at this time or later."""
    before: datetime | None = None


class RemovedCost(NamedTuple):
    """The cost of removed responses."""

    calls: int
    cost_usd: float
    """US dollars of removed responses of known cost."""


def select_response_keys(database: ResponseDatabase, selection: ResponseSelection) -> list[str]:
    """Return the request keys of the selected responses, in order. Scans the whole store."""
    statement = sa.select(db.responses.c.request_key).where(*_build_conditions(selection)).order_by(db.responses.c.request_key)
    return [key for (key,) in database.query(statement)]


def remove_responses_by_key(database: ResponseDatabase, keys: Iterable[str]) -> int:
    """Remove the responses to the request keys; return how many. Their cost stays known."""
    return sum(database.write(partial(_remove_rows, database, chunk)) for chunk in db.chunks(sorted(set(keys))))


def sum_removed_cost(database: ResponseDatabase) -> RemovedCost:
    """Return the cost of all removed responses."""
    if not database.read(_has_any):
        return RemovedCost(0, 0.0)
    ((calls, cost),) = database.query(sa.select(sa.func.count(), sa.func.sum(db.forgotten_responses.c.cost_usd)))
    return RemovedCost(calls, float(cost or 0.0))


def add_removed_costs(database: ResponseDatabase, responses: pa.Table) -> pa.Table:
    """Return responses at the cost of their requests: with the cost of earlier, removed responses, as far as known."""
    if not database.read(_has_any):
        return responses
    keys = responses["request_key"].to_pylist()
    earlier = db.forgotten_responses.c
    statement = sa.select(earlier.request_key, sa.func.sum(earlier.cost_usd)).where(database.among(earlier.request_key))
    costs = dict(database.query_keys(statement.group_by(earlier.request_key), keys))
    paid = [
        None if cost is None else cost + (costs.get(key) or 0.0)
        for key, cost in zip(keys, responses["cost_usd"].to_pylist(), strict=True)
    ]
    return responses.set_column(responses.schema.get_field_index("cost_usd"), "cost_usd", pa.array(paid, pa.float64()))


def _has_any(connection: sa.Connection) -> bool:
    """Return whether there are any; a read-only store may lack the table."""
    if not sa.inspect(connection).has_table(db.forgotten_responses.name):
        return False
    return connection.execute(sa.select(db.forgotten_responses.c.request_key).limit(1)).first() is not None


def _remove_rows(database: ResponseDatabase, keys: Sequence[str], connection: sa.Connection) -> int:
    parameters = database.keys(keys)
    now = sa.literal(db.microseconds(datetime.now(UTC)), sa.BigInteger)
    condition = database.among(db.responses.c.request_key)
    names = [column.name for column in db.forgotten_responses.columns]
    statement = sa.insert(db.forgotten_responses).from_select(names, sa.select(*db.responses.columns, now).where(condition))
    connection.execute(statement, parameters)
    return connection.execute(sa.delete(db.responses).where(condition), parameters).rowcount


def _build_conditions(selection: ResponseSelection) -> list[sa.ColumnElement[bool]]:
    column = db.responses.c
    faults = [
        *([sa.func.ltrim(column.text, " \t\r\n") == ""] if selection.empty else []),
        *([column.finish_reason == "length"] if selection.truncated else []),
    ]
    return [
        *([sa.or_(*faults)] if faults else []),
        *([sa.or_(column.model.in_(selection.models), column.model_variant.in_(selection.models))] if selection.models else []),
        *([column.snapshot.in_(selection.snapshots)] if selection.snapshots else []),
        *([column.answered_at >= db.microseconds(selection.since)] if selection.since else []),
        *([column.answered_at < db.microseconds(selection.before)] if selection.before else []),
    ]
