"""Whether the service does its work: as a page, as JSON for those who watch it, and for nobody in particular."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.answer_schemas import in_json
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.layout import page, page_router
from dtef_pipeline.api.pages.page_parts import TableRow, badge, box_of_table, listed, moment, row_of, with_code
from dtef_pipeline.api.service_health import FAILURES_OF_DAYS, FailedLately, HealthBody, LookedAt
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.spans import span_in_words
from resources.evaluations.evaluation_store import QUEUE_SENSOR

_BYTES_IN = {"GB": 10**9, "MB": 10**6, "kB": 10**3}

router = APIRouter()
pages_of_health = page_router()


@router.get("/healthz", include_in_schema=False)
async def alive() -> dict[str, str]:
    """That the process answers, for who holds no token."""
    return {"status": "ok"}


@router.get("/api/health", response_model=HealthBody)
async def health_as_json(look: LookedAt, held: Operating) -> JSONResponse:
    """What works and what does not: database, daemon, open and failed evaluations."""
    return JSONResponse(in_json((await look.now()).model_dump()), headers={"Cache-Control": "no-store"})


@pages_of_health.get("/health")
async def health_page(request: Request, look: LookedAt, held: Operating) -> Response:
    """The same for people."""
    found = await look.now()
    if found.problems:
        told = element(
            "ul", [element("li", with_code(one), class_="fault") for one in found.problems], class_="problems", role="alert"
        )
    else:
        told = element("p", badge("ok"), " The database answers, and evaluations are taken up.")
    failed = [_failure(one) for one in found.evaluations.failures]
    caption = f"Evaluations that failed in the last {counted(FAILURES_OF_DAYS, 'day')}, the last first; times are UTC"
    headings = ("Evaluation", "Failed at", "Family", "What", "Reason")
    failures = box_of_table(
        caption, headings, failed, nothing=f"No evaluation failed in the last {counted(FAILURES_OF_DAYS, 'day')}."
    )
    return page(request, "Health", told, listed(_terms(found)), element("h2", "Failures"), failures)


def _terms(found: HealthBody) -> dict[str, Content]:
    daemon, evaluations, size = found.daemon, found.evaluations, found.database.bytes
    last_beat = (
        html(", last heard of ", _ago(found, daemon.last_heartbeat_at)) if daemon.last_heartbeat_at else ", never heard of"
    )
    last_tick = html(", last tick ", _ago(found, daemon.last_tick_at)) if daemon.last_tick_at else ", no tick yet"
    votes = "–" if found.votes.number is None else counted(found.votes.number, "vote")
    return {
        "Database": badge("ok" if found.database.answers else "down"),
        "Size of the store": "–" if size is None else bytes_in_words(size),
        "Open evaluations": link("/queue", "–" if evaluations.open is None else f"{evaluations.open:,}"),
        "Last event": _ago(found, evaluations.last_event_at) if evaluations.last_event_at else "none yet",
        "Dagster's daemon": html(badge("running" if daemon.running else "down"), last_beat),
        f"Sensor {QUEUE_SENSOR}": html(badge("on" if daemon.sensor_on else "off"), last_tick),
        f"Votes of the last {counted(FAILURES_OF_DAYS, 'day')}": link("/votes", votes),
        "Looked at": html(moment(found.at), " UTC"),
    }


def _ago(found: HealthBody, time: datetime) -> Html:
    return html(f"{span_in_words(found.at - time)} ago (", moment(time), " UTC)")


def _failure(one: FailedLately) -> TableRow:
    name = link(f"/queue/{one.queue_id}", element("code", one.queue_id[:8]))
    return row_of(name, moment(one.failed_at), one.family, one.subject, one.reason or "–")


def bytes_in_words(number: int) -> str:
    """`1.4 MB`, in the greatest unit that is in it."""
    unit = next((name for name, size in _BYTES_IN.items() if number >= size), None)
    return counted(number, "byte") if unit is None else f"{number / _BYTES_IN[unit]:.1f} {unit}"
