"""Submission of evaluations, which Dagster runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName
from dtef_pipeline.api.plans.manifests import read_manifest, use_manifest_schema
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem, make_fault_problem
from dtef_pipeline.api.queue.evaluation_progress import ProgressStatus, compute_progress
from dtef_pipeline.api.queue.queue_bodies import QueuedRun
from dtef_pipeline.api.queue.queue_routes import QUEUE_PATH
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.text.quantity_words import format_count
from resources.evaluations.evaluation_counts import count_unended
from resources.evaluations.evaluation_store import Evaluation, EvaluationStore

router = APIRouter()
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


async def _refuse_two_keys(request: Request) -> None:
    if len(set(request.headers.getlist("idempotency-key"))) > 1:
        raise make_fault_problem([BodyFault("header.Idempotency-Key", "got more than one; allowed: one")])


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
    dependencies=[Depends(_refuse_two_keys)],
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
        entry, is_new = store.submit(form.family, form.values, plan.build_plan_json(), plan.asked, holder.name, idempotency_key)
    body = _build_queued_body(entry, "queued" if is_new else compute_progress(entry, store.events(entry.queue_id)).status)
    return JSONResponse(body, 202, {"Location": f"{QUEUE_PATH}/{entry.queue_id}", "Cache-Control": "no-store"})


def _refuse_more_than_wait(store: EvaluationStore, who: str) -> None:
    if (n_open := count_unended(store, who)) >= MAX_UNENDED:
        verbs = "waits or runs" if n_open == 1 else "wait or run"
        message = f"{format_count(n_open, 'evaluation')} of {who} {verbs}; allowed: {MAX_UNENDED}"
        raise Problem(429, f"{message}; wait until one has ended, or cancel one", {"Retry-After": "60"})


def _build_queued_body(evaluation: Evaluation, status: ProgressStatus) -> dict[str, Any]:
    runs = [{"run_id": run.run_id, "key": run.key, "asks": dict(run.asks)} for run in evaluation.runs]
    return {
        "queue_id": evaluation.queue_id,
        "run_ids": [run.run_id for run in evaluation.runs],
        "status": status,
        "events": f"{QUEUE_PATH}/{evaluation.queue_id}/events",
        "family": evaluation.family,
        "runs": runs,
        "warnings": list(evaluation.plan.get("warnings", ())),
    }
