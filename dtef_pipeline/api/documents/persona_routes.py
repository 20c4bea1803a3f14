"""`/api/personas`: what models are told to be while they play, with versions, approved before they play in leagues."""

from __future__ import annotations

import re
from typing import Annotated, get_args

from fastapi import Path

from dtef_pipeline.api.documents import versioned_documents
from dtef_pipeline.api.documents.document_routes import document_router
from dtef_pipeline.games.personas import Persona, PersonaStatus
from resources.settings import Settings
from resources.votes.game_documents import StoredDocuments

_TURNING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _known(settings: Settings, stored: StoredDocuments, conflicts: dict[str, str]) -> versioned_documents.ByVersion:
    from assets.games.known_games import known_persona_versions

    return {(one.id, one.version): one for one in known_persona_versions(settings, stored, conflicts).values()}


def _faults(persona: versioned_documents.Versioned) -> list[dict[str, str]]:
    assert isinstance(persona, Persona)
    return faults_of_name(persona.display_name)


def faults_of_name(name: str) -> list[dict[str, str]]:
    """What is wrong with a name that would turn round the words beside it, on a terminal or a page."""
    if not _TURNING.search(name):
        return []
    said = f"got {name!r}; allowed: a name without control characters and without characters that turn the direction of writing"
    return [{"path": "display_name", "message": said}]


def _id_in_path(persona_id: Annotated[str, Path(description="Id of a persona, such as `cautious`.")]) -> str:
    return persona_id


PERSONAS = versioned_documents.DocumentsOfKind("persona", "personas", Persona, get_args(PersonaStatus), _known, _faults)
router = document_router(PERSONAS, "/{persona_id}", _id_in_path)
