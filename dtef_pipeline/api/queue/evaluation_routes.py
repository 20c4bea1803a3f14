"""Evaluations are asked for here; Dagster carries them out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName
from dtef_pipeline.api.plans.manifests import read_manifest, use_manifest_schema
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem, make_fault_problem
from dtef_pipeline.api.queue.evaluation_progress import ProgressStatus, compute_progress
from dtef_pipeline.api.queue.queue_bodies import QueuedRun
from dtef_pipeline.api.queue.queue_routes import QUEUE_PATH
from dtef_pipeline.api.services import Used
from dtef_pipeline.text.quantity_words import format_count
from resources.evaluations.evaluation_counts import count_unended
from resources.evaluations.evaluation_store import Evaluation, EvaluationStore

router = APIRouter()
MOST_UNENDED = 100
"""Evaluations of one token that wait or run at the same time."""
_IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="Sent again with the same manifest, it gives the ids of the first time.",
    ),
]


_Manifest = Annotated[dict[str, Any], Field(json_schema_extra=use_manifest_schema)]
_TAKEN = {
    "description": "Stored: Dagster will run it.",
    "headers": {"Location": {"schema": {"type": "string"}, "description": "Where to follow it."}},
}


async def _refuse_two_keys(request: Request) -> None:
    if len(set(request.headers.getlist("idempotency-key"))) > 1:
        raise make_fault_problem([BodyFault("header.Idempotency-Key", "got more than one; allowed: one")])


class QueuedEvaluation(AnswerBody):
    """What was asked for, and where to follow it."""

    queue_id: str
    run_ids: list[str]
    """Those of `runs`, in their order."""
    status: ProgressStatus
    events: str
    """The path of its events."""
    family: FamilyName
    runs: list[QueuedRun]
    warnings: list[str]
    """Sampling settings that providers are not sent as they were asked for."""


@router.post(
    "/api/evaluations",
    status_code=202,
    response_model=QueuedEvaluation,
    responses={202: _TAKEN},
    dependencies=[Depends(_refuse_two_keys)],
)
def post_evaluation(
    services: Used,
    holder: Operating,
    values: Annotated[_Manifest, Body()],
    idempotency_key: _IdempotencyKey = None,
) -> JSONResponse:
    """Submit a manifest. It is checked now and run by Dagster: follow it at the path in Location."""
    form, store = read_manifest(values, services.settings), services.evaluations
    entry = None if idempotency_key is None else store.find_submitted(form.family, form.values, holder.name, idempotency_key)
    is_new = False
    if entry is None:
        _refuse_more_than_wait(store, holder.name)
        plan = form.planned(services.settings)
        entry, is_new = store.submit(form.family, form.values, plan.build_plan_json(), plan.asked, holder.name, idempotency_key)
    body = _build_queued_body(entry, "queued" if is_new else compute_progress(entry, store.events(entry.queue_id)).status)
    return JSONResponse(body, 202, {"Location": f"{QUEUE_PATH}/{entry.queue_id}", "Cache-Control": "no-store"})


def _refuse_more_than_wait(store: EvaluationStore, who: str) -> None:
    if (n_open := count_unended(store, who)) >= MOST_UNENDED:
        verbs = "waits or runs" if n_open == 1 else "wait or run"
        message = f"{format_count(n_open, 'evaluation')} of {who} {verbs}; allowed: {MOST_UNENDED}"
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
