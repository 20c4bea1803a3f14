"""Health of the service: as a page, as JSON for monitoring, and as a check without a token."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.pages.evaluation_text import family_title
from dtef_pipeline.api.pages.page_routes import build_page_router
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.service_health import FAILURES_OF_DAYS, HealthBody, HealthDep
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.spans import format_span
from resources.evaluations.evaluation_store import QUEUE_SENSOR

_BYTES_IN = {"GB": 10**9, "MB": 10**6, "kB": 10**3}

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
    health = await look.check()
    times = (health.daemon.last_heartbeat_at, health.daemon.last_tick_at, health.evaluations.last_event_at)
    return page(
        request,
        "health",
        "Health",
        health=health,
        ago={time: format_span(health.checked_at - time) for time in times if time},
        size=None if health.database.bytes is None else format_bytes(health.database.bytes),
        days=format_count(FAILURES_OF_DAYS, "day"),
        sensor=QUEUE_SENSOR,
        titles={failure.family: family_title(failure.family) for failure in health.evaluations.failures or ()},
    )


def format_bytes(number: int) -> str:
    """Format bytes in the largest fitting unit: `1.4 MB`."""
    unit = next((name for name, size in _BYTES_IN.items() if number >= size), None)
    return format_count(number, "byte") if unit is None else f"{number / _BYTES_IN[unit]:.1f} {unit}"
