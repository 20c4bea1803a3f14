"""The queue, and one evaluation of it: live while it runs, by events, with what a reload shows put in place of the old."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.etags import tagged_answer, weak_etag
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.layout import login_path, page, page_router, to_page
from dtef_pipeline.api.pages.page_parts import (
    TableRow,
    as_lines,
    asked_in_words,
    badge,
    box_of_table,
    brief,
    button_form,
    cost_in_words,
    folded,
    foreign,
    listed,
    long_text,
    moment,
    row_of,
    sure_button,
    with_code,
)
from dtef_pipeline.api.queue.evaluation_progress import PartProgress
from dtef_pipeline.api.queue.queue_routes import QueueId, cancel_evaluation
from dtef_pipeline.api.queue.shown_evaluations import (
    ShownEvaluation,
    asked_models_of,
    personas_of,
    shown_evaluations,
    subject_of,
    whole_evaluation,
)
from dtef_pipeline.api.service_health import HealthLook, LookedAt
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.text.counted import and_more, counted
from resources.evaluations.evaluation_store import EvaluationRun

EVALUATIONS_A_PAGE = 50
_EVENTS_SHOWN = 200
_SHORT_ID = 8
_KEYS_NAMED = 3
_QUEUE_HEADINGS = ("Evaluation", "State", "Progress", "Family", "What", "Models", "By", "Submitted", "Last event")

router = page_router()


@router.get("/queue")
def queue_page(request: Request, services: Used, look: LookedAt, held: Operating, before: str | None = None) -> Response:
    """The evaluations, newest first."""
    new = element("p", link("/new", "New evaluation", class_="button"))
    return page(request, "Queue", new, _connection_notes(request), _live_list(services, look, before), scripts=("live.js",))


@router.get("/queue/now")
def queue_now(request: Request, services: Used, look: LookedAt, held: Operating, before: str | None = None) -> Response:
    """What changes on the page of the queue, as it is now."""
    return _fragment(request, _live_list(services, look, before))


@router.get("/queue/{queue_id}")
def evaluation_page(queue_id: QueueId, request: Request, services: Used, look: LookedAt, held: Operating) -> Response:
    """One evaluation."""
    shown = _found(services, queue_id)
    manifest = folded("Manifest", as_lines(shown.evaluation.manifest), is_open=True)
    plan = folded("The Dagster run that it comes to", as_lines(shown.evaluation.plan))
    title = f"Evaluation {queue_id[:_SHORT_ID]}"
    return page(request, title, _connection_notes(request), _live_part(shown, look), manifest, plan, scripts=("live.js",))


@router.get("/queue/{queue_id}/now")
def evaluation_now(request: Request, queue_id: QueueId, services: Used, look: LookedAt, held: Operating) -> Response:
    """What changes on the page of an evaluation, as it is now."""
    return _fragment(request, _live_part(_found(services, queue_id), look))


@router.post("/queue/{queue_id}/cancel")
def cancel(request: Request, queue_id: QueueId, services: Used, held: Operating) -> Response:
    """Asks for the end of an evaluation."""
    cancel_evaluation(held, request, queue_id, services)
    return to_page(f"/queue/{queue_id}")


def _found(services: Services, queue_id: str) -> ShownEvaluation:
    return whole_evaluation(services.evaluations, queue_id)


def _fragment(request: Request, markup: Html) -> Response:
    """A part of a page, or 304 where the script has it already."""
    return tagged_answer(request, HTMLResponse(markup), weak_etag(markup))


def _connection_notes(request: Request) -> Html:
    """What the script says while the page is not kept as a reload would show it."""
    login = link(login_path(request), "Log in")
    words = ("You are logged out, so that this page stands still. ", login, ", or do so in another tab: then it goes on.")
    return html(
        element("p", "connection lost, retrying", class_="lost", id="lost", role="status", hidden=True),
        element("p", *words, class_="lost", id="logged-out", role="status", hidden=True),
    )


def _events_of(shown: ShownEvaluation) -> str | None:
    """The address of its stream, for the script; none after its end."""
    return None if shown.is_over else f"/api/evaluations/queue/{shown.evaluation.queue_id}/events"


def _live_list(services: Services, look: HealthLook, before: str | None) -> Html:
    """The evaluations of one page of the queue."""
    found = services.evaluations.latest(EVALUATIONS_A_PAGE, before or None)
    shown = shown_evaluations(services.evaluations, found)
    rows = [_row(one) for one in shown]
    table = box_of_table(
        "Evaluations, newest first; times are UTC", _QUEUE_HEADINGS, rows, nothing="No evaluation was asked for yet."
    )
    older = None
    if len(found) == EVALUATIONS_A_PAGE:
        older = element("p", link(f"/queue?before={found[-1].queue_id}", "Older evaluations"))
    now = f"/queue/now?before={before}" if before else "/queue/now"
    return element("div", _why_they_wait(shown, look), table, older, id="live", data_now=now)


def _row(shown: ShownEvaluation) -> TableRow:
    one = shown.evaluation
    name = link(f"/queue/{one.queue_id}", element("code", one.queue_id[:_SHORT_ID]))
    asked: Content = brief(subject_of(one))
    if personas := personas_of(one):
        asked = html(asked, element("span", "as ", brief(personas), class_="ci wrapped"))
    state = html(_badge_of(shown), [brief(said, class_="ci wrapped") for said in _words_of_state(shown)])
    calls = shown.progress.calls
    far = _progress(shown) if not shown.is_over else _calls(calls) if calls else "–"
    cells = (state, far, one.family, asked, asked_models_of(one), one.submitted_by)
    return row_of(
        name,
        *cells,
        moment(one.submitted_at),
        moment(shown.last_at),
        id=f"evaluation-{one.queue_id}",
        data_events=_events_of(shown),
        data_state=shown.state,
    )


def _badge_of(shown: ShownEvaluation) -> Html:
    """The state; green only where nothing was left unanswered."""
    return badge(shown.state, "partly" if shown.is_over and shown.progress.warning else None)


def _words_of_state(shown: ShownEvaluation) -> list[str]:
    """What there is to say beside the state."""
    told = shown.progress
    said = [words for words in (told.reason, told.warning) if words]
    if shown.before is not None and shown.state == "queued":
        place = f"{counted(shown.before, 'evaluation')} before it" if shown.before else "the next to start"
        said.append(place)
    return said


def _progress(shown: ShownEvaluation) -> Content:
    told = shown.progress.steps
    if not told.of or (shown.is_over and not told.done):
        return "–"
    notes = [f"{told.done:,} of {counted(told.of, 'part')} done"]
    if told.failed:
        notes.append(f"{told.failed:,} failed")
    if not shown.is_over and told.stage:
        notes.append(f"stage {told.stage}")
    if not shown.is_over and told.asked and told.answered is not None:
        notes.append(f"{told.answered:,} of {counted(told.asked, 'call')} answered")
    # The stage that asks moves with its calls: the others are quick.
    share = told.answered / told.asked if not shown.is_over and told.asked and told.answered is not None else 0.0
    far = f"{min(told.done + share, told.of):.4g}"
    bar = element("progress", notes[0], value=far, max=told.of, aria_label="parts done")
    return html(bar, element("span", "; ".join(notes), class_="ci"))


def _calls(calls: Mapping[str, Any]) -> str:
    """`21 of 24 calls answered, 2 failed, 1 left out`."""
    others = [f"{calls[name]:,} {words}" for name, words in (("failed", "failed"), ("skipped", "left out")) if calls[name]]
    return ", ".join([f"{calls['answered']:,} of {counted(calls['asked'], 'call')} answered", *others])


def _calls_by_stage(calls: Mapping[str, Any] | None) -> Content:
    if not calls:
        return "–"
    stages = calls.get("stages") or {}
    if len(stages) < 2:
        return _calls(calls)
    parts = [element("span", f"{stage}: {_calls(one)}", class_="ci wrapped") for stage, one in stages.items()]
    return html(_calls(calls), parts)


def _live_part(shown: ShownEvaluation, look: HealthLook) -> Html:
    one = shown.evaluation
    words = "; ".join(_words_of_state(shown))
    restarts = shown.progress.restarts
    terms: dict[str, Content] = {
        "State": html(_badge_of(shown), " ", long_text(words)),
        "Progress": _progress(shown),
        "Calls": _calls_by_stage(shown.progress.calls),
        "Bought": cost_in_words(shown.progress.bought) if shown.progress.bought else "–",
        "Family": one.family,
        "Submitted": html(moment(one.submitted_at), " UTC by ", foreign(one.submitted_by)),
        "Started": html(moment(shown.progress.started_at), " UTC") if shown.progress.started_at else "not yet",
        "Started again": f"{counted(restarts, 'time')}; the events say why" if restarts else "never",
        "Last event": html(moment(shown.last_at), " UTC"),
        "Snapshot": str(one.plan.get("snapshot", "–")),
        "Queue id": element("code", one.queue_id),
    }
    rows = [_run_row(run, shown.progress.runs[run.run_id]) for run in one.runs]
    runs = box_of_table(f"{counted(len(one.runs), 'run')}", ("Run", "State", "Partition", "Asked", "Results"), rows)
    return element(
        "div",
        listed(terms),
        _why_they_wait([shown], look) or _who_starts_it(shown),
        _cancelling(shown),
        _failures(shown),
        element("h2", "Runs"),
        runs,
        element("h2", "Events"),
        _event_table(shown),
        id="live",
        data_now=None if shown.is_over else f"/queue/{one.queue_id}/now",
        data_events=_events_of(shown),
        data_state=shown.state,
    )


def _why_they_wait(shown: Sequence[ShownEvaluation], look: HealthLook) -> Content:
    """Why those that are queued do not start; nothing where none is, or nothing is known to be in the way."""
    if all(one.progress.status != "queued" for one in shown) or (why := look.why_none_starts()) is None:
        return None
    return element("p", with_code(why), ". ", link("/health", "Health"), " says more.", class_="fault", role="status")


def _who_starts_it(shown: ShownEvaluation) -> Content:
    if shown.state != "queued":
        return None
    words = (
        "Dagster's daemon starts it, usually within half a minute. If nothing happens, look at ",
        link("/health", "Health"),
        ".",
    )
    return element("p", *words, class_="how")


def _cancelling(shown: ShownEvaluation) -> Content:
    """The wish for its end, which is sent by a second press alone; or what became of the wish."""
    if shown.is_over:
        return None
    if shown.cancelled_by is not None:
        so_far = ". Calls that are under way end first." if shown.progress.started_at else ", before it had started."
        return element("p", "Its end was asked for by ", foreign(shown.cancelled_by), so_far, class_="how")
    sent = button_form(f"/queue/{shown.evaluation.queue_id}/cancel", "Yes, cancel it", "danger")
    sure = "It cannot be taken up again. What it has made so far stays, and is not paid for twice."
    return sure_button("Cancel this evaluation", sure, sent, id="cancel")


def _failures(shown: ShownEvaluation) -> Content:
    """Why runs failed, each reason once with the partitions that it holds for."""
    keys: dict[str, list[str]] = {}
    for run in shown.evaluation.runs:
        part = shown.progress.runs[run.run_id]
        if part.status == "failed":
            keys.setdefault(part.reason or "no reason was told", []).append(run.key)
    if not keys:
        return None
    rows = [row_of(brief(and_more(list(dict.fromkeys(of)), _KEYS_NAMED)), long_text(why)) for why, of in keys.items()]
    return html(
        element("h2", "What failed"),
        box_of_table(f"{counted(sum(map(len, keys.values())), 'run')} failed", ("Partition", "Reason"), rows),
    )


def _run_row(run: EvaluationRun, part: PartProgress) -> TableRow:
    results = html(link(f"/runs/{run.run_id}", "Results"), " ", link(f"/api/evaluations/{run.run_id}", "JSON"))
    state = html(badge(part.status), brief(part.reason, class_="ci wrapped"))
    return row_of(element("code", run.run_id[:_SHORT_ID]), state, run.key, asked_in_words(run.asks), results)


def _event_table(shown: ShownEvaluation) -> Html:
    latest = list(reversed(shown.events))[:_EVENTS_SHOWN]
    rows = [
        row_of(
            f"{one.seq:,}",
            badge(one.kind),
            moment(one.happened_at),
            element("code", long_text(json.dumps(one.data, ensure_ascii=False))),
        )
        for one in latest
    ]
    caption = f"{counted(len(shown.events), 'event')}, the last first; times are UTC"
    if len(shown.events) > _EVENTS_SHOWN:
        caption += f"; the last {_EVENTS_SHOWN} are shown"
    history = link(f"/api/evaluations/queue/{shown.evaluation.queue_id}/events/history", "All events as JSON")
    return html(box_of_table(caption, ("Number", "Event", "At", "Data"), rows), element("p", history))
