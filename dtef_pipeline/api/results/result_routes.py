"""Results of the runs of an evaluation: state, metrics, costs, and all texts."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ConfigDict

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, make_optional
from dtef_pipeline.api.etags import UNCHANGED, build_tagged_response
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.evaluation_progress import compute_progress
from dtef_pipeline.api.queue.queue_bodies import CallCosts, RunOfEvaluation
from dtef_pipeline.api.queue.queue_routes import build_run_body
from dtef_pipeline.api.results.run_context import RunContext, UsageTotals
from dtef_pipeline.api.results.run_results import ResultsCache, add_board_columns, load_results
from dtef_pipeline.api.results.trace_bodies import TraceBody
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.errors import UnknownEvaluation
from resources.evaluations.evaluation_counts import round_dollars

RUN_PATH = "/api/evaluations/{run_id}"
MAX_TRACES = 200
_RUN_ID = re.compile(r"[0-9a-f]{1,64}")
_LONGEST_TRACE_ID = 200

router = APIRouter()
results_kept = ResultsCache()


class MetricOfRun(AnswerBody):
    """A metric of a model. Only some families have the fields after `remark`, most of which are columns of their boards."""

    model_config = ConfigDict(json_schema_extra=add_board_columns)

    model: str
    metric: str
    value: float | None
    """null: see `reason`."""
    n: int
    """Number of units in the mean: episodes, items, prompts or predicted pairs with a score."""
    n_asked: int | None
    """Value of `n` if all requests had a scored response; null: unknown."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end of the 95 % interval."""
    reason: str | None
    """Why there is no value or no interval."""
    remark: str | None
    """Notes on the value: missing responses, unreadable ones, or moves made for the model; null: none."""
    direction: Literal["higher", "lower", "none"] = make_optional()
    """Better direction."""
    n_responses: int = make_optional()
    """Responses with a score (rubric)."""


class CostOfRun(CallCosts):
    """Cost of the calls behind the rows of a run, whoever paid for them; each counts once.

    If two runs of an evaluation share a call, both include its cost. Before a run has rows, `usd` is null; `bought` in the evaluation's
    last event has its total.
    """

    bought: CallCosts
    """Calls made for this evaluation while it ran; the others were stored before."""


class OutcomesOfRun(AnswerBody):
    """Outcomes of a run's planned requests, over all its models."""

    unit: Literal["episode", "response", "prediction"]
    """The counted unit."""
    asked: int | None
    """Planned number; null: unknown until the prompts are made."""
    answered: int
    """Finished episodes, or responses received."""
    failed: int
    """Failed, or without data to predict from."""
    skipped: int
    """Left out because a budget was used up."""
    scored: int
    """With a score in at least one metric."""
    warning: str | None
    """What is missing, in words; null: nothing."""


class PageOfTraces(AnswerBody):
    """URIs of traces in the order of their ids, and the URI of the next page."""

    traces: list[str]
    traces_next: str | None
    """Null: this is the last page."""


class RunOutcome(PageOfTraces, RunOfEvaluation):
    """Results of a run so far."""

    queue_id: str
    """Id of its evaluation."""
    family: FamilyName
    snapshot: str
    """Label of its rows."""
    outcomes: OutcomesOfRun
    metrics: list[MetricOfRun]
    cost: CostOfRun


def run_context(run_id: str, services: ServicesDep) -> RunContext:
    """Return a run with the place of its rows. Raises UnknownEvaluation."""
    from resources.warehouse import Warehouse

    if not _RUN_ID.fullmatch(run_id):
        raise UnknownEvaluation(f"unknown evaluation run {run_id[:80]!r}")
    evaluation, run = services.evaluations.run(run_id)
    return RunContext(evaluation, run, services.settings, Warehouse(services.settings.warehouse))


RunDep = Annotated[RunContext, Depends(run_context)]


@router.get(RUN_PATH, response_model=RunOutcome, responses=UNCHANGED)
def read_run(request: Request, services: ServicesDep, held: OperatorToken, asked: RunDep) -> Response:
    """Results of a run so far. `value` is null, with a reason, if nothing is scored; `traces_next` is the next page of traces."""
    evaluation, run = asked.evaluation, asked.run
    events = services.evaluations.events(run.queue_id)
    state = compute_progress(evaluation, events).runs[run.run_id]
    results = results_kept.get_results(asked)
    body = {
        **build_run_body(run, state),
        "queue_id": run.queue_id,
        "family": evaluation.family,
        "snapshot": asked.snapshot,
        "outcomes": results.outcomes,
        "metrics": results.metrics,
        "cost": {**_build_cost_body(results.cost), "bought": _build_cost_body(results.bought)},
        **_build_page(asked, results.traces, "", MAX_TRACES),
    }
    return build_tagged_response(request, body)


def _build_cost_body(usage: UsageTotals) -> dict[str, Any]:
    return {**usage._asdict(), "usd": round_dollars(usage.usd)}


@router.get(f"{RUN_PATH}/traces", response_model=PageOfTraces, responses=UNCHANGED)
def list_traces(
    request: Request,
    held: OperatorToken,
    asked: RunDep,
    after: Annotated[str, Query(max_length=_LONGEST_TRACE_ID)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_TRACES)] = MAX_TRACES,
) -> Response:
    """The URIs of traces in the order of their ids, starting after `after`."""
    return build_tagged_response(request, _build_page(asked, results_kept.get_results(asked).traces, after, limit))


@router.get(f"{RUN_PATH}/traces/{{trace_id}}", response_model=TraceBody, responses=UNCHANGED)
def read_trace(request: Request, held: OperatorToken, asked: RunDep, trace_id: str) -> Response:
    """A trace: for games a whole episode with its turns, otherwise a prompt with its response and scores."""
    return build_tagged_response(request, load_trace(asked, trace_id))


def load_trace(context: RunContext, trace_id: str) -> dict[str, Any]:
    """Load a trace of the run. Raises Problem if it does not exist."""
    trace = load_results(context).trace(trace_id) if len(trace_id) <= _LONGEST_TRACE_ID else None
    if trace is None:
        raise Problem(404, f"the run {context.run.run_id} has no trace {trace_id[:80]!r}")
    return {"trace_id": trace_id, "run_id": context.run.run_id, **trace}


def build_trace_uri(run_id: str, trace_id: str) -> str:
    """Return the URI of a trace."""
    return f"/api/evaluations/{run_id}/traces/{quote(trace_id, safe='')}"


def _build_page(context: RunContext, traces: list[str], after: str, limit: int) -> dict[str, Any]:
    """Return at most `limit` URIs, and the URI of the next page (None: there is none)."""
    run_id = context.run.run_id
    later = traces[bisect_right(traces, after) :]
    is_last = len(later) <= limit
    return {
        "traces": [build_trace_uri(run_id, trace_id) for trace_id in later[:limit]],
        "traces_next": None
        if is_last
        else f"/api/evaluations/{run_id}/traces?after={quote(later[limit - 1], safe='')}&limit={limit}",
    }
