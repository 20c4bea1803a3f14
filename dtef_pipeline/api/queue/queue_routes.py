"""Evaluations in the queue: their list, one with its state, its events, and its cancellation."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import anyio
from fastapi import APIRouter, Body, Depends, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from dtef_pipeline.api.access import OperatorToken, require_operator
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, convert_to_json, make_optional
from dtef_pipeline.api.etags import (
    ETAG_HEADER,
    TAGGED,
    build_tagged_response,
    compute_weak_etag,
    describe_header,
    matches,
    read_header,
)
from dtef_pipeline.api.plans.manifests import read_manifest, use_manifest_schema
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem, make_fault_problem
from dtef_pipeline.api.queue.evaluation_progress import (
    EvaluationSteps,
    EvaluationView,
    ProgressStatus,
    RunProgress,
    compute_progress,
    load_evaluation_view,
    load_evaluation_views,
)
from dtef_pipeline.api.queue.event_stream import (
    EVENTS_EVERY_S,
    EventStream,
    find_resume_point,
    get_watchers,
    is_server_closing,
)
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.errors import UnknownEvaluation
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_store import EvaluationRun, EvaluationStore, EventKind, count_unended

Asks = Annotated[
    dict[str, Any],
    Field(
        description="What distinguishes the run from the others of its evaluation: for games `persona_id`, `scenario_id`, `persona` "
        "(with its version; empty: none) and the pinned `scenario_version`, `seeds` and `opponents`; for other families "
        "`partition`."
    ),
]


class CallCosts(AnswerBody):
    """Calls and their cost."""

    usd: float | None
    """Sum of the known costs; null: no cost is known."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    unpriced: int
    """Calls that are not in `usd`, because their cost, or that of another call of the same conversation, is unknown."""
    unpriced_usd_most: float | None = make_optional()
    """Largest possible cost of these calls in US dollars, in addition to `usd`; null: there are none, or no price is known."""


class RequestCounts(AnswerBody):
    """Requests to models by their outcome, each counted once."""

    n_requests: int
    """All requests: the sum of the other counts."""
    answered: int
    """Requests with a response, stored before or now."""
    failed: int
    skipped: int
    """Requests that were not sent because a budget was used up."""


class EvaluationRequests(RequestCounts):
    """Requests of a whole evaluation."""

    stages: dict[str, RequestCounts]
    """The same counts by stage."""


class EvaluationLinks(AnswerBody):
    """Paths."""

    self: str
    events: str
    """Path of the stream of events."""
    history: str
    """Path of the list of events."""


class EvaluationBody(AnswerBody):
    """The fields that every evaluation has."""

    queue_id: str
    family: FamilyName
    status: ProgressStatus
    waiting_before: int | None
    """Number of evaluations waiting before this one; null: it is no longer waiting."""
    submitted_by: str
    """The name of a token."""
    submitted_at: datetime
    started_at: datetime | None
    """null: not yet."""
    ended_at: datetime | None
    """null: not yet."""
    snapshot: str | None
    """Label of its rows."""
    last_event: int
    """Number of the last event."""
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""
    warning: str | None
    """At the end, the requests without a response, if others have one."""
    calls: EvaluationRequests | None
    """Null: no requests were made, or none have been reported yet."""
    call_costs: CallCosts | None
    """At the end, the cost of the calls made for it; responses stored before cost nothing. Null: it has not ended."""
    links: EvaluationLinks


class EvaluationSummary(EvaluationBody):
    """An evaluation in a list."""

    progress: EvaluationSteps | None
    """null: it has ended."""
    run_count: int


class EvaluationPage(AnswerBody):
    """Evaluations, newest first."""

    evaluations: list[EvaluationSummary]
    next: str | None
    """The `cursor` of the next page; null: this is the last."""


class QueuedRun(AnswerBody):
    """A run of an evaluation: in games a persona in a scenario, elsewhere a partition."""

    run_id: str
    key: str
    """The partition."""
    asks: Asks


class RunState(QueuedRun):
    """A run of an evaluation with its own state and results."""

    status: ProgressStatus
    reason: str | None
    """Why it failed or was cancelled, if a reason was reported."""


class EvaluationDetails(EvaluationBody):
    """An evaluation with its runs."""

    cancelled_by: str | None
    """Who cancelled it; null: it was not cancelled."""
    manifest: dict[str, Any]
    """The manifest sent to `POST /api/evaluations`, with its defaults filled in."""
    restarts: int
    """Number of times that Dagster has restarted its run."""
    progress: EvaluationSteps
    runs: list[RunState]


class EventData(AnswerBody):
    """The members that the kinds of events have. A missing member does not belong to the kind, or is unknown."""

    family: FamilyName = make_optional()
    """queued: its family."""
    runs: int = make_optional()
    """queued: number of its runs."""
    dagster_run_id: str = make_optional()
    """started, restarted and the end: the Dagster run."""
    stage: str = make_optional()
    """item: the stage that reports."""
    key: str = make_optional()
    """item: the partition that the stage has finished."""
    status: Literal["done", "failed"] = make_optional()
    """item: how it finished the partition."""
    done: int = make_optional()
    """item: partitions that the stage has finished, including failed ones."""
    n_planned: int = make_optional()
    """item: all partitions of the stage, or its expected requests, which in games grow."""
    answered: int = make_optional()
    """item: answered requests of the stage so far."""
    skipped: int = make_optional()
    """item: requests of the stage that were not sent because a budget was used up."""
    failed: int | dict[str, str] = make_optional()
    """item: failed requests of the stage; at the end: the reason of each failed partition, by key."""
    calls: RequestCounts | EvaluationRequests = make_optional()
    """item: counts of all requests of the stage; at the end: those of the evaluation."""
    failure_reason: str = make_optional()
    """item: the most frequent reason, if some requests failed."""
    skip_reason: str = make_optional()
    """item: the budget that was used up, if some requests were not sent."""
    restarted: Literal[True] = make_optional()
    """item: Dagster has restarted the run."""
    reason: str = make_optional()
    """Why the partition, the earlier run or the evaluation failed, or why the evaluation was cancelled in Dagster."""
    call_costs: CallCosts = make_optional()
    """The end: cost of the calls made for it."""
    warning: str = make_optional()
    """The end: requests without a response."""
    by: str = make_optional()
    """cancelled: who cancelled it."""


class EventBody(AnswerBody):
    """An event of an evaluation. `item`: a step was completed; completed, failed or cancelled: the last event."""

    seq: int
    """Number, from 1 without gaps."""
    kind: EventKind
    data: EventData
    happened_at: datetime


class EventPage(AnswerBody):
    """Events in the order of their numbers."""

    events: list[EventBody]
    next: int
    """Value of `after` for the next request."""


QUEUE_PATH = "/api/evaluations/queue"
LONGEST_WAIT_S = 30
_QUEUE_ID = re.compile(r"[0-9a-f]{1,32}")
_LARGEST_SEQ = 2**31 - 1

router = APIRouter()
_STREAMED: dict[str, Any] = {
    "responses": {
        200: {"description": "The events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "All events have been sent; no more will follow."},
    },
    "openapi_extra": {"parameters": [describe_header("Last-Event-ID", "The number of the last event received.")]},
}


def _queue_id(queue_id: str) -> str:
    if not _QUEUE_ID.fullmatch(queue_id):
        raise UnknownEvaluation(f"unknown evaluation {queue_id[:80]!r}")
    return queue_id


QueueId = Annotated[str, Depends(_queue_id)]


@router.get(QUEUE_PATH, response_model=EvaluationPage, **TAGGED)
def list_evaluations(
    request: Request,
    services: ServicesDep,
    holder: OperatorToken,
    status: ProgressStatus | None = None,
    cursor: Annotated[str | None, Query(max_length=32)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """The evaluations, newest first. `next` is the cursor of the next page, or null on the last; `progress` is null after the end of an
    evaluation.
    """
    store = services.evaluations
    try:
        found = store.latest(limit + 1, None if cursor is None else _queue_id(cursor), status)
    except UnknownEvaluation:
        message = f"got {str(cursor)[:80]!r}; allowed: the member `next` of an earlier page"
        raise make_fault_problem([BodyFault("query.cursor", message)]) from None
    # An evaluation may have gone on since it was found.
    bodies = [
        {
            **_build_summary(view),
            "progress": None if view.is_over else view.progress.steps.model_dump(),
            "run_count": view.evaluation.run_count,
        }
        for view in load_evaluation_views(store, found[:limit])
        if status in (None, view.progress.status)
    ]
    next_cursor = found[limit - 1].queue_id if len(found) > limit else None
    return build_tagged_response(request, {"evaluations": bodies, "next": next_cursor})


@router.get(f"{QUEUE_PATH}/{{queue_id}}", response_model=EvaluationDetails, **TAGGED)
async def read_evaluation(
    holder: OperatorToken,
    request: Request,
    queue_id: QueueId,
    services: ServicesDep,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False)] = 0,
) -> Response:
    """An evaluation with its state. With `wait` and a matching If-None-Match, the response comes when the state changes, or is 304 after
    `wait` seconds.
    """
    read = partial(build_evaluation_body, services.evaluations, queue_id)
    etag = read_header(request, "if-none-match")
    if not (wait and etag):
        return build_tagged_response(request, await run_in_threadpool(read))
    body = await _wait_for_change(request, read, etag, wait)
    require_operator(request)
    return build_tagged_response(request, body)


@router.post(
    f"{QUEUE_PATH}/{{queue_id}}/cancel",
    status_code=202,
    response_model=EvaluationDetails,
    responses={202: {"description": "The present state of the evaluation.", "headers": ETAG_HEADER}},
)
def cancel_evaluation(holder: OperatorToken, request: Request, queue_id: QueueId, services: ServicesDep) -> Response:
    """Cancel an evaluation; the event `cancelled` reports its end. Repeating it changes nothing."""
    services.evaluations.ask_to_cancel(queue_id, holder.name)
    body = build_evaluation_body(services.evaluations, queue_id)
    return JSONResponse(body, 202, {"ETag": compute_weak_etag(body), "Cache-Control": "no-store"})


@router.get(f"{QUEUE_PATH}/{{queue_id}}/events", response_class=Response, **_STREAMED)
async def stream_events(holder: OperatorToken, request: Request, queue_id: QueueId, services: ServicesDep) -> Response:
    """The events as Server-Sent Events, after the one in the header Last-Event-ID. 204: all have been sent, and no more will follow."""
    after = await run_in_threadpool(find_resume_point, services.evaluations, queue_id, read_header(request, "last-event-id"))
    if after is None:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})
    return EventStream(request, queue_id, after)


@router.get(f"{QUEUE_PATH}/{{queue_id}}/events/history", response_model=EventPage, **TAGGED)
def list_events(
    holder: OperatorToken,
    request: Request,
    queue_id: QueueId,
    services: ServicesDep,
    after: Annotated[int, Query(ge=0, le=_LARGEST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The events with a number above `after`, in order. `next` is the value of `after` for the next request."""
    events = services.evaluations.events(queue_id, after, limit)
    rows = [{"seq": e.seq, "kind": e.kind, "data": e.data, "happened_at": e.happened_at.isoformat()} for e in events]
    return build_tagged_response(request, {"events": rows, "next": events[-1].seq if events else after})


async def _wait_for_change(request: Request, read: Callable[[], dict[str, Any]], etag: str, wait: float) -> dict[str, Any]:
    """Return the evaluation as soon as its tag differs from `etag`, or after `wait` seconds, or when the client has disconnected."""
    watchers, deadline = get_watchers(request), anyio.current_time() + wait
    with watchers.place():
        while True:
            body = await watchers.read(read)
            is_over = anyio.current_time() >= deadline or is_server_closing()
            if is_over or not matches(etag, compute_weak_etag(body)) or await request.is_disconnected():
                return body
            await anyio.sleep(min(EVENTS_EVERY_S, max(0.0, deadline - anyio.current_time())))


def build_evaluation_body(evaluations: EvaluationStore, queue_id: str) -> dict[str, Any]:
    """Build the body of one evaluation, which is the same on every server. Raises UnknownEvaluation."""
    view = load_evaluation_view(evaluations, queue_id)
    runs = [build_run_body(run, view.progress.runs[run.run_id]) for run in view.evaluation.runs]
    return {
        **_build_summary(view),
        "cancelled_by": view.cancelled_by,
        "manifest": view.evaluation.manifest,
        "restarts": view.progress.restarts,
        "progress": view.progress.steps.model_dump(),
        "runs": runs,
    }


def build_run_body(run: EvaluationRun, progress: RunProgress) -> dict[str, Any]:
    """Build the body of a run with its state."""
    return {"run_id": run.run_id, "key": run.key, "asks": dict(run.asks), "status": progress.status, "reason": progress.reason}


def _build_summary(view: EvaluationView) -> dict[str, Any]:
    evaluation, progress = view.evaluation, view.progress
    path = f"{QUEUE_PATH}/{evaluation.queue_id}"
    summary = {
        "queue_id": evaluation.queue_id,
        "family": evaluation.family,
        "status": progress.status,
        "waiting_before": view.n_before,
        "submitted_by": evaluation.submitted_by,
        "submitted_at": evaluation.submitted_at,
        "started_at": progress.started_at,
        "ended_at": progress.ended_at,
        "snapshot": evaluation.plan.get("snapshot"),
        "last_event": progress.last_event,
        "reason": progress.reason,
        "warning": progress.warning,
        "calls": progress.calls,
        "call_costs": progress.call_costs,
        "links": {"self": path, "events": f"{path}/events", "history": f"{path}/events/history"},
    }
    evaluation_json: dict[str, Any] = convert_to_json(summary)
    return evaluation_json


MAX_UNENDED = 100
"""Largest number of evaluations of one token that wait or run at the same time."""
_IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="If it is sent again with the same manifest, the ids of the first request are returned.",
    ),
]


_Manifest = Annotated[dict[str, Any], Field(json_schema_extra=use_manifest_schema)]
_ACCEPTED = {
    "description": "The evaluation is stored and will be run by Dagster.",
    "headers": {"Location": {"schema": {"type": "string"}, "description": "Path of the evaluation."}},
}


class QueuedEvaluation(AnswerBody):
    """The submitted evaluation and its paths."""

    queue_id: str
    run_ids: list[str]
    """The ids of `runs`, in their order."""
    status: ProgressStatus
    events: str
    """Path of its events."""
    family: FamilyName
    runs: list[QueuedRun]
    warnings: list[str]
    """Sampling settings that are not sent to the provider as requested."""


@router.post(
    "/api/evaluations",
    status_code=202,
    response_model=QueuedEvaluation,
    responses={202: _ACCEPTED},
)
def post_evaluation(
    services: ServicesDep,
    holder: OperatorToken,
    values: Annotated[_Manifest, Body()],
    idempotency_key: _IdempotencyKey = None,
) -> JSONResponse:
    """Submit a manifest. It is checked now and run by Dagster; the header Location has the path of the evaluation."""
    form, store = read_manifest(values, services.settings), services.evaluations
    entry = None if idempotency_key is None else store.find_submitted(form.family, form.values, holder.name, idempotency_key)
    is_new = False
    if entry is None:
        _refuse_more_than_wait(store, holder.name)
        plan = form.plan(services.settings)
        entry, is_new = store.submit(form.family, form.values, plan.build_plan_json(), plan.runs, holder.name, idempotency_key)
    path = f"{QUEUE_PATH}/{entry.queue_id}"
    body = {
        "queue_id": entry.queue_id,
        "run_ids": [run.run_id for run in entry.runs],
        "status": "queued" if is_new else compute_progress(entry, store.events(entry.queue_id)).status,
        "events": f"{path}/events",
        "family": entry.family,
        "runs": [{"run_id": run.run_id, "key": run.key, "asks": dict(run.asks)} for run in entry.runs],
        "warnings": list(entry.plan.get("warnings", ())),
    }
    return JSONResponse(body, 202, {"Location": path, "Cache-Control": "no-store"})


def _refuse_more_than_wait(store: EvaluationStore, owner: str) -> None:
    if (n_open := count_unended(store, owner)) >= MAX_UNENDED:
        verbs = "waits or runs" if n_open == 1 else "wait or run"
        message = f"{format_count(n_open, 'evaluation')} of {owner} {verbs}; allowed: {MAX_UNENDED}"
        raise Problem(429, f"{message}; wait until one has ended, or cancel one", {"Retry-After": "60"})
