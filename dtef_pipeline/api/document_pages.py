"""What the pages of personas and of scenarios share: lists by status, versions, the next step, and forms that notice changes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from dtef_pipeline.api import versioned
from dtef_pipeline.api.elements import Content, Html, element, html, link
from dtef_pipeline.api.etags import weak_etag
from dtef_pipeline.api.form_parts import FormFault, Refusal, refusal_of
from dtef_pipeline.api.layout import to_page
from dtef_pipeline.api.page_parts import badge, box_of_table, button_form, moment, row_of
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import Services
from dtef_pipeline.errors import DtefError

_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


def list_of(of: versioned.DocumentsOfKind, services: Services, status: str | None, name_of: Callable[[Any], str]) -> Html:
    """The latest versions, those of a status alone where one is given; with links to the other lists."""
    documents = list(versioned.KnownDocuments.now(of, services).latest().values())
    numbers = {one: sum(each.status == one for each in documents) for one in of.statuses}
    tabs = [_tab(f"/{of.plural}", f"all ({len(documents)})", status is None)]
    tabs += [_tab(f"/{of.plural}?status={one}", f"{one} ({n})", status == one) for one, n in numbers.items()]
    rows = [
        row_of(link(f"/{of.plural}/{one.id}", one.id), badge(one.status), one.version, name_of(one))
        for one in documents
        if status in (None, one.status)
    ]
    table = box_of_table(
        f"{of.plural.capitalize()}, latest versions",
        (of.kind.capitalize(), "Status", "Version", "What it is"),
        rows,
        numbers=("Version",),
        nothing="None.",
    )
    return html(element("ul", tabs, class_="tabs"), table)


def _tab(address: str, words: str, is_here: bool) -> Html:
    return element("li", link(address, words, aria_current="page" if is_here else None))


def steps_of(of: versioned.DocumentsOfKind, document: versioned.Versioned) -> Html:
    """Buttons for what may follow the status of a version."""
    buttons = [
        button_form(
            f"/{of.plural}/{document.id}/status",
            _STEP_WORDS.get(one, one),
            "danger" if one == "retired" else "",
            status=one,
            version=str(document.version),
            seen=weak_etag(versioned.body_of(document)),
        )
        for one in versioned.steps_from(of, document.status)
    ]
    return element("div", buttons)


def versions_of(of: versioned.DocumentsOfKind, known: versioned.KnownDocuments, document_id: str) -> Html:
    """All versions of a document: who made them, and what was said of their status."""
    rows = []
    for one in reversed(known.history(document_id)):
        told = [html(f"{each.status} by {each.who}, ", moment(each.said_at)) for each in one.said]
        rows.append(
            row_of(
                link(f"/{of.plural}/{document_id}?version={one.version}", f"Version {one.version}"),
                badge(one.status),
                one.made.who if one.made else "a file",
                moment(one.made.made_at) if one.made else "–",
                [element("span", line, class_="said") for line in told] or "–",
            )
        )
    wrong = known.conflicts.get(document_id)
    above = element("p", wrong, class_="fault", role="alert") if wrong else ""
    columns = ("Version", "Status", "Made by", "Made at", "Said of it")
    return html(above, box_of_table("Versions, the latest first; times are UTC", columns, rows))


async def made(
    of: versioned.DocumentsOfKind, request: Request, services: Services, given: object, who: str, fields: Sequence[str]
) -> Refusal | Response:
    """A new document, whose page follows; or why it was not taken."""
    try:
        answer = await run_in_threadpool(versioned.make, of, services, given, who)
    except (Problem, DtefError) as error:
        return await refusal_of(request, error, fields)
    return to_page(f"/{of.plural}/{json.loads(bytes(answer.body))['id']}")


async def changed(
    of: versioned.DocumentsOfKind,
    request: Request,
    services: Services,
    document_id: str,
    given: object,
    who: str,
    seen: str,
    fields: Sequence[str],
) -> Refusal | Response:
    """The next version of a document, whose page follows; or why it was not taken. `seen`: the ETag that the form was made of."""
    try:
        await run_in_threadpool(versioned.change, of, _matching(request, seen), services, document_id, given, who)
    except (Problem, DtefError) as error:
        if isinstance(error, Problem) and error.status == HTTPStatus.PRECONDITION_FAILED:
            said = "somebody changed it after you opened this form. Your text is still below: compare it with the latest version, then send it"
            return Refusal(412, [FormFault("", said)])
        return await refusal_of(request, error, fields)
    return to_page(f"/{of.plural}/{document_id}")


def moved(
    of: versioned.DocumentsOfKind, request: Request, services: Services, document_id: str, form: Mapping[str, str], who: str
) -> Response:
    """A step of the status, after which the page follows. Raises Problem."""
    version = form.get("version", "")
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
    try:
        versioned.move(of, _matching(request, form.get("seen", "")), services, document_id, form.get("status", ""), number, who)
    except Problem as error:
        if error.status != HTTPStatus.PRECONDITION_FAILED:
            raise
        said = f"somebody changed the {of.kind} {document_id} after you opened its page, so that nothing was done; look at it again"
        raise Problem(412, said) from None
    return to_page(f"/{of.plural}/{document_id}")


def seen_field(document: versioned.Versioned, sent: str, refusal: Refusal) -> Html:
    """What the form was made of, also when it is shown again. Who was told of a change meanwhile has seen the present state."""
    is_told = refusal.status == HTTPStatus.PRECONDITION_FAILED
    now = weak_etag(versioned.body_of(document))
    return element("input", type="hidden", name="seen", value=now if is_told or not sent else sent)


def _matching(request: Request, etag: str) -> Request:
    """The request with an If-Match of the form."""
    given = etag.encode("latin-1", "replace")
    headers = [(name, value) for name, value in request.scope["headers"] if name != b"if-match"]
    return Request({**request.scope, "headers": [*headers, (b"if-match", given)]}, request.receive)


def unfolded(title: str, form: Content, is_open: bool) -> Html:
    """A form that is opened by who wants it, and is open where it was refused."""
    return element("details", element("summary", element("h2", title)), form, open=is_open, class_="form")
