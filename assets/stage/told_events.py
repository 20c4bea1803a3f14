"""What a stage tells of its work to those who wait for an evaluation: each partition, how far asking is, and what was answered."""

import time
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.stage.dagster_internals import tell_run
from assets.stage.resources import Store
from assets.stage.told_calls import CallsOfStage
from resources.evaluations.evaluation_calls import CallCounts, StageCalls
from resources.evaluations.evaluation_store import QUEUE_TAG

ANSWERS_TOLD_EVERY_S = 2.0


class StageEvents:
    """Of one stage in one run, in Dagster's event log. Where the run is of no evaluation nothing is told; an event that cannot be stored is
    logged, and no more.
    """

    def __init__(self, context: dg.AssetExecutionContext, store: Store) -> None:
        self._context = context
        self._stage = context.asset_key.to_user_string()
        self._is_told = QUEUE_TAG in context.run.tags
        self._answered_at = 0.0
        store.tell_calls(CallsOfStage(self._far, self._calls) if self._is_told else None)

    def item(self, key: str, done: int, of: int, reason: str | None = None) -> None:
        """A partition is done, or failed for a reason. `done`: how many of the stage's partitions are either."""
        status = {"status": "done"} if reason is None else {"status": "failed", "reason": reason}
        self._tell(f"{key} is {status['status']}", {"key": key, "done": done, "of": of, **status})

    def _far(self, counts: CallCounts, of: int) -> None:
        """How many requests are answered, seldom: an event is a row that stays."""
        if time.monotonic() - self._answered_at < ANSWERS_TOLD_EVERY_S:
            return
        self._answered_at = time.monotonic()
        told = {"answered": counts.answered, "failed": counts.failed, "skipped": counts.skipped, "of": of}
        self._tell(f"{counts.answered:,} of {of:,} requests are answered", told)

    def _calls(self, calls: StageCalls) -> None:
        """What became of all requests so far, at the end of each block in which the stage asks."""
        if calls.counts.asked:
            self._tell(f"{calls.counts.answered:,} of {calls.counts.asked:,} requests were answered", calls.as_json())

    def _tell(self, message: str, data: Mapping[str, Any]) -> None:
        if not self._is_told:
            return
        try:
            tell_run(self._context, f"{self._stage}: {message}", {"stage": self._stage, **data})
        except Exception as error:  # whoever waits can do without an event, and the stage cannot be done without
            self._context.log.warning(f"an event could not be stored: {error}")
