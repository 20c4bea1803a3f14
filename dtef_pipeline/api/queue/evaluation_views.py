"""An evaluation for a page: its state, progress and subject, from its manifest and its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dtef_pipeline.api.queue.evaluation_progress import EvaluationProgress, compute_progress
from dtef_pipeline.text.quantity_words import list_first_names
from resources.evaluations.evaluation_store import TERMINAL, Evaluation, EvaluationStore, Event

_MAX_NAMES = 3


class EvaluationView(NamedTuple):
    """One evaluation with its results."""

    evaluation: Evaluation
    events: Sequence[Event]
    progress: EvaluationProgress
    cancelled_by: str | None
    """Who cancelled it; None: it was not cancelled."""
    before: int | None
    """Number of evaluations waiting before it; None: it is no longer waiting."""

    @property
    def is_over(self) -> bool:
        return self.progress.status in TERMINAL

    @property
    def state(self) -> str:
        """Its status, or `cancelling` if it was cancelled but has not ended yet."""
        return "cancelling" if self.cancelled_by is not None and not self.is_over else self.progress.status

    @property
    def last_at(self) -> datetime:
        return self.events[-1].happened_at if self.events else self.evaluation.submitted_at


def load_evaluation_views(store: EvaluationStore, evaluations: Sequence[Evaluation]) -> list[EvaluationView]:
    """Load the evaluations with their events, in order; the many events of single items only for running ones."""
    return _build_views(store, evaluations, store.list_brief_events([evaluation.queue_id for evaluation in evaluations]))


def load_evaluation_view(store: EvaluationStore, queue_id: str) -> EvaluationView:
    """Load one evaluation with all its events. Raises UnknownEvaluation."""
    evaluation = store.evaluation(queue_id)
    return _build_views(store, [evaluation], {queue_id: store.events(queue_id)})[0]


def _build_views(
    store: EvaluationStore, evaluations: Sequence[Evaluation], events: Mapping[str, Sequence[Event]]
) -> list[EvaluationView]:
    cancels = store.cancels([evaluation.queue_id for evaluation in evaluations])
    progress = {evaluation.queue_id: compute_progress(evaluation, events[evaluation.queue_id]) for evaluation in evaluations}
    waits = any(state.status == "queued" for state in progress.values())
    places = {queue_id: place for place, queue_id in enumerate(store.waiting() if waits else ())}
    # An evaluation that started after its events were read is still shown as it was then: first in the queue.
    before = {name: places.get(name, 0) for name, state in progress.items() if state.status == "queued"}
    return [
        EvaluationView(job, events[job.queue_id], progress[job.queue_id], cancels.get(job.queue_id), before.get(job.queue_id))
        for job in evaluations
    ]


def describe_subject(evaluation: Evaluation, words: Callable[[str], str] = str) -> str:
    """Describe the subject: scenarios or partitions. `words`: returns the label of each."""
    names = _list_names(evaluation.manifest, "scenario_ids") or sorted({str(key) for key in evaluation.plan.get("keys", ())})
    return list_first_names([words(name) for name in names], _MAX_NAMES)


def describe_models(evaluation: Evaluation) -> str:
    """Describe the models, as the manifest names them."""
    return list_first_names(_list_names(evaluation.manifest, "models"), _MAX_NAMES)


def describe_personas(evaluation: Evaluation) -> list[str]:
    """Describe the personas, `none` for the model as itself."""
    return _list_names(evaluation.manifest, "persona_ids")


def _list_names(manifest: Mapping[str, Any], field: str) -> list[str]:
    value = manifest.get(field)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(entry) for entry in value]
    return [] if value is None else [str(value)]
