"""Pages of the queue, of one evaluation, which events update while it runs, and of one of its runs with all its texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.evaluation_text import (
    ITSELF,
    NAMES_SHOWN,
    build_value_rows,
    describe_run_request,
    find_family,
    group_events,
    group_failures,
    main_values,
)
from dtef_pipeline.api.pages.page_routes import build_login_path, build_page_router, page, part, redirect_to_page
from dtef_pipeline.api.queue.evaluation_progress import (
    EvaluationView,
    compute_progress,
    load_evaluation_view,
    load_evaluation_views,
)
from dtef_pipeline.api.queue.queue_routes import QueueId, cancel_evaluation
from dtef_pipeline.api.results.result_routes import RunDep, build_trace_uri, load_run_results, load_trace
from dtef_pipeline.api.service_health import HealthDep, HealthMonitor
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.text.number_words import list_first_names
from resources.evaluations.evaluation_store import EvaluationStatus

EVALUATIONS_A_PAGE = 50
_Status = EvaluationStatus | Literal[""]
_Words = Annotated[str, Query(max_length=200)]

router = build_page_router()


def _list_values(
    services: ServicesDep, look: HealthDep, before: str = "", status: _Status = "", q: _Words = ""
) -> dict[str, Any]:
    """Return the evaluations of one page of the queue. `q`: searched words."""
    words = " ".join(map(find_family, q.split()))
    evaluations = services.evaluations.latest(EVALUATIONS_A_PAGE, before or None, status or None, words)
    views = load_evaluation_views(services.evaluations, evaluations)
    query = {name: value for name, value in (("status", status), ("q", q)) if value}
    older = {**query, "before": evaluations[-1].queue_id} if len(evaluations) == EVALUATIONS_A_PAGE else None
    params = {**query, "before": before} if before else query
    return {
        "views": views,
        "first_names": lambda names: list_first_names([ITSELF if name == "none" else name for name in names], NAMES_SHOWN),
        "why_they_wait": _find_wait_reason(views, look),
        "chosen": status,
        "words": q,
        "now": f"/queue/now?{urlencode(params)}" if params else "/queue/now",
        "older": f"/queue?{urlencode(older)}" if older else None,
    }


def _find_wait_reason(views: Sequence[EvaluationView], look: HealthMonitor) -> str | None:
    """Say why queued evaluations do not start; None: there are none, or no reason is known."""
    return look.find_start_problem() if any(view.progress.status == "queued" for view in views) else None


def _evaluation_values(services: ServicesDep, queue_id: QueueId, look: HealthDep) -> dict[str, Any]:
    view = load_evaluation_view(services.evaluations, queue_id)
    return {
        "view": view,
        "why_they_wait": _find_wait_reason([view], look),
        "requests": {run.run_id: describe_run_request(run.asks) for run in view.evaluation.runs},
        "failures": group_failures(view),
        "values": main_values(services, view),
        "story": group_events(view),
    }


_QueueValues = Annotated[dict[str, Any], Depends(_list_values)]
_EvaluationValues = Annotated[dict[str, Any], Depends(_evaluation_values)]


@router.get("/queue")
def queue_page(request: Request, holder: OperatorToken, values: _QueueValues) -> Response:
    """The evaluations, newest first; optionally only those of a status, or those that contain the searched words."""
    states = get_args(EvaluationStatus)
    return page(request, "queue", "Queue", scripts=("live.js",), login=build_login_path(request), states=states, **values)


@router.get("/queue/now")
def queue_now(request: Request, holder: OperatorToken, values: _QueueValues) -> Response:
    """The changing part of the queue's page."""
    return part(request, "queue_now", **values)


@router.get("/queue/{queue_id}")
def evaluation_page(queue_id: QueueId, request: Request, holder: OperatorToken, values: _EvaluationValues) -> Response:
    """One evaluation."""
    title = f"Evaluation {queue_id[:8]}"
    return page(request, "evaluation", title, scripts=("live.js",), login=build_login_path(request), **values)


@router.get("/queue/{queue_id}/now")
def evaluation_now(request: Request, holder: OperatorToken, values: _EvaluationValues) -> Response:
    """The changing part of an evaluation's page."""
    return part(request, "evaluation_now", **values)


@router.post("/queue/{queue_id}/cancel")
def cancel(request: Request, queue_id: QueueId, services: ServicesDep, holder: OperatorToken) -> Response:
    """Cancel an evaluation."""
    cancel_evaluation(holder, request, queue_id, services)
    return redirect_to_page(f"/queue/{queue_id}")


_METRICS_SHOWN = 500


@router.get("/runs/{run_id}")
def run_page(request: Request, services: ServicesDep, holder: OperatorToken, context: RunDep) -> Response:
    """One run with its results so far."""
    run, family, results = context.run, context.evaluation.family, load_run_results(context)
    state = compute_progress(context.evaluation, services.evaluations.events(run.queue_id)).runs[run.run_id]
    rows = build_value_rows(family, results.metrics[:_METRICS_SHOWN])
    asked = describe_run_request(run.asks)
    values: dict[str, Any] = {"context": context, "state": state, "results": results, "rows": rows, "asked": asked}
    return page(request, "run", f"Run {run.run_id[:8]}", **values)


@router.get("/runs/{run_id}/traces/{trace_id}")
def trace_page(request: Request, holder: OperatorToken, context: RunDep, trace_id: str) -> Response:
    """A trace: for games a whole episode with its turns, otherwise a prompt with its response and scores."""
    run_id, trace = context.run.run_id, {**load_trace(context, trace_id)}
    del trace["run_id"]
    members = lay_out_episode(trace) if "turns" in trace else trace
    address = build_trace_uri(run_id, trace_id)
    return page(request, "trace", f"Trace {trace_id[:8]}", members=members, run_id=run_id, json_address=address)


def lay_out_episode(episode: dict[str, Any]) -> dict[str, Any]:
    """Return the episode with its moves as an object instead of JSON text, and its turns without values that all of them repeat."""
    turns = episode["turns"]
    names = {name for name in episode if all(turn.get(name) == episode[name] for turn in turns)}
    rows = [{name: value for name, value in turn.items() if name not in names} for turn in turns]
    return {**episode, "trace": json.loads(episode["trace"] or "null"), "turns": rows}
