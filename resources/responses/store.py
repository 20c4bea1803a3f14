"""The store of all paid responses by request key, until they are removed; shared by threads, processes and machines.

The cost of removed responses, which are requested again, and of calls without a response stays known.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from dtef_pipeline.asking.request import CANDIDATE, AskingRun, Response, UnansweredCall
from dtef_pipeline.boards.family_calls import UNKNOWN_COSTS
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses import database as db
from resources.responses.database import RESPONSE_COLUMNS, DatabaseStore, ResponseDatabase, Result


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
    ((calls, cost),) = database.query(sa.select(sa.func.count(), sa.func.sum(db.forgotten_responses.c.cost_usd)))
    return RemovedCost(calls, float(cost or 0.0))


def add_removed_costs(database: ResponseDatabase, responses: pa.Table) -> pa.Table:
    """Return responses at the cost of their requests: with the cost of earlier, removed responses, as far as known."""
    if not database.query(sa.select(db.forgotten_responses.c.request_key).limit(1)):
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


class ResponseStore(DatabaseStore):
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
        super().__init__(location)
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
        if not self.database.query(sa.select(db.lost_attempts.c.id).limit(1)):
            return {}
        statement = select_unanswered_costs().where(self.database.among(db.lost_attempts.c.request_key))
        return {key: UnansweredCost(*sums) for key, *sums in self.database.query_keys(statement, keys)}

    def unknown_costs(self, keys: Iterable[str] | None = None) -> pa.Table:
        """Return UNKNOWN_COSTS of these requests, or of all if None, which scans the whole store."""
        column, key_list = db.responses.c, None if keys is None else list(keys)
        answered = sa.select(column.request_key, column.unknown_cost_attempts, column.unknown_cost_usd_most)
        rows = self._query_keys_or_all(answered.where(column.unknown_cost_attempts > 0), column.request_key, key_list)
        costs = {key: (attempts, maximum) for key, attempts, maximum in rows}
        unanswered = select_unanswered_costs().where(has_no_response())
        for key, _, attempts, maximum in self._query_keys_or_all(unanswered, db.lost_attempts.c.request_key, key_list):
            if attempts:
                costs[key] = attempts, maximum
        return pa.Table.from_pylist(
            [dict(zip(UNKNOWN_COSTS.names, (key, *cost_values), strict=True)) for key, cost_values in sorted(costs.items())],
            UNKNOWN_COSTS,
        )

    def _query_keys_or_all(
        self, statement: sa.Select[Any], field: sa.Column[Any], keys: Sequence[str] | None
    ) -> Iterable[tuple[Any, ...]]:
        """Return the rows of these request keys, or all if None."""
        if keys is None:
            return self.database.query(statement)
        return self.database.query_keys(statement.where(self.database.among(field)), keys)

    def find_known_keys(self, keys: Iterable[str]) -> set[str]:
        """Return the request keys that have a response."""
        column = db.responses.c.request_key
        return {key for (key,) in self.database.query_keys(sa.select(column).where(self.database.among(column)), keys)}

    def has(self, variant: str, snapshot: str) -> bool:
        """Return whether the model variant has any response in the snapshot. Scans the whole store if it has none."""
        column = db.responses.c
        statement = sa.select(column.request_key).where(column.model_variant == variant, column.snapshot == snapshot).limit(1)
        return bool(self.database.query(statement))

    def find_snapshots(self, variant: str) -> list[str]:
        """Return the snapshots with responses of the model variant, sorted. Scans the whole store."""
        column = db.responses.c
        statement = sa.select(column.snapshot).where(column.model_variant == variant).distinct().order_by(column.snapshot)
        return [label for (label,) in self.database.query(statement)]

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
        for name, variant, last in self.database.query(statement):
            names[variant], draws[variant] = name, max(draws.get(variant, 0), last + 1)
        return [ModelInStore(name, variant, draws[variant]) for variant, name in names.items()]

    def responses(self, keys: Iterable[str], columns: Sequence[str] = ()) -> pa.Table:
        """Return the responses to the request keys, in the order of the keys; keys without a response have no row.

        `columns`: to include, `request_key` among them; all if empty.
        """
        key_list = list(dict.fromkeys(keys))
        schema = pa.schema([RESPONSES.field(name) for name in columns]) if columns else RESPONSES
        among = self.database.among(db.responses.c.request_key)
        statement = sa.select(*(db.responses.c[name] for name in schema.names)).where(among)
        chunks = [_build_batch(rows, schema) for rows in self.database.query_chunks(statement, key_list) if rows]
        table = pa.Table.from_batches(chunks, schema=schema).combine_chunks()
        places = pc.index_in(pa.array(key_list, pa.string()), value_set=table["request_key"].combine_chunks())
        table = table.take(places.drop_null())
        return add_removed_costs(self.database, table) if "cost_usd" in schema.names else table

    def pages(self, *, models: Sequence[str] = (), snapshots: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Yield the responses in key order, `PAGE` at a time; of these models and snapshots only, if any are named.

        Each page is its own transaction, so that a long read blocks no writer. Responses added meanwhile may be left out.
        """
        column = db.responses.c
        statement = sa.select(*(column[name] for name in RESPONSES.names)).order_by(column.request_key).limit(PAGE)
        for field, values in ((column.model, models), (column.snapshot, snapshots)):
            statement = statement.where(field.in_(values)) if values else statement
        rows = self.database.query(statement)
        while rows:
            yield pa.Table.from_batches([_build_batch(rows, RESPONSES)])
            rows = self.database.query(statement.where(column.request_key > rows[-1][0]))

    def summary(self, keys: Iterable[str] | None = None) -> pa.Table:
        """Return one row per model, snapshot and role of the responses to these request keys, or of all if None."""
        column = db.responses.c
        sums = [sa.func.sum(field) for field in (column.prompt_tokens, column.completion_tokens, column.cost_usd)]
        n_unpriced = sa.func.count() - sa.func.count(column.cost_usd)
        groups = (column.model, column.snapshot, column.role)
        statement = sa.select(*groups, sa.func.count(), *sums, n_unpriced, sa.func.max(column.answered_at))
        parameters = None
        if keys is not None:
            statement = statement.where(self.database.among(column.request_key))
            parameters = self.database.keys(keys)
        rows = self.database.query(statement.group_by(*groups).order_by(*groups), parameters)
        return pa.Table.from_batches([_build_batch(rows, SUMMARY)])

    def list_keys_of_roles(self, roles: Sequence[str]) -> set[str]:
        """Return the request keys of all responses in these roles. Scans the whole store."""
        statement = sa.select(db.responses.c.request_key).where(db.responses.c.role.in_(list(roles)))
        return {key for (key,) in self.database.query(statement)}

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
        parts = [self.database.query(statement)[0][0] for statement in (*statements, unanswered_query)]
        return math.fsum(float(part or 0.0) for part in parts)

    def sum_call_costs(self, keys: Iterable[str], queue_id: str) -> CostInStore:
        """Return the cost of the responses to these request keys that an evaluation's runs requested themselves."""
        column, link, attempts = db.responses.c, db.evaluation_responses.c, db.lost_attempts.c
        of_evaluation = sa.select(link.request_key).where(link.queue_id == queue_id)
        unknown = (column.unknown_cost_attempts, column.unknown_cost_usd_most)
        statement = sa.select(column.prompt_tokens, column.completion_tokens, column.cost_usd, *unknown).where(
            self.database.among(column.request_key), column.request_key.in_(of_evaluation)
        )
        # Those of requests without a response.
        lost = select_unanswered_costs().where(
            self.database.among(attempts.request_key), attempts.queue_id == queue_id, has_no_response()
        )
        key_list = list(keys)
        responses = list(self.database.query_keys(statement, key_list))
        calls = [UnansweredCost(*sums) for _, *sums in self.database.query_keys(lost, key_list)]
        costs = [cost for cost in (*(row[2] for row in responses), *(call.cost_usd for call in calls)) if cost is not None]
        prompt, completion = (sum(row[place] or 0 for row in responses) for place in (0, 1))
        cost = math.fsum(costs) if costs or not (responses or calls) else None
        n_unpriced = sum(max(row[3] or 0, row[2] is None) for row in responses) + sum(call.unknown for call in calls)
        most = [value for value in (*(row[4] for row in responses), *(call.most_usd for call in calls)) if value is not None]
        return CostInStore(len(responses), prompt, completion, cost, n_unpriced, math.fsum(most) if most else None)

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


def _max_cost_column(column: Any) -> sa.ColumnElement[float]:
    """Return the maximum US dollars of a response of these columns, with the calls before it."""
    return sa.func.coalesce(column.cost_usd, 0.0) + sa.func.coalesce(column.unknown_cost_usd_most, 0.0)


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


class ResponseWriter:
    """An async context manager that on exit writes everything submitted, even when the run is being cancelled."""

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self._pending: list[tuple[Response | UnansweredCall, asyncio.Future[None]]] = []
        self._something = asyncio.Event()
        self._closing = False
        self._failure: Exception | None = None

    async def commit(self, row: Response | UnansweredCall) -> None:
        """Return once the row is committed. Cancelling the caller does not stop the commit."""
        await self.take(row)

    def take(self, row: Response | UnansweredCall) -> asyncio.Future[None]:
        """Commit without waiting; the future is done once the row is committed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((row, future))
        self._something.set()
        return future

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do other work on the store in the writer's thread, so that this process never waits for its own lock."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="response-writer")
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        self._something.set()
        try:
            await self._task
        finally:
            self._thread.shutdown()
        if self._failure is not None and error is not self._failure:
            raise self._failure

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending or not self._closing:
            await self._something.wait()
            self._something.clear()
            batch, self._pending = self._pending, []
            try:
                await loop.run_in_executor(self._thread, self._commit, [row for row, _ in batch])
            except Exception as error:
                self._failure = error
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for _, future in batch:
                    if not future.done():
                        future.set_result(None)

    def _commit(self, rows: Sequence[Response | UnansweredCall]) -> None:
        self._store.add_unanswered(row for row in rows if isinstance(row, UnansweredCall))
        self._store.add(row for row in rows if isinstance(row, Response))
