"""The store of all paid responses by request key, until they are removed; shared by threads, processes and machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from dtef_pipeline.asking.request import CANDIDATE, AskingRun, Response, UnansweredCall
from dtef_pipeline.boards.family_calls import UNKNOWN_COSTS
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses import database as db
from resources.responses.database import RESPONSE_COLUMNS, ResponseDatabase
from resources.responses.response_removal import (
    UnansweredCost,
    add_removed_costs,
    add_unanswered_cost,
    has_no_response,
    select_unanswered_costs,
)

RESPONSES = pa.schema([column.arrow for column in RESPONSE_COLUMNS])
"""The columns of `ResponseStore.responses`: the fields of `Response`."""

SUMMARY = pa.schema(
    [
        ("model", pa.string()),
        ("snapshot", pa.string()),
        ("role", pa.string()),
        ("responses", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("unpriced", pa.int64()),
        ("last_answered", pa.timestamp("us", tz="UTC")),
    ]
)
"""The columns of `ResponseStore.summary`. `unpriced`: responses of unknown cost, which are not in `cost_usd`.

`cost_usd` is null when no cost is known."""

PAGE = 5_000
"""Number of responses per page when a whole store is read."""


class ModelInStore(NamedTuple):
    """A model with responses in a snapshot."""

    name: str
    variant: str
    draws: int


class CostInStore(NamedTuple):
    """The cost of stored responses."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """Sum of the known costs; None: none is known."""
    unpriced: int
    """Number of calls of unknown cost."""
    most_usd: float | None = None
    """The most US dollars that these may have cost, as far as a price is known."""


class ResponseStore:
    """The responses of every run so far. Safe to use from several threads and processes at once."""

    def __init__(
        self,
        location: str | Path | ResponseDatabase,
        run: Callable[[], AskingRun] | None = None,
        queue_id: str | None = None,
    ) -> None:
        """Open the store, and create it (with its parent folders) if it does not exist.

        Args:
            location: a database URL (`sqlite:///...`, `postgresql+psycopg://...`), the path of an SQLite file, or an open database.
            run: returns the current code and configuration, recorded with each added response; None to record nothing.
            queue_id: the evaluation whose run adds responses, recorded with each; None if there is none.

        Raises:
            ConfigError: the URL names no database that can hold responses.
            StoreError: the database cannot be opened, or was written by newer code.
        """
        self.database = location if isinstance(location, ResponseDatabase) else ResponseDatabase(location)
        self.name = self.database.name
        self._run = run and cache(run)
        self._queue_id = queue_id
        self._insert = self.database.insert(db.responses).on_conflict_do_nothing(index_elements=["request_key"])

    def add(self, responses: Iterable[Response]) -> int:
        """Commit responses, all or none, and end the claims on them; return how many are new.

        An existing response is left unchanged.
        """
        # Two writers that lock the same keys in different orders would deadlock.
        rows = sorted((_build_row(response) for response in responses), key=lambda row: row["request_key"])
        return self.database.write(lambda connection: self._add(connection, rows)) if rows else 0

    def add_unanswered(self, attempts: Iterable[UnansweredCall]) -> None:
        """Commit unanswered calls that may have been billed."""
        rows = [{**asdict(call), "ended_at": db.microseconds(call.ended_at), "queue_id": self._queue_id} for call in attempts]
        if rows:
            self.database.write(lambda connection: connection.execute(sa.insert(db.lost_attempts), rows) and None)

    def failure_costs(self, keys: Iterable[str]) -> dict[str, UnansweredCost]:
        """Return the cost of these requests' unanswered calls, over all runs; requests without any are left out."""
        if not self.database.read(partial(_query_rows, sa.select(db.lost_attempts.c.id).limit(1), {})):
            return {}
        statement = select_unanswered_costs().where(self.database.among(db.lost_attempts.c.request_key))
        chunks = (self.database.keys(chunk) for chunk in db.chunks(list(dict.fromkeys(keys))))
        return {
            key: UnansweredCost(*sums)
            for parameters in chunks
            for key, *sums in self.database.read(partial(_query_rows, statement, parameters))
        }

    def unknown_costs(self, keys: Iterable[str] | None = None) -> pa.Table:
        """Return UNKNOWN_COSTS of these requests, or of all if None, which scans the whole store."""
        column = db.responses.c
        response_query = sa.select(column.request_key, column.unknown_cost_attempts, column.unknown_cost_usd_most).where(
            column.unknown_cost_attempts > 0
        )
        failure_query = select_unanswered_costs().where(has_no_response())
        chunks: Iterable[dict[str, Any]] = ({},)
        if keys is not None:
            response_query = response_query.where(self.database.among(column.request_key))
            failure_query = failure_query.where(self.database.among(db.lost_attempts.c.request_key))
            chunks = [self.database.keys(chunk) for chunk in db.chunks(list(dict.fromkeys(keys)))]
        costs: dict[str, tuple[int, float | None]] = {}
        for parameters in chunks:
            for key, attempts, maximum in self.database.read(partial(_query_rows, response_query, parameters)):
                costs[key] = attempts, maximum
            for key, _, attempts, maximum in self.database.read(partial(_query_rows, failure_query, parameters)):
                if attempts:
                    costs[key] = attempts, maximum
        return pa.Table.from_pylist(
            [dict(zip(UNKNOWN_COSTS.names, (key, *cost_values), strict=True)) for key, cost_values in sorted(costs.items())],
            UNKNOWN_COSTS,
        )

    def find_known_keys(self, keys: Iterable[str]) -> set[str]:
        """Return the request keys that have a response."""
        statement = sa.select(db.responses.c.request_key)
        return {key for rows in self._select(statement, list(dict.fromkeys(keys))) for (key,) in rows}

    def has(self, variant: str, snapshot: str) -> bool:
        """Return whether the model variant has any response in the snapshot. Scans the whole store if it has none."""
        column = db.responses.c
        statement = sa.select(column.request_key).where(column.model_variant == variant, column.snapshot == snapshot).limit(1)
        return bool(self.database.read(partial(_query_rows, statement, {})))

    def find_snapshots(self, variant: str) -> list[str]:
        """Return the snapshots with responses of the model variant, sorted. Scans the whole store."""
        column = db.responses.c
        statement = sa.select(column.snapshot).where(column.model_variant == variant).distinct().order_by(column.snapshot)
        return [label for (label,) in self.database.read(partial(_query_rows, statement, {}))]

    def models(self, snapshot: str) -> list[ModelInStore]:
        """Return the models with responses in the snapshot, each variant under its latest name. Scans the whole store."""
        column = db.responses.c
        statement = (
            sa.select(column.model, column.model_variant, sa.func.max(column.draw))
            .where(column.snapshot == snapshot, column.role == CANDIDATE)
            .group_by(column.model, column.model_variant)
            .order_by(sa.func.max(column.answered_at))
        )
        draws: dict[str, int] = {}
        names: dict[str, str] = {}
        for name, variant, last in self.database.read(partial(_query_rows, statement, {})):
            names[variant], draws[variant] = name, max(draws.get(variant, 0), last + 1)
        return [ModelInStore(name, variant, draws[variant]) for variant, name in names.items()]

    def responses(self, keys: Iterable[str], columns: Sequence[str] = ()) -> pa.Table:
        """Return the responses to the request keys, in the order of the keys; keys without a response have no row.

        `columns`: to include, `request_key` among them; all if empty.
        """
        key_list = list(dict.fromkeys(keys))
        schema = pa.schema([RESPONSES.field(name) for name in columns]) if columns else RESPONSES
        statement = sa.select(*(db.responses.c[name] for name in schema.names))
        chunks = [_build_batch(rows, schema) for rows in self._select(statement, key_list) if rows]
        table = pa.Table.from_batches(chunks, schema=schema).combine_chunks()
        places = pc.index_in(pa.array(key_list, pa.string()), value_set=table["request_key"].combine_chunks())
        table = table.take(places.drop_null())
        return add_removed_costs(self.database, table) if "cost_usd" in schema.names else table

    def pages(self, *, models: Sequence[str] = (), snapshots: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Yield the responses in key order, `PAGE` at a time; of these models and snapshots only, if any are named.

        Each page is its own transaction, so that a long read blocks no writer. Responses added meanwhile may be left out.
        """
        column = db.responses.c
        statement = sa.select(*db.response_fields).order_by(column.request_key).limit(PAGE)
        for field, values in ((column.model, models), (column.snapshot, snapshots)):
            statement = statement.where(field.in_(values)) if values else statement
        rows = self.database.read(partial(_query_rows, statement, {}))
        while rows:
            yield pa.Table.from_batches([_build_batch(rows, RESPONSES)])
            next_page = statement.where(column.request_key > rows[-1][0])
            rows = self.database.read(partial(_query_rows, next_page, {}))

    def summary(self) -> pa.Table:
        """Return the store's content, one row per model, snapshot and role."""
        return pa.Table.from_batches(
            [_build_batch(self.database.read(partial(_query_rows, _build_summary_query(), {})), SUMMARY)]
        )

    def summarize_keys(self, keys: Iterable[str]) -> pa.Table:
        """Return the `summary` of the responses to these keys."""
        parts = [
            _build_batch(rows, SUMMARY) for rows in self._select(_build_summary_query(), list(dict.fromkeys(keys))) if rows
        ]
        table = pa.Table.from_batches(parts, schema=SUMMARY)
        names = SUMMARY.names[:3]
        sums = [(name, "max" if name == "last_answered" else "sum") for name in SUMMARY.names[3:]]
        totals = table.group_by(names, use_threads=False).aggregate(sums).rename_columns(SUMMARY.names)
        return totals.cast(SUMMARY).sort_by([(name, "ascending") for name in names])

    def list_keys_of_roles(self, roles: Sequence[str]) -> set[str]:
        """Return the request keys of all responses in these roles. Scans the whole store."""
        statement = sa.select(db.responses.c.request_key).where(db.responses.c.role.in_(list(roles)))
        return {row[0] for row in self.database.read(partial(_query_rows, statement, {}))}

    def sum_spent(self, role: str, since: datetime) -> float:
        """Return US dollars of calls in this role that ended at `since` or later, including those of removed responses.

        Calls of unknown cost count with their maximum; without a price, nothing. A request with a response counts when that arrived.
        """
        began = db.microseconds(since)
        attempts = db.lost_attempts.c
        statements = [
            sa.select(sa.func.sum(_max_cost_column(column))).where(column.role == role, column.answered_at >= began)
            for column in (db.responses.c, db.forgotten_responses.c)
        ]
        unanswered_query = sa.select(sa.func.sum(sa.func.coalesce(attempts.cost_usd, attempts.most_usd))).where(
            attempts.role == role, attempts.ended_at >= began, has_no_response()
        )
        parts = [self.database.read(partial(_query_rows, statement, {}))[0][0] for statement in (*statements, unanswered_query)]
        return math.fsum(float(part or 0.0) for part in parts)

    def sum_call_costs(self, keys: Iterable[str], queue_id: str) -> CostInStore:
        """Return the cost of the responses to these request keys that an evaluation's runs requested themselves."""
        column, link = db.responses.c, db.evaluation_responses.c
        of_evaluation = sa.select(link.request_key).where(link.queue_id == queue_id)
        unknown = (column.unknown_cost_attempts, column.unknown_cost_usd_most)
        statement = sa.select(column.prompt_tokens, column.completion_tokens, column.cost_usd, *unknown).where(
            column.request_key.in_(of_evaluation)
        )
        key_list = list(dict.fromkeys(keys))
        responses = [row for rows in self._select(statement, key_list) for row in rows]
        calls = self._list_unanswered_costs(key_list, queue_id)
        costs = [cost for cost in (*(row[2] for row in responses), *(call.cost_usd for call in calls)) if cost is not None]
        prompt, completion = (sum(row[place] or 0 for row in responses) for place in (0, 1))
        cost = math.fsum(costs) if costs or not (responses or calls) else None
        n_unpriced = sum(max(row[3] or 0, row[2] is None) for row in responses) + sum(call.unknown for call in calls)
        most = [value for value in (*(row[4] for row in responses), *(call.most_usd for call in calls)) if value is not None]
        return CostInStore(len(responses), prompt, completion, cost, n_unpriced, math.fsum(most) if most else None)

    def _list_unanswered_costs(self, keys: Sequence[str], queue_id: str) -> list[UnansweredCost]:
        """Return costs of an evaluation's unanswered calls, for those of these requests without a response."""
        attempts = db.lost_attempts.c
        statement = select_unanswered_costs().where(
            self.database.among(attempts.request_key), attempts.queue_id == queue_id, has_no_response()
        )
        chunks = (self.database.keys(chunk) for chunk in db.chunks(keys))
        return [
            UnansweredCost(*sums) for batch in chunks for _, *sums in self.database.read(partial(_query_rows, statement, batch))
        ]

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> int:
        if self._run is not None:
            run = self._run()
            statement = self.database.insert(db.asking_runs).on_conflict_do_nothing()
            run_id = run.run_id
            connection.execute(statement, {"run_id": run_id, **run._asdict()})
            for row in rows:
                row["run_id"] = run_id
        n_added = self._insert_new(connection, self._add_unanswered_costs(connection, rows))
        release = sa.delete(db.claims).where(self.database.among(db.claims.c.request_key))
        connection.execute(release, self.database.keys([row["request_key"] for row in rows]))
        return n_added

    def _add_unanswered_costs(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows with the actual or possible cost of their requests' earlier unanswered calls."""
        statement = select_unanswered_costs().where(self.database.among(db.lost_attempts.c.request_key))
        keys = self.database.keys([row["request_key"] for row in rows])
        costs = {key: UnansweredCost(*sums) for key, *sums in connection.execute(statement, keys)}
        return [add_unanswered_cost(row, costs[row["request_key"]]) if row["request_key"] in costs else row for row in rows]

    def _insert_new(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> int:
        """Insert rows; return how many are new. Only those are recorded as requested by the evaluation."""
        if self._queue_id is None:
            return connection.execute(self._insert, rows, execution_options={"preserve_rowcount": True}).rowcount
        new_keys = connection.execute(self._insert.returning(db.responses.c.request_key), rows).scalars().all()
        if new_keys:
            statement = self.database.insert(db.evaluation_responses).on_conflict_do_nothing()
            connection.execute(statement, [{"request_key": key, "queue_id": self._queue_id} for key in new_keys])
        return len(new_keys)

    def _select(self, columns: sa.Select[Any], keys: Sequence[str]) -> Iterator[Sequence[Sequence[Any]]]:
        statement = columns.where(self.database.among(db.responses.c.request_key))
        for chunk in db.chunks(keys):
            yield self.database.read(partial(_query_plain_rows, statement, self.database.keys(chunk)))


def _max_cost_column(column: Any) -> sa.ColumnElement[float]:
    """Return the maximum US dollars of a response of these columns, with the calls before it."""
    return sa.func.coalesce(column.cost_usd, 0.0) + sa.func.coalesce(column.unknown_cost_usd_most, 0.0)


def _build_summary_query() -> sa.Select[Any]:
    """Select the columns of SUMMARY, one row per model, snapshot and role."""
    column = db.responses.c
    sums = [sa.func.sum(field) for field in (column.prompt_tokens, column.completion_tokens, column.cost_usd)]
    n_unpriced = sa.func.count() - sa.func.count(column.cost_usd)
    keys = (column.model, column.snapshot, column.role)
    statement = sa.select(*keys, sa.func.count(), *sums, n_unpriced, sa.func.max(column.answered_at))
    return statement.group_by(*keys).order_by(*keys)


def _query_rows(statement: sa.Select[Any], parameters: dict[str, Any], connection: sa.Connection) -> Sequence[Sequence[Any]]:
    return connection.execute(statement, parameters).all()


def _query_plain_rows(
    statement: sa.Select[Any], parameters: dict[str, Any], connection: sa.Connection
) -> Sequence[Sequence[Any]]:
    """Return rows like `_query_rows`, but as the driver's tuples, without an SQLAlchemy object for each: no response column needs
    conversion.
    """
    with connection.execute(statement, parameters) as result:
        return list(result.cursor.fetchall()) if result.cursor is not None else []


def _build_row(response: Response) -> dict[str, Any]:
    row = {field.name: getattr(response, field.name) for field in fields(response)}
    row["answered_at"] = db.microseconds(response.answered_at)
    return {name: replace_surrogates(value) if isinstance(value, str) else value for name, value in row.items()}


def _build_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [
        pa.array(column, pa.int64()).cast(field.type) if pa.types.is_timestamp(field.type) else pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)
