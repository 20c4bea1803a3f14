"""The store of evaluations that were asked for over HTTP, beside the responses: append-only, shared by the API, Dagster and its runs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from dtef_pipeline.errors import EvaluationEnded, IdempotencyConflict, UnknownEvaluation
from dtef_pipeline.identity import canonical_json, digest
from dtef_pipeline.text.well_formed import well_formed
from resources import evaluation_tables as tables
from resources.database_stores import DatabaseStore, read_if_there, utc_now
from resources.responses.database import ResponseDatabase
from resources.vote_tables import microseconds, note_action, time_of

EventKind = Literal["queued", "started", "item", "completed", "failed", "cancelled"]
TERMINAL: tuple[EventKind, ...] = ("completed", "failed", "cancelled")
"""Kinds of the last event of an evaluation: none comes after it."""
QUEUE_SENSOR = "evaluation_queue"
"""The sensor of Dagster that has evaluations run."""
QUEUE_TAG = "dtef/queue_id"
"""Of a Dagster run: the evaluation that it is of."""


class AskedRun(NamedTuple):
    """One run of an evaluation before it has an id: a partition, and what else tells it from the others, such as its persona."""

    key: str
    asks: Mapping[str, Any]


class EvaluationRun(NamedTuple):
    """A part of an evaluation that has a state and results of its own: in games a persona in a scenario, elsewhere a partition."""

    run_id: str
    queue_id: str
    key: str
    asks: Mapping[str, Any]


class Evaluation(NamedTuple):
    """What was asked for in one manifest."""

    queue_id: str
    family: str
    manifest: Mapping[str, Any]
    plan: Mapping[str, Any]
    """The Dagster run that it comes to: `job`, `space`, `keys`, `new_keys` (whether unknown partitions are made), `config`, `snapshot`."""
    submitted_by: str
    submitted_at: datetime
    runs: tuple[EvaluationRun, ...]


class Event(NamedTuple):
    """Something that happened to an evaluation. `seq` counts from 1 without gaps."""

    seq: int
    kind: EventKind
    data: Mapping[str, Any]
    happened_at: datetime


def has_evaluations(location: str | Path) -> bool:
    """Whether somebody has asked for an evaluation in this response store. Nothing is made. Raises StoreError."""
    return read_if_there(location, lambda connection: sa.inspect(connection).has_table(tables.evaluations.name), False)


class EvaluationStore(DatabaseStore):
    """The evaluations of a response store. Safe to use from several threads and processes at once."""

    def __init__(self, location: str | Path | ResponseDatabase, clock: Callable[[], datetime] = utc_now) -> None:
        """Open the evaluations, and make what is not there. Arguments and errors as those of `DatabaseStore`."""
        super().__init__(location, clock)
        tables.make_evaluation_tables(self.database)

    def submit(
        self,
        family: str,
        manifest: Mapping[str, Any],
        plan: Mapping[str, Any],
        asked: Sequence[AskedRun],
        who: str,
        idempotency_key: str | None = None,
    ) -> tuple[Evaluation, bool]:
        """Store an evaluation with its event `queued`; returns it, and whether it is new.

        With a key that `who` has given before, the evaluation of then. Raises IdempotencyConflict when that was of another manifest.
        """
        body, queue_id, now = digest("evaluation", family, manifest), uuid.uuid4().hex, self.clock()
        row = {
            "queue_id": queue_id,
            "family": family,
            "manifest": canonical_json(manifest),
            "plan": canonical_json(plan),
            "submitted_by": well_formed(who),
            "submitted_at": microseconds(now),
            "idempotency_key": None if idempotency_key is None else well_formed(idempotency_key),
            "body_digest": body,
        }
        runs = [
            {
                "run_id": digest(queue_id, place),
                "queue_id": queue_id,
                "place": place,
                "key": one.key,
                "asks": canonical_json(one.asks),
            }
            for place, one in enumerate(asked)
        ]

        def work(connection: sa.Connection) -> str:
            made = connection.execute(self.database.insert(tables.evaluations).on_conflict_do_nothing(), row)
            if made.rowcount == 0:
                return self._submitted_before(connection, row)
            if runs:
                connection.execute(sa.insert(tables.evaluation_runs), runs)
            _add_event(connection, queue_id, "queued", {"family": family, "runs": len(runs)}, "queued", now)
            note_action(connection, who, now, "submit evaluation", {}, {"queue_id": queue_id, "family": family})
            return queue_id

        def landed(connection: sa.Connection) -> str | None:
            return connection.scalar(sa.select(tables.evaluations.c.queue_id).where(tables.evaluations.c.queue_id == queue_id))

        found = self.database.write(work, landed=landed)
        return self.evaluation(found), found == queue_id

    def submitted(self, family: str, manifest: Mapping[str, Any], who: str, idempotency_key: str) -> Evaluation | None:
        """What `who` has submitted with this key; None: nothing yet. Raises IdempotencyConflict when that was of another manifest."""
        kept, sought = tables.evaluations.c, (well_formed(who), well_formed(idempotency_key))
        statement = sa.select(kept.queue_id).where(kept.submitted_by == sought[0], kept.idempotency_key == sought[1])
        if not self.rows(statement):
            return None
        row = {
            "submitted_by": sought[0],
            "idempotency_key": sought[1],
            "body_digest": digest("evaluation", family, manifest),
        }
        return self.evaluation(self.database.read(lambda connection: self._submitted_before(connection, row)))

    def _submitted_before(self, connection: sa.Connection, row: Mapping[str, Any]) -> str:
        kept = tables.evaluations.c
        statement = sa.select(kept.queue_id, kept.body_digest).where(
            kept.submitted_by == row["submitted_by"], kept.idempotency_key == row["idempotency_key"]
        )
        earlier = connection.execute(statement).one()
        if earlier.body_digest != row["body_digest"]:
            raise IdempotencyConflict(
                f"the Idempotency-Key {str(row['idempotency_key'])[:80]!r} stands for another manifest already, that of {earlier.queue_id}; "
                "allowed: the same manifest, or another key"
            )
        return str(earlier.queue_id)

    def evaluation(self, queue_id: str) -> Evaluation:
        """Raises UnknownEvaluation."""
        found = self._evaluations(sa.select(tables.evaluations).where(tables.evaluations.c.queue_id == queue_id))
        if not found:
            raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")
        return found[0]

    def run(self, run_id: str) -> EvaluationRun:
        """Raises UnknownEvaluation."""
        found = self.rows(sa.select(tables.evaluation_runs).where(tables.evaluation_runs.c.run_id == run_id))
        if not found:
            raise UnknownEvaluation(f"there is no evaluation run {run_id[:80]!r}")
        return _run_of(found[0])

    def latest(
        self, most: int = 100, before: str | None = None, last_kinds: Collection[EventKind] | None = None, runs: bool = True
    ) -> list[Evaluation]:
        """The evaluations submitted last, the newest first.

        `before`: the queue id that they are older than. `last_kinds`: only those whose last event is of one of these kinds. `runs`: whether with
        their runs, which are many. Raises UnknownEvaluation.
        """
        kept = tables.evaluations.c
        statement = sa.select(tables.evaluations).order_by(kept.place.desc()).limit(most)
        if last_kinds is not None:
            statement = statement.where(tables.of_last_event("kind").in_(last_kinds))
        if before is not None:
            place = self.rows(sa.select(kept.place).where(kept.queue_id == before))
            if not place:
                raise UnknownEvaluation(f"there is no evaluation {before[:80]!r}")
            statement = statement.where(kept.place < place[0]["place"])
        return self._evaluations(statement, runs)

    def unended(self) -> list[Evaluation]:
        """Those without a terminal event, the first submitted first."""
        statement = sa.select(tables.evaluations).where(tables.of_last_event("kind").not_in(TERMINAL))
        return self._evaluations(statement.order_by(tables.evaluations.c.place))

    def append(self, queue_id: str, kind: EventKind, data: Mapping[str, Any], source: str) -> int | None:
        """Store an event; returns its number, or None where `source` was told of before, or the evaluation has ended.

        Raises UnknownEvaluation.
        """
        now = self.clock()
        return self.database.write(lambda connection: _add_event(connection, queue_id, kind, data, source, now))

    def has_event(self, queue_id: str, source: str) -> bool:
        """Whether an event of this source was stored."""
        event = tables.evaluation_events.c
        return bool(self.rows(sa.select(event.seq).where(event.queue_id == queue_id, event.source == source)))

    def waiting(self) -> list[str]:
        """Queue ids of those that neither started nor ended, the first submitted first."""
        event = tables.evaluation_events.c
        moved = sa.select(event.seq).where(event.queue_id == tables.evaluations.c.queue_id, event.kind != "queued")
        kept = tables.evaluations.c
        return [row["queue_id"] for row in self.rows(sa.select(kept.queue_id).where(~moved.exists()).order_by(kept.place))]

    def events(self, queue_id: str, after: int = 0, most: int | None = None) -> list[Event]:
        """The events with a number above `after`, in their order; none of an evaluation that is not there."""
        event = tables.evaluation_events.c
        statement = sa.select(tables.evaluation_events).where(event.queue_id == queue_id, event.seq > after).order_by(event.seq)
        rows = self.rows(statement if most is None else statement.limit(most))
        return [Event(row["seq"], row["kind"], json.loads(row["data"]), _when(row["happened_at"])) for row in rows]

    def events_of(self, queue_ids: Sequence[str], items: bool = True) -> dict[str, list[Event]]:
        """All events of several evaluations, by queue id; `items`: whether those of kind `item` too, which are many."""
        event = tables.evaluation_events.c
        statement = sa.select(tables.evaluation_events).where(event.queue_id.in_(queue_ids)).order_by(event.queue_id, event.seq)
        if not items:
            statement = statement.where(event.kind != "item")
        found: dict[str, list[Event]] = {one: [] for one in queue_ids}
        for row in self.rows(statement):
            found[row["queue_id"]].append(Event(row["seq"], row["kind"], json.loads(row["data"]), _when(row["happened_at"])))
        return found

    def heads(self, queue_ids: Sequence[str]) -> dict[str, int]:
        """The number of the last event of each evaluation: one cheap query, for those who wait for the next."""
        event = tables.evaluation_events.c
        statement = (
            sa.select(event.queue_id, sa.func.max(event.seq).label("head"))
            .where(event.queue_id.in_(queue_ids))
            .group_by(event.queue_id)
        )
        return {row["queue_id"]: row["head"] for row in self.rows(statement)}

    def started(self, queue_ids: Sequence[str]) -> set[str]:
        """Those of these evaluations that have an event `started`."""
        event = tables.evaluation_events.c
        statement = sa.select(event.queue_id).where(event.queue_id.in_(queue_ids), event.kind == "started")
        return {row["queue_id"] for row in self.rows(statement)}

    def ask_to_cancel(self, queue_id: str, who: str) -> bool:
        """Note that somebody wants the evaluation to end, with a row of the log of actions; returns whether that is new.

        Raises UnknownEvaluation, and EvaluationEnded where it has ended already.
        """
        now = self.clock()
        row = {"queue_id": queue_id, "who": well_formed(who), "asked_at": microseconds(now)}
        insert = self.database.insert(tables.evaluation_cancels).on_conflict_do_nothing()

        def work(connection: sa.Connection) -> bool:
            _lock_evaluation(connection, queue_id)
            event = tables.evaluation_events.c
            ended = sa.select(event.kind).where(event.queue_id == queue_id, event.kind.in_(TERMINAL))
            if (kind := connection.scalar(ended)) is not None:
                raise EvaluationEnded(f"the evaluation {queue_id} has ended already: it is {kind}")
            if connection.execute(insert, row).rowcount == 0:
                return False
            note_action(
                connection, who, now, "cancel evaluation", {"queue_id": queue_id}, {"queue_id": queue_id, "asked": True}
            )
            return True

        return self.database.write(work)

    def cancels(self, queue_ids: Sequence[str]) -> dict[str, str]:
        """Who asked for the end of which of these evaluations."""
        cancel = tables.evaluation_cancels.c
        rows = self.rows(sa.select(cancel.queue_id, cancel.who).where(cancel.queue_id.in_(queue_ids)))
        return {row["queue_id"]: row["who"] for row in rows}

    def _evaluations(self, statement: sa.Select[Any], with_runs: bool = True) -> list[Evaluation]:
        rows = self.rows(statement)
        of = tables.evaluation_runs.c
        parts = sa.select(tables.evaluation_runs).where(of.queue_id.in_([row["queue_id"] for row in rows]))
        runs: dict[str, list[EvaluationRun]] = {row["queue_id"]: [] for row in rows}
        for part in self.rows(parts.order_by(of.queue_id, of.place)) if rows and with_runs else ():
            runs[part["queue_id"]].append(_run_of(part))
        return [
            Evaluation(
                row["queue_id"],
                row["family"],
                json.loads(row["manifest"]),
                json.loads(row["plan"]),
                row["submitted_by"],
                _when(row["submitted_at"]),
                tuple(runs[row["queue_id"]]),
            )
            for row in rows
        ]


def _add_event(
    connection: sa.Connection, queue_id: str, kind: EventKind, data: Mapping[str, Any], source: str, now: datetime
) -> int | None:
    """In the transaction of the caller. The evaluation's row is locked, so that numbers have no gaps."""
    _lock_evaluation(connection, queue_id)
    event = tables.evaluation_events.c
    if connection.scalar(sa.select(event.seq).where(event.queue_id == queue_id, event.source == source)) is not None:
        return None
    own = sa.select(event.seq, event.kind).where(event.queue_id == queue_id)
    last = connection.execute(own.order_by(event.seq.desc()).limit(1)).one_or_none()
    if last is not None and last.kind in TERMINAL:
        return None
    seq = last.seq + 1 if last is not None else 1
    row = {"queue_id": queue_id, "seq": seq, "kind": kind, "data": canonical_json(data), "source": source}
    connection.execute(sa.insert(tables.evaluation_events), {**row, "happened_at": microseconds(now)})
    return seq


def _lock_evaluation(connection: sa.Connection, queue_id: str) -> None:
    """No other event comes before this transaction ends. Raises UnknownEvaluation."""
    kept = tables.evaluations.c
    if connection.scalar(sa.select(kept.place).where(kept.queue_id == queue_id).with_for_update()) is None:
        raise UnknownEvaluation(f"there is no evaluation {queue_id[:80]!r}")


def _run_of(row: Mapping[str, Any]) -> EvaluationRun:
    return EvaluationRun(row["run_id"], row["queue_id"], row["key"], json.loads(row["asks"]))


def _when(kept: int) -> datetime:
    found = time_of(kept)
    assert found is not None
    return found
