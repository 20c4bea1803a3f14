"""The pages of personas and of scenarios: lists by status, versions and values, and their next status, unless they were changed meanwhile."""

# Annotations are evaluated at definition, because they use variables of the enclosing function.
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.documents.document_history import (
    PERSONAS,
    SCENARIOS,
    DocumentKind,
    KnownDocuments,
    build_document_body,
    build_etag,
    list_next_statuses,
    move,
)
from dtef_pipeline.api.documents.document_routes import VersionOption, require_status
from dtef_pipeline.api.pages.forms import SentForm, read_field
from dtef_pipeline.api.pages.page_routes import build_page_router, page, redirect_to_page
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import ServicesDep


def _build_document_pages(spec: DocumentKind) -> APIRouter:
    router = build_page_router()
    Id = Annotated[str, Depends(spec.id_in_path)]

    @router.get(f"/{spec.plural}")
    def show_list(request: Request, services: ServicesDep, holder: OperatorToken, status: str | None = None) -> Response:
        require_status(spec, status, "query.status")
        known = KnownDocuments.load_current(spec, services)
        documents = list(known.latest().values())
        numbers = {label: sum(entry.status == label for entry in documents) for label in spec.statuses}
        shown = [entry for entry in documents if status in (None, entry.status)]
        values: dict[str, Any] = {"chosen": status, "numbers": numbers, "documents": shown, "in_use": known.current_versions()}
        return page(request, "documents", spec.plural.capitalize(), spec=spec, **values)

    @router.get(f"/{spec.plural}{spec.place}")
    def show_document(
        request: Request, services: ServicesDep, holder: OperatorToken, one: Id, version: VersionOption = None
    ) -> Response:
        known = KnownDocuments.load_current(spec, services, one)
        document = known.find_version(one, version)
        return page(
            request,
            "document",
            f"{spec.kind.capitalize()} {one}",
            spec=spec,
            shown=document,
            latest=known.find_version(one),
            shown_tag=build_etag(document),
            steps=list_next_statuses(spec, document.status),
            is_after_step="moved" in request.query_params,
            history=list(reversed(known.history(one))),
            conflict=known.conflicts.get(one),
            whole=build_document_body(document),
        )

    @router.post(f"/{spec.plural}{spec.place}/status")
    def change_status(services: ServicesDep, holder: OperatorToken, one: Id, form: SentForm) -> Response:
        version = read_field(form, "version")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
        try:
            move(spec, services, one, (read_field(form, "status"), number), holder.name, read_field(form, "seen"))
        except Problem as error:
            if error.status != HTTPStatus.PRECONDITION_FAILED:
                raise
            reason = f"the {spec.kind} {one} was changed after you opened its page"
            raise Problem(412, f"{reason}, so nothing was done; check it again") from None
        return redirect_to_page(f"/{spec.plural}/{one}" + (f"?version={number}&moved=1" if number else ""))

    return router


persona_router, scenario_router = _build_document_pages(PERSONAS), _build_document_pages(SCENARIOS)
