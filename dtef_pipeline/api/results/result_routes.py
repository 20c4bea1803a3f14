"""What the runs of an evaluation came to: state, metrics, costs, and every text behind them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ConfigDict

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, make_optional
from dtef_pipeline.api.etags import UNCHANGED, build_tagged_response
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.evaluation_progress import compute_progress
from dtef_pipeline.api.queue.queue_bodies import RunOfEvaluation, SpentOnCalls
from dtef_pipeline.api.results.run_context import RunContext, UsageTotals
from dtef_pipeline.api.results.run_results import ResultsCache, add_board_columns, load_results
from dtef_pipeline.api.results.trace_bodies import TraceBody
from dtef_pipeline.api.services import Used
from dtef_pipeline.errors import UnknownEvaluation
from resources.evaluations.evaluation_counts import round_dollars

RUN_PATH = "/api/evaluations/{run_id}"
MOST_TRACES = 200
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
    """What the value is a mean over: episodes, items, prompts or predicted pairs with a score."""
    n_asked: int | None
    """What `n` would be if all that was asked for had been answered and scored; null: not known."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end of it."""
    reason: str | None
    """Why there is no value or no interval."""
    remark: str | None
    """What else is to be known of the value: what was not answered, could not be read, or was done in the model's place; null: nothing."""
    direction: Literal["higher", "lower", "none"] = make_optional()
    """Which side is better."""
    n_responses: int = make_optional()
    """Responses with a score (rubric)."""


class CostOfRun(SpentOnCalls):
    """What the calls cost that the rows of a run rest on, whoever paid for them; each counts once.

    Two runs of an evaluation that rest on the same call have it both in their costs. Before a run has rows nothing of this is known: `usd` is
    null, and what the evaluation bought in all stands in `bought` of its last event.
    """

    bought: SpentOnCalls
    """Those of the calls that were answered while this evaluation ran and because of it. The others were there before."""


class OutcomesOfRun(AnswerBody):
    """How much of what a run asks for came, over all its models."""

    unit: Literal["episode", "response", "prediction"]
    """What is counted."""
    asked: int | None
    """By the plan; null: not known before the prompts are made."""
    answered: int
    """Episodes that were played to their end, responses that came."""
    failed: int
    """Given up, or with nothing to answer from."""
    skipped: int
    """Left out as a budget ended."""
    scored: int
    """With a score in at least one metric."""
    warning: str | None
    """What is missing, in words; null: all that was asked for was answered."""


class PageOfTraces(AnswerBody):
    """URIs of traces in the order of their ids, and that of the next page."""

    traces: list[str]
    traces_next: str | None
    """null: these are the last."""


class RunOutcome(PageOfTraces, RunOfEvaluation):
    """What a run has come to so far."""

    queue_id: str
    """The evaluation that it is a run of."""
    family: FamilyName
    snapshot: str
    """The label that its rows have."""
    outcomes: OutcomesOfRun
    metrics: list[MetricOfRun]
    cost: CostOfRun


def run_context(run_id: str, services: Used) -> RunContext:
    """A run, and where its rows are. Raises UnknownEvaluation."""
    from resources.warehouse import Warehouse

    if not _RUN_ID.fullmatch(run_id):
        raise UnknownEvaluation(f"there is no evaluation run {run_id[:80]!r}")
    evaluation, run = services.evaluations.run(run_id)
    return RunContext(evaluation, run, services.settings, Warehouse(services.settings.warehouse))


Asked = Annotated[RunContext, Depends(run_context)]


@router.get(RUN_PATH, response_model=RunOutcome, responses=UNCHANGED)
def read_run(request: Request, services: Used, held: Operating, asked: Asked) -> Response:
    """What a run has come to so far. `value` is null, with a reason, where nothing is scored; `traces_next` is the next page of traces."""
    evaluation, run = asked.evaluation, asked.run
    events = services.evaluations.events(run.queue_id)
    state = compute_progress(evaluation, events).runs[run.run_id]
    results = results_kept.get_results(asked)
    body = {
        "run_id": run.run_id,
        "queue_id": run.queue_id,
        "family": evaluation.family,
        "asks": dict(run.asks),
        "key": run.key,
        "status": state.status,
        "reason": state.reason,
        "snapshot": asked.snapshot,
        "outcomes": results.outcomes,
        "metrics": results.metrics,
        "cost": {**_build_cost_body(results.cost), "bought": _build_cost_body(results.bought)},
        **_build_page(asked, results.traces, "", MOST_TRACES),
    }
    return build_tagged_response(request, body)


def _build_cost_body(usage: UsageTotals) -> dict[str, Any]:
    return {**usage._asdict(), "usd": round_dollars(usage.usd)}


@router.get(f"{RUN_PATH}/traces", response_model=PageOfTraces, responses=UNCHANGED)
def list_traces(
    request: Request,
    held: Operating,
    asked: Asked,
    after: Annotated[str, Query(max_length=_LONGEST_TRACE_ID)] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_TRACES)] = MOST_TRACES,
) -> Response:
    """The URIs of traces in the order of their ids, from the one behind `after` on."""
    return build_tagged_response(request, _build_page(asked, results_kept.get_results(asked).traces, after, limit))


@router.get(f"{RUN_PATH}/traces/{{trace_id}}", response_model=TraceBody, responses=UNCHANGED)
def read_trace(request: Request, held: Operating, asked: Asked, trace_id: str) -> Response:
    """What was asked and answered: of games a whole episode with its turns, elsewhere a response and how it was scored."""
    return build_tagged_response(request, load_trace(asked, trace_id))


def load_trace(context: RunContext, trace_id: str) -> dict[str, Any]:
    """A trace of the run, as the API tells it. Raises Problem where there is none."""
    trace = load_results(context).trace(trace_id) if len(trace_id) <= _LONGEST_TRACE_ID else None
    if trace is None:
        raise Problem(404, f"there is no trace {trace_id[:80]!r} of the run {context.run.run_id}")
    return {"trace_id": trace_id, "run_id": context.run.run_id, **trace}


def build_trace_uri(run_id: str, trace_id: str) -> str:
    """Where the API tells a trace."""
    return f"/api/evaluations/{run_id}/traces/{quote(trace_id, safe='')}"


def _build_page(context: RunContext, traces: list[str], after: str, limit: int) -> dict[str, Any]:
    """At most `limit` URIs, and that of the next page (None: there is none)."""
    run_id = context.run.run_id
    later = traces[bisect_right(traces, after) :]
    is_last = len(later) <= limit
    return {
        "traces": [build_trace_uri(run_id, trace_id) for trace_id in later[:limit]],
        "traces_next": None
        if is_last
        else f"/api/evaluations/{run_id}/traces?after={quote(later[limit - 1], safe='')}&limit={limit}",
    }
