"""`/api/personas` and `/api/scenarios`: the routes that both have, over documents with versions and statuses."""

# Annotations are evaluated where they stand: they name what a router is made for.
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from pydantic import Field, create_model

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.answer_schemas import AnswerBody
from dtef_pipeline.api.documents import versioned_documents
from dtef_pipeline.api.etags import TAG_TOLD, UNCHANGED
from dtef_pipeline.api.plans.manifests import schema_in_one
from dtef_pipeline.api.problems import faulty
from dtef_pipeline.api.services import Used
from dtef_pipeline.documents import Part

LINES_ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {"description": "JSON lines.", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
}
LINES_SENT: dict[str, Any] = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}}
_TAGGED: dict[str, Any] = {"headers": TAG_TOLD}
_MADE = {"headers": {**TAG_TOLD, "Location": {"schema": {"type": "string"}, "description": "Where it is."}}}
_IF_MATCH = {"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}}


class AddedRecords(Part):
    """What an import has added, by kind, and how many records were there already."""

    added: dict[str, int]
    known: int


class DocumentStep(Part):
    """What becomes of a version of a document: the status that follows its own."""

    status: str
    version: Annotated[int, Field(ge=1, le=versioned_documents.LARGEST_VERSION)] | None = None
    """null, or left out: the latest."""


class StatusTold(AnswerBody):
    """What somebody said of the status of a version."""

    status: str
    who: str
    said_at: datetime


class VersionOfDocument(AnswerBody):
    """A version, and what was said of it."""

    version: int
    status: str
    kept_in: Literal["file", "store"] = Field(alias="from")
    """store: it was made here."""
    made_by: str | None
    """Who made it; null: a file has it."""
    made_at: datetime | None
    """null: a file has it."""
    statuses: list[StatusTold]
    """What was said of its status, the first first."""


class VersionsOfDocument(AnswerBody):
    """All versions of a document."""

    id: str
    versions: list[VersionOfDocument]


def document_router(of: versioned_documents.DocumentsOfKind, place: str, id_in_path: Callable[..., str]) -> APIRouter:
    """The routes of a kind. `place`: of one document, below the path of all; `id_in_path`: its id, from the parameters of `place`."""
    router = APIRouter(prefix=f"/api/{of.plural}", tags=[of.plural])
    _add_routes_of_all(router, of)
    _add_routes_of_one(router, of, place, id_in_path)
    return router


def _add_routes_of_all(router: APIRouter, of: versioned_documents.DocumentsOfKind) -> None:
    members: dict[str, Any] = {of.plural: (list[of.model], ...), "next": (str | None, ...)}  # type: ignore[name-defined]
    page = create_model(f"PageOf{of.plural.capitalize()}", __base__=AnswerBody, **members)

    @router.get("", response_model=page, responses=UNCHANGED)
    def list_documents(
        request: Request,
        services: Used,
        _: Operating,
        status: Annotated[str | None, Query(json_schema_extra={"enum": list(of.statuses)})] = None,
        cursor: versioned_documents.Cursor = None,
        limit: versioned_documents.Limit = versioned_documents.DOCUMENTS_LISTED,
    ) -> Response:
        """The latest version of each, of files and made here, in the order of ids."""
        _require_status(of, status, "query.status")
        return versioned_documents.listed(of, request, services, status, cursor, limit)

    @router.post(
        "",
        status_code=201,
        response_model=of.model,
        responses={201: _MADE},
        openapi_extra={"requestBody": _body_sent(of)},
    )
    def make_document(services: Used, holder: Operating, given: Annotated[Any, Body()]) -> Response:
        """Make a document: version 1, with the first status. The engine of a scenario has to be able to play it."""
        return versioned_documents.make(of, services, given, holder.name)

    @router.get(".jsonl", response_class=Response, responses=LINES_ANSWERED)
    def export_documents(services: Used, _: Operating) -> Response:
        """All versions of all, of files and made here, the same bytes as of `dtef export`."""
        return versioned_documents.export_answer(of, services)

    @router.post(".jsonl", status_code=201, response_model=AddedRecords, openapi_extra=LINES_SENT)
    async def import_documents(request: Request, services: Used, holder: Operating) -> Response:
        """Add those of JSON lines, all or none of them, each with its version and status. 422 names the first line with a fault."""
        return await versioned_documents.import_answer(of, request, services, holder.name)


def _add_routes_of_one(
    router: APIRouter, of: versioned_documents.DocumentsOfKind, place: str, id_in_path: Callable[..., str]
) -> None:
    @router.get(place, response_model=of.model, responses=UNCHANGED)
    def show_document(
        request: Request,
        services: Used,
        _: Operating,
        document_id: Annotated[str, Depends(id_in_path)],
        version: versioned_documents.VersionAsked = None,
    ) -> Response:
        """The latest version, or an earlier one."""
        return versioned_documents.shown(of, request, services, document_id, version)

    @router.get(f"{place}/versions", response_model=VersionsOfDocument, responses=UNCHANGED)
    def show_versions(
        request: Request, services: Used, _: Operating, document_id: Annotated[str, Depends(id_in_path)]
    ) -> Response:
        """Who made which version, and who said what of its status."""
        return versioned_documents.history(of, request, services, document_id)

    @router.put(
        place,
        response_model=of.model,
        responses={200: _TAGGED},
        openapi_extra={"requestBody": _body_sent(of), "parameters": [_IF_MATCH]},
    )
    def change_document(
        request: Request,
        services: Used,
        holder: Operating,
        document_id: Annotated[str, Depends(id_in_path)],
        given: Annotated[Any, Body()],
    ) -> Response:
        """Make the next version, with the first status. If-Match names the ETag of the latest one, which stays readable."""
        return versioned_documents.change(of, request, services, document_id, given, holder.name)

    @router.post(f"{place}/status", response_model=of.model, responses={200: _TAGGED})
    def move_document(
        request: Request,
        services: Used,
        holder: Operating,
        document_id: Annotated[str, Depends(id_in_path)],
        step: DocumentStep,
    ) -> Response:
        """Give a version its next status: approve or promote it, or retire it."""
        _require_status(of, step.status, "status")
        return versioned_documents.move(of, request, services, document_id, step.status, step.version, holder.name)


def _require_status(of: versioned_documents.DocumentsOfKind, status: str | None, path: str) -> None:
    """Raises Problem 422 for a word that is no status."""
    if status is not None and status not in of.statuses:
        raise faulty([{"path": path, "message": f"got {status[:80]!r}; allowed: {', '.join(of.statuses)}"}])


def _body_sent(of: versioned_documents.DocumentsOfKind) -> dict[str, Any]:
    """A document as it is sent: its fields without those that nobody sends."""
    schema = schema_in_one(of.model.model_json_schema())
    for name in versioned_documents.MADE_HERE:
        del schema["properties"][name]
    schema["required"] = [name for name in schema["required"] if name not in versioned_documents.MADE_HERE]
    return {"required": True, "content": {"application/json": {"schema": schema}}}
