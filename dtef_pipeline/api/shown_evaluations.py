"""An evaluation as a page shows it: its state, how far it is, and what it asks, from its manifest and its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dtef_pipeline.text.counted import and_more
from resources.evaluations import TERMINAL, Evaluation, EvaluationStore, Event

_NAMED_AT_MOST = 3


class ShownEvaluation(NamedTuple):
    """One evaluation with what became of it."""

    evaluation: Evaluation
    events: Sequence[Event]
    state: str
    """queued, running, cancelling, completed, failed or cancelled."""
    done: int
    """Items that ended."""
    total: int | None
    """Items there are; None: nobody said."""

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    @property
    def last_at(self) -> datetime:
        return self.events[-1].happened_at if self.events else self.evaluation.submitted_at

    @property
    def reason(self) -> str | None:
        """Why it failed or was cancelled."""
        if not self.events or self.events[-1].kind not in ("failed", "cancelled"):
            return None
        data = self.events[-1].data
        return next((str(data[name]) for name in ("reason", "error", "message", "who") if data.get(name)), None)


def shown_evaluations(store: EvaluationStore, found: Sequence[Evaluation]) -> list[ShownEvaluation]:
    """The evaluations with their events, in their order."""
    ids = [one.queue_id for one in found]
    events, cancels = store.events_of(ids), store.cancels(ids)
    return [_shown(one, events[one.queue_id], one.queue_id in cancels) for one in found]


def _shown(evaluation: Evaluation, events: Sequence[Event], is_cancelling: bool) -> ShownEvaluation:
    kinds = [one.kind for one in events]
    state = "queued"
    if kinds and kinds[-1] in TERMINAL:
        state = kinds[-1]
    elif is_cancelling:
        state = "cancelling"
    elif "started" in kinds or "item" in kinds:
        state = "running"
    items = [one.data for one in events if one.kind == "item"]
    totals = [one["total"] for one in items if isinstance(one.get("total"), int)]
    done = [one["done"] for one in items if isinstance(one.get("done"), int)]
    return ShownEvaluation(evaluation, events, state, max(done, default=len(items)), max(totals, default=None))


def subject_of(evaluation: Evaluation) -> str:
    """What is asked: scenarios or partitions."""
    given = _names(evaluation.manifest, "scenario_ids", "partitions", "partition")
    return and_more(given or sorted({run.key for run in evaluation.runs}), _NAMED_AT_MOST)


def asked_models_of(evaluation: Evaluation) -> str:
    """Which models are asked, as the manifest names them."""
    return and_more(_names(evaluation.manifest, "models", "model"), _NAMED_AT_MOST)


def personas_of(evaluation: Evaluation) -> str:
    return and_more(_names(evaluation.manifest, "persona_ids"), _NAMED_AT_MOST)


def _names(manifest: Mapping[str, Any], *fields: str) -> list[str]:
    for field in fields:
        value = manifest.get(field)
        if isinstance(value, str):
            return [value]
        if isinstance(value, Sequence) and value:
            return [str(one) for one in value]
    return []
