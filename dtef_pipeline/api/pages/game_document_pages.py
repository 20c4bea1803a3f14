"""The pages of personas and of scenarios: lists by status, versions, values, and forms that detect concurrent changes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.api.documents.document_history import (
    SERVER_FIELDS,
    DocumentKind,
    KnownDocuments,
    build_document_body,
    build_etag,
)
from dtef_pipeline.api.documents.document_kinds import PERSONAS, SCENARIOS
from dtef_pipeline.api.documents.document_routes import VersionAsked, require_status
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.pages.forms import (
    NOT_REFUSED,
    FormField,
    Refusal,
    SentForm,
    TypedForm,
    build_refusal,
    read_field,
    read_json,
)
from dtef_pipeline.api.pages.page_routes import build_page_router, redirect_to_page
from dtef_pipeline.api.pages.rendering import page
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.errors import DtefError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona

# Annotations are evaluated at definition, because they use variables of the enclosing function.


_EDIT_CONFLICT = (
    "it was changed after you opened this form. Your text is kept below: compare it with the latest version and send it again"
)
_FIELD = "document"
"""The field with the whole document."""
_STATUS_CHANGED = "moved"
"""Part of the address of the page after a status change."""
_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


_EXAMPLE_PERSONA = {
    "id": "cautious-2",
    "display_name": "Cautious",
    "system_prompt": "You avoid risks.",
    "traits": {"risk": "low"},
}


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The pages of a kind of documents, with what is specific to the kind."""

    spec: DocumentKind
    hint: str
    """What to know before one writes a document."""
    name_of: Callable[[Any], str]
    values_of: Callable[[Any], Mapping[str, Any]]
    """Returns the values on a document's page: `terms_of`, and `body_title` with `body`, the full text."""
    examples: Callable[[Services], Mapping[str, Any]]
    """Returns documents to start from, by name."""

    def build_router(self) -> APIRouter:
        """Return the routes of the pages."""
        routes, spec = build_page_router(), self.spec
        Id = Annotated[str, Depends(spec.id_in_path)]

        @routes.get(f"/{spec.plural}")
        def show_list(request: Request, services: ServicesDep, holder: OperatorToken, status: str | None = None) -> Response:
            require_status(spec, status, "query.status")
            return self.list_page(request, services, status, {}, NOT_REFUSED)

        @routes.post(f"/{spec.plural}")
        def make_document(request: Request, services: ServicesDep, holder: OperatorToken, form: SentForm) -> Response:
            return self.make(request, services, form, holder.name)

        @routes.get(f"/{spec.plural}{spec.place}")
        def show_document(
            request: Request, services: ServicesDep, holder: OperatorToken, one: Id, version: VersionAsked = None
        ) -> Response:
            return self.document_page(request, services, one, version, {}, NOT_REFUSED)

        @routes.post(f"/{spec.plural}{spec.place}")
        def change_document(
            request: Request, services: ServicesDep, holder: OperatorToken, one: Id, form: SentForm
        ) -> Response:
            return self.change(request, services, one, form, holder.name)

        @routes.post(f"/{spec.plural}{spec.place}/status")
        def move_document(request: Request, services: ServicesDep, holder: OperatorToken, one: Id, form: SentForm) -> Response:
            return self.move(services, one, form, holder.name)

        return routes

    def list_page(
        self, request: Request, services: Services, status: str | None, form: TypedForm, refusal: Refusal
    ) -> Response:
        """Return the list, with the form of a new document."""
        docs = KnownDocuments.load_current(self.spec, services)
        documents, versions = list(docs.latest().values()), docs.current_versions()
        return page(
            request,
            "documents",
            self.spec.plural.capitalize(),
            status=refusal.status,
            spec=self.spec,
            chosen=status,
            numbers={label: sum(entry.status == label for entry in documents) for label in self.spec.statuses},
            documents=[(item, self.name_of(item), versions[item.id]) for item in documents if status in (None, item.status)],
            **self._form_values(services, form, None, refusal),
        )

    def document_page(
        self, request: Request, services: Services, document_id: str, version: int | None, form: TypedForm, refusal: Refusal
    ) -> Response:
        """Return the page of one document, with the form of its next version."""
        docs = KnownDocuments.load_current(self.spec, services, document_id)
        doc, latest = docs.find_version(document_id, version), docs.find_version(document_id)
        return page(
            request,
            "document",
            f"{self.spec.kind.capitalize()} {document_id}",
            status=refusal.status,
            spec=self.spec,
            shown=doc,
            latest=latest,
            shown_tag=build_etag(doc),
            steps=[(step, _STEP_WORDS.get(step, step)) for step in document_history.list_next_statuses(self.spec, doc.status)],
            is_after_step=_STATUS_CHANGED in request.query_params,
            history=list(reversed(docs.history(document_id))),
            conflict=docs.conflicts.get(document_id),
            # The version that the form was made from; after a conflict the present one, which the page shows.
            seen=(refusal.status != HTTPStatus.PRECONDITION_FAILED and read_field(form, "seen")) or build_etag(latest),
            whole=build_document_body(doc),
            **self.values_of(doc),
            **self._form_values(services, form, latest, refusal),
        )

    def _form_values(self, services: Services, form: TypedForm, before: Any, refusal: Refusal) -> dict[str, Any]:
        """Return the form of a new document, or of the next version of an existing one."""
        examples = {} if before else self.examples(services)
        start = build_document_body(before) if before else next(iter(examples.values()), {})
        fields = {field: value for field, value in start.items() if field not in SERVER_FIELDS}
        words = read_field(form, _FIELD) if form else json.dumps(fields, ensure_ascii=False, indent=2)
        hint = f"Version and status are set automatically. {self.hint}"
        return {
            "fields": [FormField(_FIELD, f"{self.spec.kind.capitalize()} (JSON)", "code", [words], hint, rows=24)],
            "examples": examples,
            "refusal": refusal,
            "is_open": bool(form),
        }

    def make(self, request: Request, services: Services, form: TypedForm, user: str) -> Response:
        """Make a new document and redirect to its page, or show the form again with its errors."""
        try:
            document = document_history.make(self.spec, services, read_json(read_field(form, _FIELD)), user)
        except (Problem, DtefError) as error:
            return self.list_page(request, services, None, form, build_refusal(request, error, ()).nest_under(_FIELD))
        return redirect_to_page(f"/{self.spec.plural}/{document['id']}")

    def change(self, request: Request, services: Services, document_id: str, form: TypedForm, user: str) -> Response:
        """Make the next version of a document and redirect to its page, or show the form again with its errors."""
        try:
            body = read_json(read_field(form, _FIELD))
            document_history.change(self.spec, services, document_id, body, user, read_field(form, "seen"))
        except (Problem, DtefError) as error:
            is_changed = isinstance(error, Problem) and error.status == HTTPStatus.PRECONDITION_FAILED
            conflict = Refusal(412, [BodyFault("", _EDIT_CONFLICT)])
            refusal = conflict if is_changed else build_refusal(request, error, ()).nest_under(_FIELD)
            return self.document_page(request, services, document_id, None, form, refusal)
        return redirect_to_page(f"/{self.spec.plural}/{document_id}")

    def move(self, services: Services, document_id: str, form: TypedForm, user: str) -> Response:
        """Change the status and redirect to the page. Raises Problem."""
        version = read_field(form, "version")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
        step = read_field(form, "status"), number
        try:
            document_history.move(self.spec, services, document_id, step, user, read_field(form, "seen"))
        except Problem as error:
            if error.status != HTTPStatus.PRECONDITION_FAILED:
                raise
            reason = f"the {self.spec.kind} {document_id} was changed after you opened its page"
            raise Problem(412, f"{reason}, so nothing was done; check it again") from None
        return redirect_to_page(
            f"/{self.spec.plural}/{document_id}" + (f"?version={number}&{_STATUS_CHANGED}=1" if number else "")
        )


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


persona_router = DocumentPages(
    PERSONAS,
    "The id has lower-case letters, digits, - and _. Reviewers do not see the display name.",
    lambda persona: persona.display_name,
    _persona_values,
    lambda _: {"persona": _EXAMPLE_PERSONA},
).build_router()
scenario_router = DocumentPages(
    SCENARIOS,
    "The id is LEAGUE/NAME: lower-case letters, digits and -.",
    lambda scenario: scenario.description,
    _scenario_values,
    lambda services: {one["adapter"]: one["manifest"] for one in scenario_templates(services.settings)},
).build_router()
