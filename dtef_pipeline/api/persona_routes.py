"""`/api/personas`: what models are told to be while they play, with versions, approved before they play in leagues."""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Body, Path, Request, Response
from pydantic import Field

from dtef_pipeline.api import versioned
from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.document_schemas import (
    LINES_ANSWERED,
    LINES_SENT,
    SAME_AS_BEFORE,
    AddedRecords,
    body_sent,
    change_sent,
    list_answered,
    made_answered,
    one_answered,
    versions_answered,
)
from dtef_pipeline.api.problems import refused_with
from dtef_pipeline.api.services import Used
from dtef_pipeline.documents import Part
from dtef_pipeline.games.personas import Persona, PersonaStatus
from resources.game_documents import StoredDocuments
from resources.settings import Settings

router = APIRouter(prefix="/api/personas", tags=["personas"])
PersonaName = Annotated[str, Path(description="Id of a persona, such as `cautious`.")]
_TURNING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_PERSONA_ANSWERED = one_answered(Persona)


class PersonaStep(Part):
    """What becomes of a version of a persona: draft, then approved, then retired."""

    status: PersonaStatus
    version: Annotated[int, Field(ge=1, le=versioned.LARGEST_VERSION)] | None = None
    """null, or left out: the latest."""


def _known(settings: Settings, stored: StoredDocuments, conflicts: dict[str, str]) -> versioned.ByVersion:
    from assets.games.known_games import known_persona_versions

    return {(one.id, one.version): one for one in known_persona_versions(settings, stored, conflicts).values()}


def _faults(persona: versioned.Versioned) -> list[dict[str, str]]:
    assert isinstance(persona, Persona)
    return faults_of_name(persona.display_name)


def faults_of_name(name: str) -> list[dict[str, str]]:
    """What is wrong with a name that would turn round the words beside it, on a terminal or a page."""
    if not _TURNING.search(name):
        return []
    said = f"got {name!r}; allowed: a name without control characters and without characters that turn the direction of writing"
    return [{"path": "display_name", "message": said}]


PERSONAS = versioned.DocumentsOfKind("persona", "personas", Persona, get_args(PersonaStatus), _known, _faults)


@router.get("", responses={200: list_answered("personas", Persona), **SAME_AS_BEFORE})
def list_personas(
    request: Request,
    services: Used,
    _: Operating,
    status: PersonaStatus | None = None,
    cursor: versioned.Cursor = None,
    limit: versioned.Limit = versioned.DOCUMENTS_LISTED,
) -> Response:
    """The latest version of every persona, of files and made here, in the order of ids."""
    return versioned.listed(PERSONAS, request, services, status, cursor, limit)


@router.post(
    "", status_code=201, responses={201: made_answered(Persona), **refused_with(409)}, openapi_extra=body_sent(Persona)
)
def make_persona(services: Used, holder: Operating, given: Annotated[Any, Body()]) -> Response:
    """Make a persona: version 1, a draft."""
    return versioned.make(PERSONAS, services, given, holder.name)


@router.get(".jsonl", response_class=Response, responses=LINES_ANSWERED)
def export_personas(services: Used, _: Operating) -> Response:
    """All versions of all personas, of files and made here, the same bytes as of `dtef games export personas`."""
    return versioned.export_answer(PERSONAS, services)


@router.post(".jsonl", status_code=201, response_model=AddedRecords, responses=refused_with(409), openapi_extra=LINES_SENT)
async def import_personas(request: Request, services: Used, holder: Operating) -> Response:
    """Add the personas of JSON lines, all or none of them, each with its version and status. 422 names the first line with a fault."""
    return await versioned.import_answer(PERSONAS, request, services, holder.name)


@router.get("/{persona_id}", responses={200: _PERSONA_ANSWERED, **SAME_AS_BEFORE})
def show_persona(
    request: Request, services: Used, _: Operating, persona_id: PersonaName, version: versioned.VersionAsked = None
) -> Response:
    """The latest version, or an earlier one."""
    return versioned.shown(PERSONAS, request, services, persona_id, version)


@router.get("/{persona_id}/versions", responses=versions_answered(get_args(PersonaStatus)))
def show_persona_versions(request: Request, services: Used, _: Operating, persona_id: PersonaName) -> Response:
    """Who made which version, and who said what of its status."""
    return versioned.history(PERSONAS, request, services, persona_id)


@router.put(
    "/{persona_id}", responses={200: _PERSONA_ANSWERED, **refused_with(409, 412, 428)}, openapi_extra=change_sent(Persona)
)
def change_persona(
    request: Request, services: Used, holder: Operating, persona_id: PersonaName, given: Annotated[Any, Body()]
) -> Response:
    """Make the next version, a draft. If-Match names the ETag of the latest one, which stays readable."""
    return versioned.change(PERSONAS, request, services, persona_id, given, holder.name)


@router.post("/{persona_id}/status", responses={200: _PERSONA_ANSWERED, **refused_with(409, 412)})
def move_persona(request: Request, services: Used, holder: Operating, persona_id: PersonaName, step: PersonaStep) -> Response:
    """Approve a draft, or retire what is approved."""
    return versioned.move(PERSONAS, request, services, persona_id, step.status, step.version, holder.name)
