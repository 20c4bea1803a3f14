"""The pages of personas and of scenarios: lists by status, versions, the next step, and forms that notice changes meanwhile."""

# Annotations are evaluated where they stand: they name what a router is made for.
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.api.documents.document_history import DocumentsOfKind, KnownDocuments, Versioned, build_document_body
from dtef_pipeline.api.documents.document_routes import VersionAsked, require_status
from dtef_pipeline.api.etags import compute_weak_etag
from dtef_pipeline.api.pages.forms import NOT_REFUSED, FormField, Refusal, SentForm, TypedForm, build_refusal, read_field
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import Services, Used
from dtef_pipeline.errors import DtefError

_CHANGED_MEANWHILE = (
    "somebody changed it after you opened this form. Your text is still below: compare it with the latest version, then send it"
)
_AFTER_A_STEP = "moved"
"""In the address of a page that follows a step of the status."""
_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The pages of a kind of documents, and what tells them from those of another kind."""

    of: DocumentsOfKind
    is_whole: bool
    """Whether one field has the whole document, so that what is wrong with any part of it stands beside that field."""
    name_of: Callable[[Any], str]
    values_of: Callable[[Any], Mapping[str, Any]]
    """What its page shows of a document: `terms`, and `body_title` with `body`, the text at length."""
    document: Callable[[TypedForm, str | None], object]
    """The document that a form stands for, of this id where it has one already. Raises Problem."""
    form_fields: Callable[[TypedForm, Any], Sequence[FormField]]
    """The fields with what was typed, else with what the document before it has."""
    templates: Callable[[Services], Mapping[str, Any]] = lambda _: {}
    """Documents to start from, by name."""

    def router(self) -> APIRouter:
        """The routes of the pages."""
        found, of = build_page_router(), self.of
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
        known = KnownDocuments.now(self.of, services)
        documents, in_play = list(known.latest().values()), known.current_versions()
        return page(
            request,
            "documents",
            self.of.plural.capitalize(),
            status=refusal.status,
            of=self.of,
            chosen=status,
            numbers={one: sum(each.status == one for each in documents) for one in self.of.statuses},
            documents=[(one, self.name_of(one), in_play[one.id]) for one in documents if status in (None, one.status)],
            **self._form_values(services, form, None, refusal),
        )

    def one_page(
        self, request: Request, services: Services, document_id: str, version: int | None, form: TypedForm, refusal: Refusal
    ) -> Response:
        """One document, with the form of its next version."""
        known = KnownDocuments.now(self.of, services, document_id)
        shown, latest = known.one(document_id, version), known.one(document_id)
        return page(
            request,
            "document",
            f"{self.of.kind.capitalize()} {document_id}",
            status=refusal.status,
            of=self.of,
            shown=shown,
            latest=latest,
            shown_tag=compute_weak_etag(build_document_body(shown)),
            steps=[(one, _STEP_WORDS.get(one, one)) for one in document_history.list_next_statuses(self.of, shown.status)],
            is_after_step=_AFTER_A_STEP in request.query_params,
            history=list(reversed(known.history(document_id))),
            conflict=known.conflicts.get(document_id),
            seen=_choose_etag(latest, read_field(form, "seen"), refusal),
            whole=build_document_body(shown) if self.is_whole else None,
            **self.values_of(shown),
            **self._form_values(services, form, latest, refusal),
        )

    def _form_values(self, services: Services, form: TypedForm, before: Any, refusal: Refusal) -> dict[str, Any]:
        """The form of a new document, or of the next version of the one before it."""
        examples = {} if before else self.templates(services)
        start = before or next(iter(examples.values()), None)
        return {
            "fields": self.form_fields(form, start),
            "examples": examples,
            "refusal": refusal,
            "is_open": bool(form),
        }

    def make(self, request: Request, services: Services, form: TypedForm, who: str) -> Response:
        """A new document, whose page follows; or the form again with why it was not taken."""
        given: object = None
        try:
            given = self.document(form, None)
            made = document_history.make(self.of, services, given, who)
        except (Problem, DtefError) as error:
            is_there = isinstance(error, Problem) and error.status == HTTPStatus.CONFLICT
            refusal = self._make_conflict_refusal(given) if is_there else self._refusal(request, error)
            return self.list_page(request, services, None, form, refusal)
        return redirect_to_page(f"/{self.of.plural}/{made['id']}")

    def change(self, request: Request, services: Services, document_id: str, form: TypedForm, who: str) -> Response:
        """The next version of a document, whose page follows; or the form again with why it was not taken."""
        try:
            given = self.document(form, document_id)
            document_history.change(self.of, services, document_id, given, who, read_field(form, "seen"))
        except (Problem, DtefError) as error:
            is_changed = isinstance(error, Problem) and error.status == HTTPStatus.PRECONDITION_FAILED
            changed = Refusal(412, [BodyFault("", _CHANGED_MEANWHILE)])
            refusal = changed if is_changed else self._refusal(request, error)
            return self.one_page(request, services, document_id, None, form, refusal)
        return redirect_to_page(f"/{self.of.plural}/{document_id}")

    def _make_conflict_refusal(self, given: object) -> Refusal:
        known = str(given["id"]) if isinstance(given, Mapping) else ""
        words = f"there is the {self.of.kind} {known} already: choose another id, or make its next version on its page"
        see = f"/{self.of.plural}/{known}", f"The {self.of.kind} {known}"
        return Refusal(409, [BodyFault(self._first_field, words)], see)

    @property
    def _first_field(self) -> str:
        return "manifest" if self.is_whole else "id"

    def _refusal(self, request: Request, error: Exception) -> Refusal:
        if self.is_whole:
            return build_refusal(request, error, ()).nest_under(self._first_field)
        return build_refusal(request, error, tuple(self.of.model.model_fields))

    def move(self, services: Services, document_id: str, form: TypedForm, who: str) -> Response:
        """A step of the status, after which the page follows. Raises Problem."""
        version = read_field(form, "version")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
        step = read_field(form, "status"), number
        try:
            document_history.move(self.of, services, document_id, step, who, read_field(form, "seen"))
        except Problem as error:
            if error.status != HTTPStatus.PRECONDITION_FAILED:
                raise
            what = f"somebody changed the {self.of.kind} {document_id} after you opened its page"
            raise Problem(412, f"{what}, so that nothing was done; look at it again") from None
        return redirect_to_page(f"/{self.of.plural}/{document_id}" + (f"?version={number}&{_AFTER_A_STEP}=1" if number else ""))


def _choose_etag(document: Versioned, sent: str, refusal: Refusal) -> str:
    """The ETag of the version that the form was made from, kept when the form is shown again. After a refusal because of a change in the
    meantime it is that of the present version, which the user has seen."""
    was_shown = refusal.status == HTTPStatus.PRECONDITION_FAILED
    return compute_weak_etag(build_document_body(document)) if was_shown or not sent else sent
