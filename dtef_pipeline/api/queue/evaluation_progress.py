"""Progress of an evaluation and its runs, computed from its events for the API, its streams and its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dtef_pipeline.api.answer_schemas import AnswerBody
from resources.evaluations.evaluation_calls import sum_reported_calls
from resources.evaluations.evaluation_store import (
    TERMINAL,
    Evaluation,
    EvaluationRun,
    EvaluationStatus,
    EvaluationStore,
    Event,
)

ProgressStatus = EvaluationStatus


class EvaluationSteps(AnswerBody):
    """Progress of an evaluation."""

    stage: str | None
    """Stage that reported last; null: none yet."""
    done: int
    """Partitions that the stages reported as done, counted in every stage."""
    n_planned: int
    """Planned partitions, counted in every stage."""
    failed: int
    """Failed partitions, counted in every stage in which they failed."""
    answered: int | None
    """Answered requests of the present stage; null: none reported."""
    n_requests: int | None
    """Expected requests of the present stage; null: none reported. In games the number grows, because each move decides whether another
    follows."""


class RunProgress(NamedTuple):
    """Progress of one run of an evaluation."""

    status: ProgressStatus
    reason: str | None = None
    """Why it failed or was cancelled, if a reason was reported."""


class EvaluationProgress(NamedTuple):
    """Progress of an evaluation after its last event."""

    status: ProgressStatus
    last_event: int
    """Number of the last event; 0 before the first."""
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""
    steps: EvaluationSteps
    calls: Mapping[str, Any] | None
    """Counts of all requests: `n_requests`, `answered`, `failed`, `skipped`, and the same by `stages`; None: not reported."""
    call_costs: Mapping[str, Any] | None
    """At the end, the cost of the calls made for it, see `sum_call_costs_by`; None: not reported."""
    warning: str | None
    """At the end, the requests without a response, if others have one."""
    restarts: int
    """Number of times that Dagster has restarted the run."""
    runs: Mapping[str, RunProgress]
    """By run id."""


def compute_progress(evaluation: Evaluation, events: Sequence[Event]) -> EvaluationProgress:
    """Compute the progress from the events of an evaluation, in order. For a partition that was tried again, the latest report counts."""
    last = events[-1] if events else None
    end = last if last is not None and last.kind in TERMINAL else None
    kind = last.kind if last else "queued"
    status: ProgressStatus = "running" if kind in ("started", "item") else kind  # type: ignore[assignment]
    items = [event.data for event in events if event.kind == "item"]
    stage = next((item["stage"] for item in reversed(items) if "stage" in item), None)
    items_by_key = {(item.get("stage"), item["key"]): item for item in items if "key" in item}
    n_failed = sum(item.get("status") == "failed" for item in items_by_key.values())
    by_key: dict[Any, dict[Any, Mapping[str, Any]]] = {}
    for (item_stage, key), item in items_by_key.items():
        by_key.setdefault(key, {})[item_stage] = item
    stages, reported_calls = list(evaluation.plan.get("config", ())), sum_reported_calls(events)
    n_answered, n_requests = _count_requests([item for item in items if item.get("stage") == stage])
    return EvaluationProgress(
        status=status,
        last_event=last.seq if last else 0,
        started_at=next((event.happened_at for event in events if event.kind in ("started", "item")), None),
        ended_at=end.happened_at if end else None,
        reason=_read_reason(end.data) if end else None,
        steps=EvaluationSteps(
            stage=stage,
            done=len(items_by_key) - n_failed,
            n_planned=max(len(evaluation.plan.get("keys", ())) * len(stages), len(items_by_key)),
            failed=n_failed,
            answered=n_answered,
            n_requests=n_requests,
        ),
        calls=end.data.get("calls") if end else reported_calls and reported_calls.build_json(),
        call_costs=end.data.get("call_costs") if end else None,
        warning=end.data.get("warning") if end else None,
        restarts=sum("restarted" in item for item in items),
        runs={run.run_id: _run_progress(run, status, end, by_key.get(run.key, {}), stages) for run in evaluation.runs},
    )


def _count_requests(items: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return the numbers of answered and expected requests that a stage reported last."""
    expected = max((item["n_planned"] for item in items if "answered" in item and "n_planned" in item), default=0)
    for item in reversed(items):
        if "calls" in item:
            # Requests skipped by a cancellation were also expected.
            return item["calls"]["answered"], max(item["calls"]["n_requests"], expected)
        if "answered" in item:
            return item["answered"], item.get("n_planned")
    return None, None


def _run_progress(
    run: EvaluationRun,
    status: ProgressStatus,
    end: Event | None,
    reports: Mapping[Any, Mapping[str, Any]],
    stages: Sequence[str],
) -> RunProgress:
    """Return the state of the run's partition if known, else that of the evaluation. `reports`: the reports on its partition, by stage."""
    failures = (end.data.get("failed") or {}) if end else {}
    if run.key in failures:
        return RunProgress("failed", str(failures[run.key]))
    for item in reports.values():
        if item.get("status") == "failed":
            return RunProgress("failed", _read_reason(item))
    calls = (end.data.get("calls") or {}) if end else {}
    is_answered = bool(calls.get("answered")) or not calls.get("n_requests")
    if is_answered and stages and all(reports.get(stage, {}).get("status") == "done" for stage in stages):
        return RunProgress("completed")
    return RunProgress(status, _read_reason(end.data) if end else None)


def _read_reason(data: Mapping[str, Any]) -> str | None:
    if (reason := data.get("reason")) is not None:
        return str(reason)
    return f"requested by {data['by']}" if "by" in data else None


class EvaluationView(NamedTuple):
    """One evaluation with its results."""

    evaluation: Evaluation
    events: Sequence[Event]
    progress: EvaluationProgress
    cancelled_by: str | None
    """Who cancelled it; None: it was not cancelled."""
    n_before: int | None
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
