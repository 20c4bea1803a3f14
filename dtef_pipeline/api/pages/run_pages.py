"""Results of one run of an evaluation as a page: metrics with intervals, cost, and all texts."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.evaluation_text import build_value_rows, describe_run_request
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.queue.evaluation_progress import compute_progress
from dtef_pipeline.api.results.result_routes import RunDep, build_trace_uri, load_trace, results_kept
from dtef_pipeline.api.services import ServicesDep

_METRICS_SHOWN = 500

router = build_page_router()


@router.get("/runs/{run_id}")
def run_page(request: Request, services: ServicesDep, holder: OperatorToken, context: RunDep) -> Response:
    """One run with its results so far."""
    run, family, results = context.run, context.evaluation.family, results_kept.get_results(context)
    state = compute_progress(context.evaluation, services.evaluations.events(run.queue_id)).runs[run.run_id]
    rows = build_value_rows(family, results.metrics[:_METRICS_SHOWN])
    asked = describe_run_request(run.asks)
    values = {"context": context, "state": state, "results": results, "rows": rows, "asked": asked}
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
