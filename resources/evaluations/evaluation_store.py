"""The store of evaluations requested over HTTP, in the database of responses: append-only, shared by the API, Dagster and its runs.

A run's progress is read from Dagster's event log; the store holds an evaluation's request and its result. Numbers about evaluations are
counted by the database without reading any evaluation.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import sqlalchemy as sa

from dtef_pipeline.errors import EvaluationEnded, IdempotencyConflict, UnknownEvaluation
from dtef_pipeline.identity import canonical_json, digest
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses.database import (
    DatabaseStore,
    ResponseDatabase,
    evaluation_responses,
    get_utc_now,
    lost_attempts,
    make_tables,
    read_if_there,
)
from resources.responses.store import ResponseStore
from resources.votes.vote_tables import actions, convert_time, decode_time, microseconds, record_action

EventKind = Literal["queued", "started", "item", "completed", "failed", "cancelled"]
EvaluationStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
TERMINAL: tuple[EventKind, ...] = ("completed", "failed", "cancelled")
"""Kinds of events that end an evaluation."""
QUEUE_SENSOR = "evaluation_queue"
"""The Dagster sensor that starts the runs of evaluations."""
QUEUE_TAG = "dtef/queue_id"
"""Tag of a Dagster run: its evaluation."""
_QUEUE_ID_LENGTH = 32
"""Length of a queue id, with which the ids of its runs begin."""
_WORDS_SOUGHT = 10
"""Maximum number of words in a search."""


class RunSpec(NamedTuple):
    """One run of an evaluation before it has an id: a partition and other distinguishing fields, such as its persona."""

    key: str
    asks: Mapping[str, Any]


class EvaluationRun(NamedTuple):
    """A run of an evaluation with its own state and results: in games a persona in a scenario, elsewhere a partition."""

    run_id: str
    queue_id: str
    key: str
    asks: Mapping[str, Any]


class Evaluation(NamedTuple):
    """The evaluation that one manifest requests."""

    queue_id: str
    family: str
    manifest: Mapping[str, Any]
    plan: Mapping[str, Any]
    """The Dagster run: `job`, `space`, `keys`, `new_keys` (whether unknown partitions are created), `config`, `snapshot`."""
    submitted_by: str
    submitted_at: datetime
    run_count: int
    runs: tuple[EvaluationRun, ...]


class Event(NamedTuple):
    """An event of an evaluation. `seq` counts from 1 without gaps."""

    seq: int
    kind: EventKind
    data: Mapping[str, Any]
    happened_at: datetime


class RunLogEvent(NamedTuple):
    """An event of an evaluation in a run log. Its kind is `started` or `item`."""

    kind: EventKind
    data: Mapping[str, Any]
    happened_at: datetime


class RunLog(Protocol):
    """Where runs report their progress: Dagster's run storage and event log."""

    def events(self, queue_id: str) -> Sequence[RunLogEvent]:
        """Return the events of an evaluation's runs, in an order unchanged by later events. Raises StoreError."""
        ...

    def ids_with_runs(self, queue_ids: Sequence[str]) -> Collection[str]:
        """Return the evaluations of which a run has begun. Raises StoreError."""
        ...


class NoRunLog:
    """An empty log, for users who need only what is stored."""

    def events(self, queue_id: str) -> Sequence[RunLogEvent]:
        return ()

    def ids_with_runs(self, queue_ids: Sequence[str]) -> Collection[str]:
        return ()


EVALUATION_SCHEMA_VERSION = 2
"""1: the first version. 2: events count `n_requests` and `n_planned`."""
_EARLIER_ADVICE = (
    "write the responses of this store to a file with `dtef export responses`, name a new store in DTEF_RESPONSES, and read the file "
    "into it with `dtef import responses`, so that no call is paid for twice"
)

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


def has_evaluations(location: str | Path) -> bool:
    """Return whether this response store has the table of evaluations. Creates nothing. Raises StoreError."""
    return read_if_there(location, lambda connection: sa.inspect(connection).has_table(evaluations.name), False)


class EvaluationStore(DatabaseStore):
    """The evaluations of a response store. Safe to use from several threads and processes at once."""

    def __init__(
        self, location: str | Path | ResponseDatabase, log: RunLog | None = None, clock: Callable[[], datetime] = get_utc_now
    ) -> None:
        """Open the evaluations and create missing tables. Arguments and errors as for `DatabaseStore`; `log`: where runs report."""
        super().__init__(location, clock)
        self.log: RunLog = log or NoRunLog()
        newest, label = EVALUATION_SCHEMA_VERSION, "the evaluations were"
        make_tables(self.database, evaluation_versions, newest, label, advice=_EARLIER_ADVICE, extra=actions)

    def submit(
        self,
        family: str,
        manifest: Mapping[str, Any],
        plan: Mapping[str, Any],
        runs: Sequence[RunSpec],
        user: str,
        idempotency_key: str | None = None,
    ) -> tuple[Evaluation, bool]:
        """Store an evaluation and return it with whether it is new.

        For a key that `user` has used before, return the earlier evaluation. Raises IdempotencyConflict if its manifest differs.
        """
        queue_id, now = uuid.uuid4().hex, self.clock()
        row = {
            "queue_id": queue_id,
            "family": family,
            "manifest": canonical_json(manifest),
            "plan": canonical_json(plan),
            "runs": canonical_json([run._asdict() for run in runs]),
            "run_count": len(runs),
            "submitted_by": replace_surrogates(user),
            "submitted_at": microseconds(now),
            "idempotency_key": None if idempotency_key is None else replace_surrogates(idempotency_key),
            "body_digest": digest("evaluation", family, manifest),
        }

        def work(connection: sa.Connection) -> str:
            result = connection.execute(self.database.insert(evaluations).on_conflict_do_nothing(), row)
            if result.rowcount == 0:
                earlier = _find_submitted_before(connection, row)
                assert earlier is not None
                return earlier
            record_action(connection, user, now, "submit evaluation", {}, {"queue_id": queue_id, "family": family})
            return queue_id

        def find_committed(connection: sa.Connection) -> str | None:
            return connection.scalar(sa.select(evaluations.c.queue_id).where(evaluations.c.queue_id == queue_id))

        stored_id = self.database.write(work, find_committed=find_committed)
        return self.evaluation(stored_id), stored_id == queue_id

    def find_submitted(self, family: str, manifest: Mapping[str, Any], user: str, idempotency_key: str) -> Evaluation | None:
        """Return the evaluation that `user` submitted with this key, or None. Raises IdempotencyConflict if its manifest differs."""
        row = {
            "submitted_by": replace_surrogates(user),
            "idempotency_key": replace_surrogates(idempotency_key),
            "body_digest": digest("evaluation", family, manifest),
        }
        queue_id = self.database.read(lambda connection: _find_submitted_before(connection, row))
        return None if queue_id is None else self.evaluation(queue_id)

    def evaluation(self, queue_id: str) -> Evaluation:
        """Return an evaluation. Raises UnknownEvaluation."""
        matches = self._read_evaluations(sa.select(evaluations).where(evaluations.c.queue_id == queue_id))
        if not matches:
            raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")
        return matches[0]

    def run(self, run_id: str) -> tuple[Evaluation, EvaluationRun]:
        """Return a run with its evaluation. Raises UnknownEvaluation."""
        evaluation = self.evaluation(run_id[:_QUEUE_ID_LENGTH])
        match = next((run for run in evaluation.runs if run.run_id == run_id), None)
        if match is None:
            raise UnknownEvaluation(f"there is no evaluation run {run_id[:80]!r}")
        return evaluation, match

    def latest(
        self, limit: int = 100, before: str | None = None, status: EvaluationStatus | None = None, words: str = ""
    ) -> list[Evaluation]:
        """Return the evaluations submitted last, newest first, without their many runs.

        `before`: only those older than this queue id. `status`: only those with it. `words`: only those in whose id, family, manifest, plan
        or sender each of the first ten words occurs. Raises UnknownEvaluation.
        """
        column = evaluations.c
        columns = [field for field in column if field is not column.runs]
        statement = sa.select(*columns, sa.literal("[]").label("runs")).order_by(column.place.desc()).limit(limit)
        if status in ("queued", "running"):
            wait = self.waiting()
            statement = statement.where(has_not_ended())
            statement = statement.where(column.queue_id.in_(wait) if status == "queued" else column.queue_id.not_in(wait))
        elif status is not None:
            ends = evaluation_ends.c
            statement = statement.where(column.queue_id.in_(sa.select(ends.queue_id).where(ends.kind == status)))
        for word in replace_surrogates(words).split()[:_WORDS_SOUGHT]:
            texts = (column.queue_id, column.family, column.manifest, column.plan, column.submitted_by)
            statement = statement.where(sa.or_(*(text.icontains(word, autoescape=True) for text in texts)))
        if before is not None:
            place = self.rows(sa.select(column.place).where(column.queue_id == before))
            if not place:
                raise UnknownEvaluation(f"there is no evaluation {before[:80]!r}")
            statement = statement.where(column.place < place[0]["place"])
        return self._read_evaluations(statement)

    def open_evaluations(self) -> list[Evaluation]:
        """Return evaluations that have not ended, first submitted first."""
        return self._read_evaluations(sa.select(evaluations).where(has_not_ended()).order_by(evaluations.c.place))

    def waiting(self) -> list[str]:
        """Return queue ids of evaluations neither started nor ended, first submitted first."""
        column = evaluations.c
        rows = self.rows(sa.select(column.queue_id).where(has_not_ended()).order_by(column.place))
        started_ids = set(self.log.ids_with_runs([row["queue_id"] for row in rows]))
        return [row["queue_id"] for row in rows if row["queue_id"] not in started_ids]

    def end(self, queue_id: str, kind: EventKind, data: Mapping[str, Any]) -> bool:
        """Store an evaluation's last event; return whether it had not ended before. Raises UnknownEvaluation."""
        events = self.events(queue_id)
        began = next((event.happened_at for event in events if event.kind == "started"), None)
        row = {"queue_id": queue_id, "seq": len(events) + 1, "kind": kind, "data": canonical_json(data)}
        row |= {"started_at": began and microseconds(began), "ended_at": microseconds(self.clock())}
        insert = self.database.insert(evaluation_ends).on_conflict_do_nothing()
        return self.database.write(lambda connection: connection.execute(insert, row).rowcount > 0)

    def events(self, queue_id: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """Return the events with a number above `after`, in order. Raises UnknownEvaluation."""
        first, end = self._read_ends([queue_id]).get(queue_id, (None, None))
        if first is None:
            raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")
        # Events that a process wrote after its run was given up do not count.
        log_events = self.log.events(queue_id)[: None if end is None else end.event.seq - 2]
        events = [first, *(Event(seq, *entry) for seq, entry in enumerate(log_events, 2)), *([end.event] if end else [])]
        return [event for event in events if event.seq > after][:limit]

    def list_brief_events(self, queue_ids: Sequence[str]) -> dict[str, list[Event]]:
        """Return the events of several evaluations by queue id; of ended ones only the stored events, without items."""
        return {
            queue_id: self.events(queue_id) if end is None else [first, *end.start, end.event]
            for queue_id, (first, end) in self._read_ends(queue_ids).items()
        }

    def ask_to_cancel(self, queue_id: str, actor: str) -> bool:
        """Record a request to cancel the evaluation, with a row in the log of actions; return whether it is new.

        Raises UnknownEvaluation, and EvaluationEnded if it has ended already.
        """
        now = self.clock()
        row = {"queue_id": queue_id, "who": replace_surrogates(actor), "asked_at": microseconds(now)}
        insert = self.database.insert(evaluation_cancels).on_conflict_do_nothing()

        def work(connection: sa.Connection) -> bool:
            cols, ends = evaluations.c, evaluation_ends
            match = connection.execute(
                sa.select(cols.queue_id, ends.c.kind).outerjoin_from(evaluations, ends).where(cols.queue_id == queue_id)
            ).one_or_none()
            if match is None:
                raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")
            if match.kind is not None:
                raise EvaluationEnded(f"the evaluation {queue_id} has ended already: it is {match.kind}")
            if connection.execute(insert, row).rowcount == 0:
                return False
            record_action(
                connection, actor, now, "cancel evaluation", {"queue_id": queue_id}, {"queue_id": queue_id, "requested": True}
            )
            return True

        return self.database.write(work)

    def cancels(self, queue_ids: Sequence[str]) -> dict[str, str]:
        """Return who requested to cancel which of these evaluations."""
        cancel = evaluation_cancels.c
        rows = self.rows(sa.select(cancel.queue_id, cancel.who).where(cancel.queue_id.in_(queue_ids)))
        return {row["queue_id"]: row["who"] for row in rows}

    def _read_ends(self, queue_ids: Sequence[str]) -> dict[str, tuple[Event, _End | None]]:
        """Return the first event of each evaluation, and its end if it has ended."""
        column, ends = evaluations.c, evaluation_ends
        columns = (column.queue_id, column.family, column.run_count, column.submitted_at)
        ending = (ends.c.seq, ends.c.kind, ends.c.data, ends.c.started_at, ends.c.ended_at)
        statement = sa.select(*columns, *ending).outerjoin_from(evaluations, ends).where(column.queue_id.in_(queue_ids))
        return {
            row["queue_id"]: (
                Event(1, "queued", {"family": row["family"], "runs": row["run_count"]}, convert_time(row["submitted_at"])),
                None if row["seq"] is None else _End.parse_row(row),
            )
            for row in self.rows(statement)
        }

    def _read_evaluations(self, statement: sa.Select[Any]) -> list[Evaluation]:
        return [
            Evaluation(
                row["queue_id"],
                row["family"],
                json.loads(row["manifest"]),
                json.loads(row["plan"]),
                row["submitted_by"],
                convert_time(row["submitted_at"]),
                row["run_count"],
                tuple(
                    EvaluationRun(f"{row['queue_id']}{place:04x}", row["queue_id"], **run)
                    for place, run in enumerate(json.loads(row["runs"]))
                ),
            )
            for row in self.rows(statement)
        ]


class _End(NamedTuple):
    """How an evaluation ended."""

    event: Event
    started_at: datetime | None

    @classmethod
    def parse_row(cls, row: Mapping[str, Any]) -> _End:
        event = Event(row["seq"], row["kind"], json.loads(row["data"]), convert_time(row["ended_at"]))
        return cls(event, decode_time(row["started_at"]))

    @property
    def start(self) -> list[Event]:
        """The event `started`; empty if the evaluation never began."""
        return [] if self.started_at is None else [Event(2, "started", {}, self.started_at)]


def _find_submitted_before(connection: sa.Connection, row: Mapping[str, Any]) -> str | None:
    """Return the id of the evaluation with this sender and key, if any. Raises IdempotencyConflict if its manifest differs."""
    column = evaluations.c
    statement = sa.select(column.queue_id, column.body_digest).where(
        column.submitted_by == row["submitted_by"], column.idempotency_key == row["idempotency_key"]
    )
    earlier = connection.execute(statement).one_or_none()
    if earlier is None:
        return None
    if earlier.body_digest != row["body_digest"]:
        raise IdempotencyConflict(
            f"the Idempotency-Key {str(row['idempotency_key'])[:80]!r} was used for another manifest, that of {earlier.queue_id}; "
            "send the same manifest, or use another key"
        )
    return str(earlier.queue_id)


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
