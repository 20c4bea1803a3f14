"""The pages of personas and of scenarios: lists by status, versions, the next step, and forms that notice changes meanwhile."""

# Annotations are evaluated where they stand: they name what a router is made for.
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.documents import versioned_documents
from dtef_pipeline.api.documents.document_routes import VersionAsked, require_status
from dtef_pipeline.api.documents.versioned_documents import DocumentsOfKind, KnownDocuments, Versioned
from dtef_pipeline.api.etags import weak_etag
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.form_parts import (
    NOT_REFUSED,
    Refusal,
    SentForm,
    TypedForm,
    faults_above,
    one_of,
    refusal_of,
)
from dtef_pipeline.api.pages.layout import page, page_router, to_page
from dtef_pipeline.api.pages.page_parts import badge, box_of_table, button_form, foreign, listed, moment, row_of, sure_button
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.errors import DtefError

_CHANGED_MEANWHILE = (
    "somebody changed it after you opened this form. Your text is still below: compare it with the latest version, then send it"
)
_AFTER_RETIRING = "Evaluations that run already end as they began; a new version can be made at any time."
_AFTER_A_STEP = "moved"
"""In the address of a page that follows a step of the status."""
_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The pages of a kind of documents, and what tells them from those of another kind."""

    of: DocumentsOfKind
    fields: Sequence[str]
    """Of the form; what is wrong with them stands beside them."""
    is_whole: bool
    """Whether one field has the whole document, so that what is wrong with any part of it stands beside that field."""
    name_of: Callable[[Any], str]
    terms_of: Callable[[Any], Mapping[str, Content]]
    """What a page tells of a document in brief."""
    body_of: Callable[[Any], Content]
    """What it tells at length."""
    sent: Callable[[TypedForm, str | None], object]
    """The document that a form stands for, of this id where it has one already. Raises Problem."""
    controls: Callable[[TypedForm, Any, Refusal, Services], Content]
    """The fields with what was typed, else with what the document before it has."""

    def router(self) -> APIRouter:
        """The routes of the pages."""
        found, of = page_router(), self.of
        Id = Annotated[str, Depends(of.id_in_path)]

        @found.get(f"/{of.plural}")
        def show_list(request: Request, services: Used, held: Operating, status: str | None = None) -> Response:
            require_status(of, status, "query.status")
            return self.list_page(request, services, status, {}, NOT_REFUSED)

        @found.post(f"/{of.plural}")
        def make_document(request: Request, services: Used, held: Operating, form: SentForm) -> Response:
            return self.make(request, services, form, held.name)

        @found.get(f"/{of.plural}{of.place}")
        def show_document(request: Request, services: Used, held: Operating, one: Id, version: VersionAsked = None) -> Response:
            return self.one_page(request, services, one, version, {}, NOT_REFUSED)

        @found.post(f"/{of.plural}{of.place}")
        def change_document(request: Request, services: Used, held: Operating, one: Id, form: SentForm) -> Response:
            return self.change(request, services, one, form, held.name)

        @found.post(f"/{of.plural}{of.place}/status")
        def move_document(request: Request, services: Used, held: Operating, one: Id, form: SentForm) -> Response:
            return self.move(services, one, form, held.name)

        return found

    def list_page(
        self, request: Request, services: Services, status: str | None, form: TypedForm, refusal: Refusal
    ) -> Response:
        """The list, and the form of a new one."""
        new = self._form(f"/{self.of.plural}", None, self.controls(form, None, refusal, services), refusal)
        shown = _list_of(self.of, services, status, self.name_of)
        title = self.of.plural.capitalize()
        return page(request, title, shown, _unfolded(f"New {self.of.kind}", new, bool(form)), status=refusal.status)

    def one_page(
        self, request: Request, services: Services, document_id: str, version: int | None, form: TypedForm, refusal: Refusal
    ) -> Response:
        """One document, with the form of its next version."""
        known = KnownDocuments.now(self.of, services, document_id)
        shown, latest = known.one(document_id, version), known.one(document_id)
        number = f"{shown.version}" if shown is latest else f"{shown.version}, not the latest"
        seen = _seen_field(latest, one_of(form, "seen"), refusal)
        controls = self.controls(form, latest, refusal, services)
        body = (
            _what_was_done(request, shown),
            listed({"Status": badge(shown.status), "Version": number, **self.terms_of(shown)}),
            _steps_of(self.of, shown),
            self.body_of(shown),
            element("h2", "Versions"),
            _versions_of(self.of, known, document_id),
        )
        change = _unfolded(
            f"Make version {latest.version + 1}",
            self._form(f"/{self.of.plural}/{document_id}", seen, controls, refusal),
            bool(form),
        )
        return page(request, f"{self.of.kind.capitalize()} {document_id}", *body, change, status=refusal.status)

    def _form(self, action: str, seen: Content, controls: Content, refusal: Refusal) -> Html:
        button = element("button", f"Save as {self.of.statuses[0]}", type="submit", class_="main")
        return element("form", faults_above(refusal, self.fields), seen, controls, button, method="post", action=action)

    def make(self, request: Request, services: Services, form: TypedForm, who: str) -> Response:
        """A new document, whose page follows; or the form again with why it was not taken."""
        given: object = None
        try:
            given = self.sent(form, None)
            made = versioned_documents.make(self.of, services, given, who)
        except (Problem, DtefError) as error:
            is_there = isinstance(error, Problem) and error.status == HTTPStatus.CONFLICT
            refusal = self._there_already(given) if is_there else self._refusal(request, error)
            return self.list_page(request, services, None, form, refusal)
        return to_page(f"/{self.of.plural}/{made['id']}")

    def change(self, request: Request, services: Services, document_id: str, form: TypedForm, who: str) -> Response:
        """The next version of a document, whose page follows; or the form again with why it was not taken."""
        try:
            given = self.sent(form, document_id)
            versioned_documents.change(self.of, services, document_id, given, who, one_of(form, "seen"))
        except (Problem, DtefError) as error:
            is_changed = isinstance(error, Problem) and error.status == HTTPStatus.PRECONDITION_FAILED
            changed = Refusal(412, [BodyFault("", _CHANGED_MEANWHILE)])
            refusal = changed if is_changed else self._refusal(request, error)
            return self.one_page(request, services, document_id, None, form, refusal)
        return to_page(f"/{self.of.plural}/{document_id}")

    def _there_already(self, given: object) -> Refusal:
        known = str(given["id"]) if isinstance(given, Mapping) else ""
        there = link(f"/{self.of.plural}/{known}", f"the {self.of.kind} {known}")
        said = html("There is ", there, " already: choose another id, or make its next version on its page.")
        return Refusal(409, [BodyFault(self.fields[0], said)])

    def _refusal(self, request: Request, error: Exception) -> Refusal:
        if not self.is_whole:
            return refusal_of(request, error, self.fields)
        return refusal_of(request, error, ()).within(self.fields[0])

    def move(self, services: Services, document_id: str, form: TypedForm, who: str) -> Response:
        """A step of the status, after which the page follows. Raises Problem."""
        version = one_of(form, "version")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
        step = one_of(form, "status"), number
        try:
            versioned_documents.move(self.of, services, document_id, step, who, one_of(form, "seen"))
        except Problem as error:
            if error.status != HTTPStatus.PRECONDITION_FAILED:
                raise
            said = f"somebody changed the {self.of.kind} {document_id} after you opened its page, so that nothing was done; look at it again"
            raise Problem(412, said) from None
        return to_page(f"/{self.of.plural}/{document_id}" + (f"?version={number}&{_AFTER_A_STEP}=1" if number else ""))


def _what_was_done(request: Request, document: Versioned) -> Content:
    """After a step of the status."""
    if _AFTER_A_STEP not in request.query_params:
        return None
    return element("p", f"Version {document.version} is {document.status} now.", role="status")


def _list_of(of: DocumentsOfKind, services: Services, status: str | None, name_of: Callable[[Any], str]) -> Html:
    """The latest versions, those of a status alone where one is given; with links to the other lists."""
    known = KnownDocuments.now(of, services)
    documents, in_play = list(known.latest().values()), known.in_play()
    numbers = {one: sum(each.status == one for each in documents) for one in of.statuses}
    tabs = [_tab(f"/{of.plural}", f"all ({len(documents)})", status is None)]
    tabs += [_tab(f"/{of.plural}?status={one}", f"{one} ({n})", status == one) for one, n in numbers.items()]
    rows = [
        row_of(
            link(f"/{of.plural}/{one.id}", one.id),
            html(badge(one.status), _else_in_play(of, one, in_play[one.id])),
            one.version,
            name_of(one),
        )
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


def _else_in_play(of: DocumentsOfKind, latest: Versioned, played: Versioned) -> Content:
    """The version that evaluations take, where that is not the latest."""
    if played.version == latest.version:
        return None
    is_retired = played.status == of.statuses[-1]
    said = f"is {played.status}, and none is in play" if is_retired else f"({played.status}) is in play"
    return element("span", f"version {played.version} {said}", class_="ci wrapped")


def _tab(address: str, words: str, is_here: bool) -> Html:
    return element("li", link(address, words, aria_current="page" if is_here else None))


def _steps_of(of: DocumentsOfKind, document: Versioned) -> Html:
    """Buttons for what may follow the status of a version."""
    return element("div", [_step_button(of, document, one) for one in versioned_documents.steps_from(of, document.status)])


def _step_button(of: DocumentsOfKind, document: Versioned, status: str) -> Html:
    is_last = status == of.statuses[-1]
    words = _STEP_WORDS.get(status, status)
    sent = button_form(
        f"/{of.plural}/{document.id}/status",
        f"Yes, {words.lower()} it" if is_last else words,
        "danger" if is_last else "",
        status=status,
        version=str(document.version),
        seen=weak_etag(versioned_documents.body_of(document)),
    )
    if not is_last:
        return sent
    return sure_button(f"{words} version {document.version}", f"It cannot be taken back. {_AFTER_RETIRING}", sent)


def _versions_of(of: DocumentsOfKind, known: KnownDocuments, document_id: str) -> Html:
    """All versions of a document: who made them, and what was said of their status."""
    rows = []
    for one in reversed(known.history(document_id)):
        told = [html(f"{each.status} by ", foreign(each.who), ", ", moment(each.said_at)) for each in one.statuses]
        rows.append(
            row_of(
                link(f"/{of.plural}/{document_id}?version={one.version}", f"Version {one.version}"),
                badge(one.status),
                one.made_by or "a file",
                moment(one.made_at),
                [element("span", line, class_="said") for line in told] or "–",
            )
        )
    wrong = known.conflicts.get(document_id)
    above = element("p", wrong, class_="fault", role="alert") if wrong else ""
    columns = ("Version", "Status", "Made by", "Made at", "Said of it")
    return html(above, box_of_table("Versions, the latest first; times are UTC", columns, rows))


def _seen_field(document: Versioned, sent: str, refusal: Refusal) -> Html:
    """What the form was made of, also when it is shown again. Who was told of a change meanwhile has seen the present state."""
    is_told = refusal.status == HTTPStatus.PRECONDITION_FAILED
    now = weak_etag(versioned_documents.body_of(document))
    return element("input", type="hidden", name="seen", value=now if is_told or not sent else sent)


def _unfolded(title: str, form: Content, is_open: bool) -> Html:
    """A form that is opened by who wants it, and is open where it was refused."""
    return element("details", element("summary", element("h2", title)), form, open=is_open, class_="form")
