"""What a stage tells of its work to those who wait for an evaluation: each partition, how far asking is, and what was answered."""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import dagster as dg

from assets.stage.resources import Store
from assets.stage.told_calls import CallsOfStage
from dtef_pipeline.errors import UnknownEvaluation
from resources.evaluation_calls import CallCounts, StageCalls
from resources.evaluations import QUEUE_TAG, EvaluationStore, EventKind

ANSWERS_TOLD_EVERY_S = 2.0


class StageEvents:
    """Of one stage in one run. Where the run is of no evaluation nothing is told; that an event cannot be stored is logged, and no more."""

    def __init__(self, context: dg.AssetExecutionContext, store: Store) -> None:
        self._context, self._store = context, store
        self._stage = context.asset_key.to_user_string()
        self._queue_id = context.run.tags.get(QUEUE_TAG)
        self._answered_at = 0.0
        self._run, self._blocks = context.run.run_id, 0
        store.tell_calls(CallsOfStage(self._far, self._calls) if self._queue_id else None)
        if self._queue_id:
            self._append("started", {"dagster_run_id": context.run.run_id}, "started")

    def item(self, key: str, done: int, of: int, reason: str | None = None) -> None:
        """A partition is done, or failed for a reason. `done`: how many of the stage's partitions are either."""
        data = {"stage": self._stage, "key": key, "done": done, "of": of, "status": "done"}
        if reason is None:
            self._append("item", data, f"{self._stage} {key}")
        else:
            self._append("item", {**data, "status": "failed", "reason": reason}, f"{self._stage} {key} failed")

    def _far(self, counts: CallCounts, of: int) -> None:
        """How many requests are answered, seldom: an event is a row that stays."""
        if time.monotonic() - self._answered_at < ANSWERS_TOLD_EVERY_S:
            return
        self._answered_at = time.monotonic()
        told = {"stage": self._stage, "answered": counts.answered, "failed": counts.failed, "skipped": counts.skipped, "of": of}
        self._append("item", told, " ".join((self._stage, self._run, "answered", *map(str, (*counts, of)))))

    def _calls(self, calls: StageCalls) -> None:
        """What became of all requests so far, at the end of each block in which the stage asks."""
        self._blocks += 1
        if calls.counts.asked:
            self._append(
                "item",
                {"stage": self._stage, **calls.as_json()},
                " ".join((self._stage, self._run, "calls", str(self._blocks))),
            )

    @cached_property
    def _evaluations(self) -> EvaluationStore:
        return EvaluationStore(self._store.responses.database)

    def _append(self, kind: EventKind, data: Mapping[str, Any], source: str) -> None:
        if self._queue_id is None:
            return
        try:
            self._evaluations.append(self._queue_id, kind, data, source)
        except UnknownEvaluation as error:
            self._context.log.warning(f"no event is told: {error}")
            self._queue_id = None
        except Exception as error:  # whoever waits can do without an event, and the stage cannot be done without
            self._context.log.warning(f"an event could not be stored: {error}")
