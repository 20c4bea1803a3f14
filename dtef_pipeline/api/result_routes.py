"""What the runs of an evaluation came to: state, metrics, costs, and every text behind them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.etags import UNCHANGED, tagged
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.progress_of import progress_of
from dtef_pipeline.api.results_of import ResultsKept, RunAsked, results_for
from dtef_pipeline.api.services import Used
from dtef_pipeline.errors import UnknownEvaluation

RUN_PATH = "/api/evaluations/{run_id}"
MOST_TRACES = 200
_RUN_ID = re.compile(r"[0-9a-f]{1,64}")
_LONGEST_TRACE_ID = 200

router = APIRouter()
results_kept = ResultsKept()


class MetricOfRun(BaseModel):
    """A number of a model. Further members tell it from others, such as `condition`, or say its `unit`."""

    model_config = ConfigDict(extra="allow")

    model: str
    metric: str
    value: float | None
    """None: see `reason`."""
    n: int
    """What the value is a mean over: episodes, items, prompts or predicted pairs with a score."""
    n_asked: int | None
    """What `n` would be if all that was asked for had been answered and scored. None: not known."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    reason: str | None
    """Why there is no value or no interval."""
    remark: str | None
    """What else is to be known of the value: what was not answered, could not be read, or was done in the model's place. None: nothing."""


class SpentOnCalls(BaseModel):
    """Calls and their cost."""

    usd: float | None
    """Sum of the known costs; None: no call has a known one."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    unpriced: int
    """Calls that are not in `usd`: the cost of one of them, or of another call of the same conversation, is not known."""


class CostOfRun(SpentOnCalls):
    """What the calls cost that the rows of a run rest on, whoever paid for them; each counts once.

    Two runs of an evaluation that rest on the same call have it both in their costs. Before a run has rows nothing of this is known: `usd` is
    null, and what the evaluation bought in all stands in `bought` of its last event.
    """

    bought: SpentOnCalls
    """Those of the calls that were answered while this evaluation ran and because of it. The others were there before."""


class OutcomesOfRun(BaseModel):
    """How much of what a run asks for came, over all its models."""

    unit: str
    """What is counted: `episode`, `response` or `prediction`."""
    asked: int | None
    """By the plan. None: not known before the prompts are made."""
    answered: int
    """Episodes that were played to their end, responses that came."""
    failed: int
    """Given up, or with nothing to answer from."""
    skipped: int
    """Left out as a budget ended."""
    scored: int
    """With a score in at least one metric."""
    warning: str | None
    """What is missing, in words; None: all that was asked for was answered."""


class PageOfTraces(BaseModel):
    """URIs of traces in the order of their ids, and that of the next page."""

    traces: list[str]
    traces_next: str | None


class RunOutcome(PageOfTraces):
    """What a run has come to so far."""

    run_id: str
    queue_id: str
    family: str
    asks: dict[str, Any]
    key: str
    status: str
    reason: str | None
    snapshot: str
    outcomes: OutcomesOfRun
    metrics: list[MetricOfRun]
    cost: CostOfRun


def _run_asked(run_id: str, services: Used) -> RunAsked:
    from resources.warehouse import Warehouse

    if not _RUN_ID.fullmatch(run_id):
        raise UnknownEvaluation(f"there is no evaluation run {run_id[:80]!r}")
    run = services.evaluations.run(run_id)
    evaluation = services.evaluations.evaluation(run.queue_id)
    return RunAsked(evaluation, run, services.settings, Warehouse(services.settings.warehouse))


Asked = Annotated[RunAsked, Depends(_run_asked)]


@router.get(RUN_PATH, response_model=RunOutcome, responses=UNCHANGED)
def read_run(request: Request, services: Used, held: Operating, asked: Asked) -> Response:
    """What a run has come to so far. `value` is null, with a reason, where nothing is scored; `traces_next` is the next page of traces."""
    evaluation, run = asked.evaluation, asked.run
    events = services.evaluations.events(run.queue_id)
    state = progress_of(evaluation, events).runs[run.run_id]
    results = results_kept.of(asked)
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
        "cost": {**results.cost._asdict(), "bought": results.bought._asdict()},
        **_page(asked, results.traces, "", MOST_TRACES),
    }
    return tagged(request, body)


@router.get(f"{RUN_PATH}/traces", response_model=PageOfTraces, responses=UNCHANGED)
def list_traces(
    request: Request,
    held: Operating,
    asked: Asked,
    after: Annotated[str, Query(max_length=_LONGEST_TRACE_ID)] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_TRACES)] = MOST_TRACES,
) -> Response:
    """The URIs of traces in the order of their ids, from the one behind `after` on."""
    return tagged(request, _page(asked, results_kept.of(asked).traces, after, limit))


@router.get(f"{RUN_PATH}/traces/{{trace_id}}", responses=UNCHANGED)
def read_trace(request: Request, held: Operating, asked: Asked, trace_id: str) -> Response:
    """What was asked and answered: of games a whole episode with its turns, elsewhere a response and how it was scored."""
    found = results_for(asked.evaluation.family).trace_of(asked, trace_id) if len(trace_id) <= _LONGEST_TRACE_ID else None
    if found is None:
        raise Problem(404, f"there is no trace {trace_id[:80]!r} of the run {asked.run.run_id}")
    return tagged(request, {"trace_id": trace_id, "run_id": asked.run.run_id, **found})


def _page(asked: RunAsked, traces: list[str], after: str, limit: int) -> dict[str, Any]:
    """At most `limit` URIs, and that of the next page (None: there is none)."""
    place = f"/api/evaluations/{asked.run.run_id}/traces"
    rest = traces[bisect_right(traces, after) :]
    is_last = len(rest) <= limit
    return {
        "traces": [f"{place}/{quote(trace_id, safe='')}" for trace_id in rest[:limit]],
        "traces_next": None if is_last else f"{place}?after={quote(rest[limit - 1], safe='')}&limit={limit}",
    }
