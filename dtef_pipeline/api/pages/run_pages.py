"""Results of one run of an evaluation as a page: metrics with intervals, cost, and all texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.pages.evaluation_text import build_value_rows, describe_run_request, format_call_cost, partition_words
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.queue.evaluation_progress import compute_progress
from dtef_pipeline.api.results.result_routes import RunDep, build_trace_uri, load_trace, results_kept
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.text.number_words import format_count

_LONGEST_INLINE_TEXT = 120
"""Largest number of characters of a text next to its name; a longer one is below it."""
_UNIT_OF_ENDING = {"_s": "s", "_usd": "US dollars"}
"""Endings of names of values with a unit."""
_METRICS_SHOWN, _TRACES_SHOWN = 500, 100
_NOT_KNOWN_YET = "no rows of the run have been written yet; see the cost on the evaluation's page"

router = build_page_router()


@router.get("/runs/{run_id}")
def run_page(request: Request, services: ServicesDep, holder: OperatorToken, context: RunDep) -> Response:
    """One run with its results so far."""
    run, results = context.run, results_kept.get_results(context)
    state = compute_progress(context.evaluation, services.evaluations.events(run.queue_id)).runs[run.run_id]
    cost, purchase = (format_call_cost(usage._asdict()) for usage in (results.cost, results.call_costs))
    return page(
        request,
        "run",
        f"Run {run.run_id[:8]}",
        run=run,
        state=state,
        terms_of_run={
            "Partition": partition_words(context.evaluation.family, run.key),
            "Request": describe_run_request(context.evaluation.family, run.asks),
            "Snapshot": context.snapshot,
            "Outcomes": _format_outcomes(results.outcomes),
            "Cost": f"{cost}, paid by this run or by others" if results.traces else _NOT_KNOWN_YET,
            "Paid by this evaluation": purchase if results.traces else _NOT_KNOWN_YET,
        },
        warning=results.outcomes["warning"],
        caption=_format_with_rest(format_count(len(results.metrics), "metric"), len(results.metrics), _METRICS_SHOWN),
        metrics=build_value_rows(context.evaluation.family, results.metrics[:_METRICS_SHOWN]),
        traces={trace: f"/runs/{run.run_id}/traces/{quote(trace, safe='')}" for trace in results.traces[:_TRACES_SHOWN]},
        n_traces=_format_with_rest(format_count(len(results.traces), "trace"), len(results.traces), _TRACES_SHOWN),
    )


def _format_with_rest(words: str, number: int, limit: int) -> str:
    return words if number <= limit else f"{words}; the first {limit} are shown, see the JSON for all"


def _format_outcomes(outcomes: Mapping[str, Any]) -> str:
    total = "not known yet" if outcomes["n_planned"] is None else format_count(outcomes["n_planned"], outcomes["unit"])
    return f"requested: {total}; " + ", ".join(
        f"{outcomes[name]:,} {name}" for name in ("answered", "failed", "skipped", "scored")
    )


@router.get("/runs/{run_id}/traces/{trace_id}")
def trace_page(request: Request, holder: OperatorToken, context: RunDep, trace_id: str) -> Response:
    """A trace: for games a whole episode with its turns, otherwise a prompt with its response and scores."""
    run_id, trace = context.run.run_id, {**load_trace(context, trace_id)}
    del trace["run_id"]
    values = build_trace_values(trace) | {"run_id": run_id, "json_address": build_trace_uri(run_id, trace_id)}
    return page(request, "trace", f"Trace {trace_id[:8]}", **values)


def build_trace_values(trace: dict[str, Any]) -> dict[str, Any]:
    """Build the values of the template: the members of the trace, and how to show them."""
    members = format_episode(trace) if "turns" in trace else trace
    return {"members": members, "is_long": _is_long, "format_label": _format_label, "format_value": _format_value}


def format_episode(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the episode with its moves as an object instead of JSON text, and its turns without repeated values."""
    turns = episode["turns"]
    names = {name for name in episode if all(turn.get(name) == episode[name] for turn in turns)}
    rows = [{name: value for name, value in turn.items() if name not in names} for turn in turns]
    return {**episode, "trace": json.loads(episode["trace"] or "null"), "turns": rows}


def _is_long(value: Any) -> bool:
    """Whether a member stands under a heading, after those next to their names."""
    if isinstance(value, str):
        return "\n" in value or len(value) > _LONGEST_INLINE_TEXT
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(entry, dict) for entry in value))


def _format_label(name: str) -> str:
    """`Prompt id` of `prompt_id`, `Latency (s)` of `latency_s`."""
    for ending, unit in _UNIT_OF_ENDING.items():
        if name.endswith(ending):
            return f"{_format_label(name.removesuffix(ending))} ({unit})"
    return name.replace("_", " ").capitalize()


def _format_value(name: str, value: Any) -> str | datetime:
    """Format a value in a line: numbers with four digits, lists with commas."""
    if name.endswith("_at") and isinstance(value, str):
        return datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(format_four_digits(entry) for entry in value)
    return format_four_digits(value)


def format_four_digits(value: Any) -> str:
    """Format a number with four digits, never with an exponent: `0.0003736`; a dash for None."""
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{Decimal(f'{value:.4g}'):f}"
    return "–" if value is None else str(value)
