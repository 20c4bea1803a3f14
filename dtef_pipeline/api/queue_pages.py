"""The queue, and one evaluation of it: live while it runs, by events, with what a reload shows put in place of the old."""

from __future__ import annotations

import json

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.elements import Content, Html, element, html, link
from dtef_pipeline.api.layout import page, page_router, to_page
from dtef_pipeline.api.page_parts import as_lines, badge, box_of_table, button_form, folded, listed, moment, row_of
from dtef_pipeline.api.progress_of import PartProgress
from dtef_pipeline.api.queue_routes import QueueId, cancel_evaluation
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.api.shown_evaluations import (
    ShownEvaluation,
    asked_models_of,
    personas_of,
    shown_evaluations,
    subject_of,
    whole_evaluation,
)
from dtef_pipeline.text.counted import counted
from resources.evaluations import EvaluationRun

EVALUATIONS_A_PAGE = 50
_EVENTS_SHOWN = 200
_SHORT_ID = 8

router = page_router()


@router.get("/queue")
def queue_page(request: Request, services: Used, held: Operating, before: str | None = None) -> Response:
    """The evaluations, newest first."""
    found = services.evaluations.latest(EVALUATIONS_A_PAGE, before or None, runs=False)
    rows = [_row(one) for one in shown_evaluations(services.evaluations, found)]
    headings = ("Evaluation", "State", "Progress", "Family", "What", "Models", "By", "Submitted", "Last event")
    nothing = "No evaluation was asked for yet."
    older = None
    if len(found) == EVALUATIONS_A_PAGE:
        older = element("p", link(f"/queue?before={found[-1].queue_id}", "Older evaluations"))
    body = (
        element("p", link("/new", "New evaluation", class_="button")),
        _connection_note(),
        box_of_table("Evaluations, newest first; times are UTC", headings, rows, nothing=nothing),
        older,
    )
    return page(request, "Queue", *body, scripts=("live.js",))


@router.get("/queue/{queue_id}")
def evaluation_page(queue_id: QueueId, request: Request, services: Used, held: Operating) -> Response:
    """One evaluation."""
    shown = _found(services, queue_id)
    manifest = folded("Manifest", as_lines(shown.evaluation.manifest), is_open=True)
    plan = folded("The Dagster run that it comes to", as_lines(shown.evaluation.plan))
    title = f"Evaluation {queue_id[:_SHORT_ID]}"
    return page(request, title, _connection_note(), _live_part(shown), manifest, plan, scripts=("live.js",))


@router.get("/queue/{queue_id}/row")
def queue_row(queue_id: QueueId, services: Used, held: Operating) -> Response:
    """The row of the queue as it is now, for the script of the page."""
    return _fragment(element("table", _row(_found(services, queue_id))))


@router.get("/queue/{queue_id}/now")
def evaluation_now(queue_id: QueueId, services: Used, held: Operating) -> Response:
    """What changes on the page of an evaluation, as it is now."""
    return _fragment(_live_part(_found(services, queue_id)))


@router.post("/queue/{queue_id}/cancel")
def cancel(request: Request, queue_id: QueueId, services: Used, held: Operating) -> Response:
    """Asks for the end of an evaluation."""
    cancel_evaluation(held, request, queue_id, services)
    return to_page(f"/queue/{queue_id}")


def _found(services: Services, queue_id: str) -> ShownEvaluation:
    return whole_evaluation(services.evaluations, queue_id)


def _fragment(markup: Html) -> HTMLResponse:
    return HTMLResponse(markup, headers={"Cache-Control": "no-store"})


def _connection_note() -> Html:
    return element("p", "connection lost, retrying", class_="lost", id="lost", role="status", hidden=True)


def _followed(shown: ShownEvaluation, place: str) -> dict[str, str | None]:
    """Attributes by which the script follows an evaluation that has not ended."""
    queue_id = shown.evaluation.queue_id
    return {
        "id": f"evaluation-{queue_id}",
        "data_now": f"/queue/{queue_id}/{place}",
        "data_events": None if shown.is_over else f"/api/evaluations/queue/{queue_id}/events",
    }


def _row(shown: ShownEvaluation) -> Html:
    one = shown.evaluation
    name = link(f"/queue/{one.queue_id}", element("code", one.queue_id[:_SHORT_ID]))
    asked: Content = subject_of(one)
    if personas := personas_of(one):
        asked = html(asked, element("span", f"as {personas}", class_="ci wrapped"))
    state = html(
        badge(shown.state), element("span", shown.progress.reason, class_="ci wrapped") if shown.progress.reason else None
    )
    cells = (state, _progress(shown), one.family, asked, asked_models_of(one), one.submitted_by)
    return row_of(name, *cells, moment(one.submitted_at), moment(shown.last_at), **_followed(shown, "row"))


def _progress(shown: ShownEvaluation) -> Content:
    told = shown.progress
    if not told.of or (shown.is_over and not told.done):
        return "–"
    notes = [f"{told.done:,} of {told.of:,}"]
    if not shown.is_over and told.stage:
        notes.append(told.stage)
    if not shown.is_over and told.asked and told.answered is not None:
        notes.append(f"{told.answered:,} of {counted(told.asked, 'call')}")
    if told.failed:
        notes.append(f"{told.failed:,} failed")
    bar = element("progress", notes[0], value=told.done, max=told.of, aria_label="parts done")
    return html(bar, element("span", "; ".join(notes), class_="ci"))


def _live_part(shown: ShownEvaluation) -> Html:
    one = shown.evaluation
    terms: dict[str, Content] = {
        "State": html(badge(shown.state), f" {shown.progress.reason}" if shown.progress.reason else None),
        "Progress": _progress(shown),
        "Family": one.family,
        "Submitted": html(moment(one.submitted_at), f" UTC by {one.submitted_by}"),
        "Started": html(moment(shown.progress.started_at), " UTC") if shown.progress.started_at else "not yet",
        "Last event": html(moment(shown.last_at), " UTC"),
        "Snapshot": str(one.plan.get("snapshot", "–")),
        "Queue id": element("code", one.queue_id),
    }
    is_stoppable = not shown.is_over and shown.state != "cancelling"
    stop = button_form(f"/queue/{one.queue_id}/cancel", "Cancel this evaluation", "danger") if is_stoppable else None
    rows = [_run_row(run, shown.progress.runs[run.run_id]) for run in one.runs]
    runs = box_of_table(f"{counted(len(one.runs), 'run')}", ("Run", "State", "Partition", "Asked", "Results"), rows)
    return element(
        "div",
        listed(terms),
        stop,
        element("h2", "Runs"),
        runs,
        element("h2", "Events"),
        _event_table(shown),
        **_followed(shown, "now"),
    )


def _run_row(run: EvaluationRun, part: PartProgress) -> Html:
    asked = ", ".join(f"{name}: {value}" for name, value in run.asks.items())
    results = html(link(f"/runs/{run.run_id}", "Results"), " ", link(f"/api/evaluations/{run.run_id}", "JSON"))
    state = html(badge(part.status), element("span", part.reason, class_="ci wrapped") if part.reason else None)
    return row_of(element("code", run.run_id[:_SHORT_ID]), state, run.key, asked or "–", results)


def _event_table(shown: ShownEvaluation) -> Html:
    latest = list(reversed(shown.events))[:_EVENTS_SHOWN]
    rows = [
        row_of(
            f"{one.seq:,}", badge(one.kind), moment(one.happened_at), element("code", json.dumps(one.data, ensure_ascii=False))
        )
        for one in latest
    ]
    caption = f"{counted(len(shown.events), 'event')}, the last first; times are UTC"
    if len(shown.events) > _EVENTS_SHOWN:
        caption += f"; the last {_EVENTS_SHOWN} are shown"
    history = link(f"/api/evaluations/queue/{shown.evaluation.queue_id}/events/history", "All events as JSON")
    return html(box_of_table(caption, ("Number", "Event", "At", "Data"), rows), element("p", history))
