"""The routes of `/api/personas` and `/api/scenarios`, over documents with versions and statuses, and the catalog of engines."""

# Annotations are evaluated at definition, because they use variables of the enclosing function.
from collections.abc import Mapping
from http import HTTPStatus
from itertools import count
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field, create_model

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody, convert_to_json
from dtef_pipeline.api.documents.document_history import (
    LARGEST_VERSION,
    SERVER_FIELDS,
    DocumentKind,
    DocumentVersion,
    KnownDocuments,
    build_document_body,
    change,
    make,
    move,
)
from dtef_pipeline.api.etags import ETAG_HEADER, TAGGED, build_tagged_response, compute_weak_etag, describe_header, read_header
from dtef_pipeline.api.plans.manifests import resolve_schema_refs
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import make_fault_problem
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.documents import Part
from dtef_pipeline.games.packs import adapters
from resources.settings import Settings

_CREATED = {"headers": {**ETAG_HEADER, "Location": {"schema": {"type": "string"}, "description": "Where it is."}}}
_VERSION_TO_CHANGE = "The ETag of the version to change, as it was read."
VersionOption = Annotated[int | None, Query(ge=1, le=LARGEST_VERSION, description="None: the latest.")]


class DocumentStep(Part):
    """A status change of a version of a document."""

    status: str
    version: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = None
    """Null or left out: the latest."""


class DocumentVersions(AnswerBody):
    """All versions of a document."""

    id: str
    versions: list[DocumentVersion]


def build_document_router(spec: DocumentKind) -> APIRouter:
    """Build the routes of a kind of document."""
    router = APIRouter(prefix=f"/api/{spec.plural}", tags=[spec.plural])
    _add_routes_of_all(router, spec)
    _add_routes_of_one(router, spec)
    return router


def _add_routes_of_all(router: APIRouter, spec: DocumentKind) -> None:
    members: dict[str, Any] = {spec.plural: (list[spec.model], ...), "next": (str | None, ...)}  # type: ignore[name-defined]
    page = create_model(f"{spec.kind.capitalize()}Page", __base__=AnswerBody, **members)

    @router.get("", response_model=page, **TAGGED)
    def list_documents(
        request: Request,
        services: ServicesDep,
        _: OperatorToken,
        status: Annotated[str | None, Query(json_schema_extra={"enum": list(spec.statuses)})] = None,
        cursor: Annotated[str | None, Query(description="Value of `next` in the previous part of the list.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """The latest version of each, from files and created over HTTP, in the order of ids."""
        require_status(spec, status, "query.status")
        documents = [
            doc for doc in KnownDocuments.load_current(spec, services).latest().values() if status in (None, doc.status)
        ]
        later = [doc for doc in documents if cursor is None or doc.id > cursor]
        after = later[limit - 1].id if len(later) > limit else None
        return build_tagged_response(request, {spec.plural: [build_document_body(doc) for doc in later[:limit]], "next": after})

    @router.post(
        "",
        status_code=201,
        response_model=spec.model,
        responses={201: _CREATED},
        openapi_extra={"requestBody": _describe_body(spec)},
    )
    def make_document(services: ServicesDep, holder: OperatorToken, given: Annotated[Any, Body()]) -> Response:
        """Create a document: version 1, with the first status. The engine of a scenario must be able to play it."""
        body = make(spec, services, given, holder.name)
        return _build_changed_response(body, HTTPStatus.CREATED, {"Location": spec.location(body["id"])})


def _add_routes_of_one(router: APIRouter, spec: DocumentKind) -> None:
    Id = Annotated[str, Depends(spec.id_in_path)]

    @router.get(spec.place, response_model=spec.model, **TAGGED)
    def show_document(
        request: Request, services: ServicesDep, _: OperatorToken, document_id: Id, version: VersionOption = None
    ) -> Response:
        """The latest version, or an earlier one."""
        return build_tagged_response(
            request,
            build_document_body(KnownDocuments.load_current(spec, services, document_id).find_version(document_id, version)),
        )

    @router.get(f"{spec.place}/versions", response_model=DocumentVersions, **TAGGED)
    def show_versions(request: Request, services: ServicesDep, _: OperatorToken, document_id: Id) -> Response:
        """All versions with their authors and the history of their statuses."""
        versions = KnownDocuments.load_current(spec, services, document_id).history(document_id)
        return build_tagged_response(
            request, convert_to_json({"id": document_id, "versions": [entry.model_dump(by_alias=True) for entry in versions]})
        )

    @router.put(
        spec.place,
        response_model=spec.model,
        responses={200: {"headers": ETAG_HEADER}},
        openapi_extra={
            "requestBody": _describe_body(spec),
            "parameters": [describe_header("If-Match", _VERSION_TO_CHANGE, required=True)],
        },
    )
    def change_document(
        request: Request, services: ServicesDep, holder: OperatorToken, document_id: Id, given: Annotated[Any, Body()]
    ) -> Response:
        """Make the next version, with the first status. If-Match must have the ETag of the latest one, which stays readable."""
        return _build_changed_response(
            change(spec, services, document_id, given, holder.name, read_header(request, "if-match"))
        )

    @router.post(
        f"{spec.place}/status",
        response_model=spec.model,
        responses={200: {"headers": ETAG_HEADER}},
        openapi_extra={"parameters": [describe_header("If-Match", _VERSION_TO_CHANGE)]},
    )
    def move_document(
        request: Request, services: ServicesDep, holder: OperatorToken, document_id: Id, step: DocumentStep
    ) -> Response:
        """Give a version its next status: approve or promote it, or retire it."""
        require_status(spec, step.status, "status")
        etag = read_header(request, "if-match")
        return _build_changed_response(move(spec, services, document_id, (step.status, step.version), holder.name, etag))


def _build_changed_response(
    body: dict[str, Any], status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse(body, status, {**(headers or {}), "ETag": compute_weak_etag(body), "Cache-Control": "no-cache"})


def require_status(spec: DocumentKind, status: str | None, path: str) -> None:
    """Raise Problem 422 for an unknown status."""
    if status is not None and status not in spec.statuses:
        raise make_fault_problem([BodyFault(path, f"got {status[:80]!r}; allowed: {', '.join(spec.statuses)}")])


def _describe_body(spec: DocumentKind) -> dict[str, Any]:
    """Describe a document in requests: its fields without those that are not sent."""
    schema = resolve_schema_refs(spec.model.model_json_schema())
    for name in SERVER_FIELDS:
        del schema["properties"][name]
    schema["required"] = [name for name in schema["required"] if name not in SERVER_FIELDS]
    return {"required": True, "content": {"application/json": {"schema": schema}}}


template_router = APIRouter()


class ScenarioTemplate(AnswerBody):
    """An engine, with a manifest that it can play."""

    adapter: str
    """Name of the engine."""
    package: str
    """Its package, in words."""
    description: str
    """Description of the manifest."""
    manifest: dict[str, Any]
    """Template in the form for creating a scenario."""


class ScenarioTemplates(AnswerBody):
    """One for each engine with a scenario."""

    templates: list[ScenarioTemplate]


@template_router.get("/api/scenarios/templates", tags=["scenarios"], response_model=ScenarioTemplates, **TAGGED)
def list_templates(request: Request, services: ServicesDep, _: OperatorToken) -> Response:
    """The installed engines, each with a manifest to start from."""
    return build_tagged_response(request, {"templates": scenario_templates(services.settings)})


def scenario_templates(settings: Settings) -> list[dict[str, Any]]:
    """Return by name of the engine: `adapter`, `package` in words, `description`, and `manifest` in the form for creating a scenario.

    The manifest is that of a known scenario with a free id; an engine without a scenario has no template. No engine is imported.
    """
    from assets.games.game_catalog import load_known_scenarios

    scenarios = load_known_scenarios(settings)
    templates = []
    for name, maker in sorted(adapters().items()):
        games = [game for game in scenarios.values() if game.adapter_name == name]
        if not games:
            continue
        # Its own scenario before others that it plays.
        first = min(games, key=lambda game: (game.id != name, game.id))
        free = next(other for number in count(2) if (other := f"{name}-{number}") not in scenarios)
        draft = build_document_body(first.model_copy(update={"id": free, "adapter": name}))
        manifest = {field: value for field, value in draft.items() if field not in SERVER_FIELDS}
        templates.append({"adapter": name, "package": str(maker), "description": first.description, "manifest": manifest})
    return templates
