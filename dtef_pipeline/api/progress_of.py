"""How far an evaluation and each of its runs are, derived from its events in one place: for the API, its streams and its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from resources.evaluations import TERMINAL, Evaluation, EvaluationRun, Event, EventKind

ProgressStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
_STATUS_AFTER: Mapping[EventKind, ProgressStatus] = {
    "queued": "queued",
    "started": "running",
    "item": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


class PartProgress(NamedTuple):
    """How far one run of an evaluation is."""

    status: ProgressStatus
    reason: str | None = None
    """Why it failed or was cancelled, where that was told."""


class EvaluationProgress(NamedTuple):
    """How far an evaluation is after its last event."""

    status: ProgressStatus
    last_event: int
    """Its number; 0 before the first."""
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None
    """Why it failed or was cancelled, where that was told."""
    stage: str | None
    """The stage that was heard of last."""
    done: int
    """Partitions that are done, counted in every stage."""
    of: int
    """Partitions to do, counted in every stage."""
    failed: int
    """Partitions that failed, counted in every stage where they did."""
    answered: int | None
    """Requests of the present stage that are answered, where the stage asks and has told so."""
    asked: int | None
    """Requests of the present stage, likewise."""
    runs: Mapping[str, PartProgress]
    """By run id."""

    def as_json(self) -> dict[str, Any]:
        """The member `progress` of an evaluation."""
        return {name: getattr(self, name) for name in ("stage", "done", "of", "failed", "answered", "asked")}


def progress_of(evaluation: Evaluation, events: Sequence[Event]) -> EvaluationProgress:
    """What the events of an evaluation, in their order, say of it. Of a partition that is tried again, the last word holds."""
    last = events[-1] if events else None
    end = last if last is not None and last.kind in TERMINAL else None
    status: ProgressStatus = _STATUS_AFTER[last.kind] if last else "queued"
    items = [event.data for event in events if event.kind == "item"]
    stage = items[-1].get("stage") if items else None
    told = {(item.get("stage"), item["key"]): item for item in items if "key" in item}
    failed = sum(item.get("status") == "failed" for item in told.values())
    of = max(len(evaluation.plan.get("keys", ())) * len(_stages(evaluation)), len(told))
    asking: Mapping[str, Any] = next(
        (item for item in reversed(items) if item.get("stage") == stage and "answered" in item), {}
    )
    by_key: dict[Any, dict[Any, Mapping[str, Any]]] = {}
    for (told_stage, key), item in told.items():
        by_key.setdefault(key, {})[told_stage] = item
    stages = _stages(evaluation)
    return EvaluationProgress(
        status=status,
        last_event=last.seq if last else 0,
        started_at=next((event.happened_at for event in events if event.kind in ("started", "item")), None),
        ended_at=end.happened_at if end else None,
        reason=_reason(end.data) if end else None,
        stage=stage,
        done=of - failed if status == "completed" else len(told) - failed,
        of=of,
        failed=failed,
        answered=asking.get("answered"),
        asked=asking.get("of"),
        runs={run.run_id: _run_progress(run, status, end, by_key.get(run.key, {}), stages) for run in evaluation.runs},
    )


def _stages(evaluation: Evaluation) -> Sequence[str]:
    return list(evaluation.plan.get("config", ()))


def _run_progress(
    run: EvaluationRun,
    status: ProgressStatus,
    end: Event | None,
    own: Mapping[Any, Mapping[str, Any]],
    stages: Sequence[str],
) -> PartProgress:
    """The run's own fate, where its partition has one; else that of the evaluation. `own`: by stage, what was told of its partition."""
    failures = (end.data.get("failed") or {}) if end else {}
    if run.key in failures:
        return PartProgress("failed", str(failures[run.key]))
    for item in own.values():
        if item.get("status") == "failed":
            return PartProgress("failed", _reason(item))
    if stages and all(own.get(stage, {}).get("status") == "done" for stage in stages):
        return PartProgress("completed")
    return PartProgress(status, _reason(end.data) if end else None)


def _reason(data: Mapping[str, Any]) -> str | None:
    if (said := data.get("reason")) is not None:
        return str(said)
    return f"asked for by {data['by']}" if "by" in data else None


def last_kinds(status: ProgressStatus) -> list[EventKind]:
    """The kinds of the last event of an evaluation that has this status."""
    return [kind for kind, after in _STATUS_AFTER.items() if after == status]
