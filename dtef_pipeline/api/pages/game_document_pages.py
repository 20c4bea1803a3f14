"""The pages of personas and of scenarios: lists by status, versions, values, and forms that detect concurrent changes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ValidationError

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.documents import document_history
from dtef_pipeline.api.documents.document_history import (
    SERVER_FIELDS,
    DocumentKind,
    GameDocument,
    KnownDocuments,
    build_document_body,
)
from dtef_pipeline.api.documents.document_kinds import PERSONAS, SCENARIOS, find_name_faults
from dtef_pipeline.api.documents.document_routes import VersionAsked, require_status
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.etags import compute_weak_etag
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
from dtef_pipeline.api.problems import Problem, convert_faults, make_fault_problem
from dtef_pipeline.api.services import Services, ServicesDep
from dtef_pipeline.documents import reasons
from dtef_pipeline.errors import DtefError
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona

# Annotations are evaluated at definition, because they use variables of the enclosing function.


_EDIT_CONFLICT = (
    "it was changed after you opened this form. Your text is kept below: compare it with the latest version and send it again"
)
_STATUS_CHANGED = "moved"
"""Part of the address of the page after a status change."""
_STEP_WORDS = {"approved": "Approve", "production": "Promote to production", "retired": "Retire"}


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The pages of a kind of documents, with what is specific to the kind."""

    spec: DocumentKind
    is_whole: bool
    """Whether one field has the whole document, so that all errors are shown next to it."""
    name_of: Callable[[Any], str]
    values_of: Callable[[Any], Mapping[str, Any]]
    """Returns the values on a document's page: `terms`, and `body_title` with `body`, the full text."""
    document: Callable[[TypedForm, str | None], object]
    """Parses a form to a document, with this id if it exists already. Raises Problem."""
    form_fields: Callable[[TypedForm, Any], Sequence[FormField]]
    """Returns the fields with the typed values, else those of the previous version."""
    templates: Callable[[Services], Mapping[str, Any]] = lambda _: {}
    """Template documents, by name."""

    def router(self) -> APIRouter:
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
            shown_tag=compute_weak_etag(build_document_body(doc)),
            steps=[(step, _STEP_WORDS.get(step, step)) for step in document_history.list_next_statuses(self.spec, doc.status)],
            is_after_step=_STATUS_CHANGED in request.query_params,
            history=list(reversed(docs.history(document_id))),
            conflict=docs.conflicts.get(document_id),
            seen=_choose_etag(latest, read_field(form, "seen"), refusal),
            whole=build_document_body(doc) if self.is_whole else None,
            **self.values_of(doc),
            **self._form_values(services, form, latest, refusal),
        )

    def _form_values(self, services: Services, form: TypedForm, before: Any, refusal: Refusal) -> dict[str, Any]:
        """Return the form of a new document, or of the next version of an existing one."""
        examples = {} if before else self.templates(services)
        start = before or next(iter(examples.values()), None)
        return {
            "fields": self.form_fields(form, start),
            "examples": examples,
            "refusal": refusal,
            "is_open": bool(form),
        }

    def make(self, request: Request, services: Services, form: TypedForm, user: str) -> Response:
        """Make a new document and redirect to its page, or show the form again with its errors."""
        body: object = None
        try:
            body = self.document(form, None)
            document = document_history.make(self.spec, services, body, user)
        except (Problem, DtefError) as error:
            is_conflict = isinstance(error, Problem) and error.status == HTTPStatus.CONFLICT
            refusal = self._make_conflict_refusal(body) if is_conflict else self._refusal(request, error)
            return self.list_page(request, services, None, form, refusal)
        return redirect_to_page(f"/{self.spec.plural}/{document['id']}")

    def change(self, request: Request, services: Services, document_id: str, form: TypedForm, user: str) -> Response:
        """Make the next version of a document and redirect to its page, or show the form again with its errors."""
        try:
            body = self.document(form, document_id)
            document_history.change(self.spec, services, document_id, body, user, read_field(form, "seen"))
        except (Problem, DtefError) as error:
            is_changed = isinstance(error, Problem) and error.status == HTTPStatus.PRECONDITION_FAILED
            conflict = Refusal(412, [BodyFault("", _EDIT_CONFLICT)])
            refusal = conflict if is_changed else self._refusal(request, error)
            return self.document_page(request, services, document_id, None, form, refusal)
        return redirect_to_page(f"/{self.spec.plural}/{document_id}")

    def _make_conflict_refusal(self, body: object) -> Refusal:
        document_id = str(body["id"]) if isinstance(body, Mapping) else ""
        words = f"the {self.spec.kind} {document_id} already exists: choose another id, or make its next version on its page"
        see = f"/{self.spec.plural}/{document_id}", f"The {self.spec.kind} {document_id}"
        return Refusal(409, [BodyFault(self._first_field, words)], see)

    @property
    def _first_field(self) -> str:
        return "manifest" if self.is_whole else "id"

    def _refusal(self, request: Request, error: Exception) -> Refusal:
        if self.is_whole:
            return build_refusal(request, error, ()).nest_under(self._first_field)
        return build_refusal(request, error, tuple(self.spec.model.model_fields))

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


def _choose_etag(document: GameDocument, etag: str, refusal: Refusal) -> str:
    """Return the ETag of the version that the form was made from, which is kept when the form is shown again. After a conflict it is that
    of the present version, which the user has seen."""
    was_shown = refusal.status == HTTPStatus.PRECONDITION_FAILED
    return compute_weak_etag(build_document_body(document)) if was_shown or not etag else etag


_LINE_CHARACTERS = 80


def _persona_values(persona: Persona) -> dict[str, Any]:
    traits = ", ".join(f"{name}: {value}" for name, value in persona.traits.items())
    terms = {"Name": persona.display_name, "Traits": traits or "none"}
    return {"terms_of": terms, "body_title": "System prompt", "body": persona.system_prompt}


def _build_persona_fields(form: TypedForm, before: Persona | None) -> list[FormField]:
    usual = {"system_prompt": before.system_prompt, "traits": _format_traits(before)} if before else {}
    usual |= {"display_name": before.display_name} if before else {}

    def values(name: str) -> list[str]:
        return [form[name][-1] if form.get(name) else usual.get(name, "")]

    id_hint = "Lower-case letters, digits, - and _, at most 61 characters, such as cautious."
    return [
        *([] if before else [FormField("id", "Id", values=values("id"), hint=id_hint)]),
        FormField("display_name", "Name", values=values("display_name"), hint="Display name; reviewers do not see it."),
        FormField("system_prompt", "System prompt", "lines", values("system_prompt"), rows=10),
        FormField("traits", "Traits", "lines", values("traits"), "One per line, such as risk: low."),
    ]


def _format_traits(persona: Persona) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in persona.traits.items()
    )


def _parse_persona(form: TypedForm, persona_id: str | None) -> dict[str, Any]:
    """Parse the document of a form. Raises Problem."""
    texts = {name: read_field(form, name) for name in ("id", "display_name", "system_prompt")}
    texts["system_prompt"] = texts["system_prompt"].replace("\r\n", "\n")
    identity = {"id": persona_id} if persona_id is not None else {}
    traits, faults = _parse_traits(read_field(form, "traits"))
    document = {**texts, **identity, "traits": traits}
    own_faults = [*find_name_faults(texts["display_name"]), *(BodyFault("traits", fault) for fault in faults)]
    if own_faults:
        raise make_fault_problem([*_check_fields(document), *own_faults])
    return document


def _check_fields(document: dict[str, Any]) -> list[BodyFault]:
    """Return the errors of a document's check, which follow those of the form itself."""
    try:
        Persona.model_validate({**document, "version": 1})
    except ValidationError as error:
        return convert_faults(reasons(error, Persona))
    return []


def _parse_traits(words: str) -> tuple[dict[str, Any], list[str]]:
    """Parse traits, one `risk: low` per line: numbers and true or false as such, all else as text. Also returns the errors of invalid
    lines."""
    traits: dict[str, Any] = {}
    faults = []
    for number, line in enumerate(words.splitlines(), 1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not (name and colon and value):
            faults.append(f"line {number}: got {line.strip()[:_LINE_CHARACTERS]!r}; allowed: NAME: VALUE, such as risk: low")
        elif name in traits:
            faults.append(f"line {number}: {name[:_LINE_CHARACTERS]!r} occurs twice")
        traits[name] = _parse_simple(value)
    return traits, faults


def _parse_simple(words: str) -> Any:
    try:
        value = json.loads(words)
    except (ValueError, RecursionError):
        return words
    return value if isinstance(value, int | float | bool) and words not in ("NaN", "Infinity", "-Infinity") else words


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


def _build_scenario_fields(form: TypedForm, before: ScenarioManifest | Mapping[str, Any] | None) -> list[FormField]:
    """Build the field with the whole manifest. `before`: the previous version, or a template."""
    start: Mapping[str, Any] = build_document_body(before) if isinstance(before, ScenarioManifest) else before or {}
    fields = {field: value for field, value in start.items() if field not in SERVER_FIELDS}
    words = read_field(form, "manifest") if form else json.dumps(fields, ensure_ascii=False, indent=2)
    hint = "Version and status are set automatically. The id is LEAGUE/NAME: lower-case letters, digits and -."
    return [FormField("manifest", "Manifest (JSON)", "code", [words], hint, rows=24)]


def _scenario_templates(services: Services) -> dict[str, Any]:
    return {template["adapter"]: template["manifest"] for template in scenario_templates(services.settings)}


persona_router = DocumentPages(
    PERSONAS, False, lambda item: item.display_name, _persona_values, _parse_persona, _build_persona_fields
).router()
scenario_router = DocumentPages(
    SCENARIOS,
    True,
    lambda item: item.description,
    _scenario_values,
    lambda form, _: read_json(read_field(form, "manifest")),
    _build_scenario_fields,
    _scenario_templates,
).router()
