"""Health of the service: as a page, as JSON for monitoring, and as a check without a token."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.service_health import FAILURES_OF_DAYS, HealthBody, HealthDep
from resources.evaluations.evaluation_store import QUEUE_SENSOR

router = APIRouter()
pages_of_health = build_page_router()


@router.get("/healthz", include_in_schema=False)
async def alive() -> dict[str, str]:
    """Check that the process responds; requires no token."""
    return {"status": "ok"}


@router.get("/api/health", response_model=HealthBody)
async def health_as_json(look: HealthDep, holder: OperatorToken) -> JSONResponse:
    """Health of the service: database, daemon, open and failed evaluations."""
    return JSONResponse(convert_to_json((await look.check()).model_dump()), headers={"Cache-Control": "no-store"})


@pages_of_health.get("/health")
async def health_page(request: Request, look: HealthDep, holder: OperatorToken) -> Response:
    """The health page for people."""
    return page(request, "health", "Health", health=await look.check(), days=FAILURES_OF_DAYS, sensor=QUEUE_SENSOR)
