"""The pages of personas and of scenarios: lists by status, versions and values, and their next status, unless they were changed meanwhile."""

# Annotations are evaluated at definition, because they use variables of the enclosing function.
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.documents.document_history import (
    DocumentKind,
    KnownDocuments,
    build_document_body,
    build_etag,
    list_next_statuses,
    move,
)
from dtef_pipeline.api.documents.document_kinds import PERSONAS, SCENARIOS
from dtef_pipeline.api.documents.document_routes import VersionOption, require_status
from dtef_pipeline.api.pages.forms import SentForm, read_field
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona

_STATUS_CHANGED = "moved"
"""Part of the address of the page after a status change."""
_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


def _build_document_pages(
    spec: DocumentKind, name_of: Callable[[Any], str], values_of: Callable[[Any], Mapping[str, Any]]
) -> APIRouter:
    """Build the routes of the pages. `values_of`: returns the values on a document's page: `terms_of`, and `body_title` with `body`."""
    router = build_page_router()
    Id = Annotated[str, Depends(spec.id_in_path)]

    @router.get(f"/{spec.plural}")
    def show_list(request: Request, services: ServicesDep, holder: OperatorToken, status: str | None = None) -> Response:
        require_status(spec, status, "query.status")
        known = KnownDocuments.load_current(spec, services)
        documents, versions = list(known.latest().values()), known.current_versions()
        return page(
            request,
            "documents",
            spec.plural.capitalize(),
            spec=spec,
            chosen=status,
            numbers={label: sum(entry.status == label for entry in documents) for label in spec.statuses},
            documents=[(item, name_of(item), versions[item.id]) for item in documents if status in (None, item.status)],
        )

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
            steps=[(step, _STEP_WORDS.get(step, step)) for step in list_next_statuses(spec, document.status)],
            is_after_step=_STATUS_CHANGED in request.query_params,
            history=list(reversed(known.history(one))),
            conflict=known.conflicts.get(one),
            whole=build_document_body(document),
            **values_of(document),
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
        return redirect_to_page(f"/{spec.plural}/{one}" + (f"?version={number}&{_STATUS_CHANGED}=1" if number else ""))

    return router


def _persona_values(persona: Persona) -> dict[str, Any]:
    traits = ", ".join(f"{name}: {value}" for name, value in persona.traits.items())
    terms = {"Name": persona.display_name, "Traits": traits or "none"}
    return {"terms_of": terms, "body_title": "System prompt", "body": persona.system_prompt}


def _scenario_values(scenario: ScenarioManifest) -> dict[str, Any]:
    terms = {
        "Description": scenario.description,
        "Engine": scenario.adapter_name,
        "Seats": ", ".join(scenario.seats),
        "Opponents": ", ".join(scenario.opponents) or "none",
        "Seeds": f"{scenario.seeds.count:,} from {scenario.seeds.first:,}",
        "Turns": f"at most {scenario.turn_limit:,}",
    }
    return {"terms_of": terms, "body_title": "Rules", "body": scenario.rules}


persona_router = _build_document_pages(PERSONAS, lambda persona: persona.display_name, _persona_values)
scenario_router = _build_document_pages(SCENARIOS, lambda scenario: scenario.description, _scenario_values)
