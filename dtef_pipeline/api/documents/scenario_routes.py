"""`/api/scenarios`: games as manifests, with versions, and the engines that play them. An id holds a slash: `/api/scenarios/poker/kuhn`."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Path, Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.answer_schemas import AnswerBody
from dtef_pipeline.api.documents import versioned_documents
from dtef_pipeline.api.documents.document_routes import document_router
from dtef_pipeline.api.documents.engine_check import engine_faults
from dtef_pipeline.api.documents.scenario_templates import scenario_templates
from dtef_pipeline.api.etags import UNCHANGED, tagged
from dtef_pipeline.api.services import Used
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus
from resources.settings import Settings
from resources.votes.game_documents import StoredDocuments

LARGEST_FIRST_SEED = 2**31 - 1
MOST_SEEDS = 100_000
MOST_SCENARIOS_IMPORTED = 20
"""New ones in a request: each is tried by its engine, which takes a second."""


class ScenarioTemplate(AnswerBody):
    """An engine, with a manifest that it can play."""

    adapter: str
    """The name of the engine."""
    package: str
    """The package that it comes from, in words."""
    description: str
    """That of the manifest."""
    manifest: dict[str, Any]
    """To start from: as it is sent to make a scenario."""


class ScenarioTemplates(AnswerBody):
    """One for each engine."""

    templates: list[ScenarioTemplate]


def _known(settings: Settings, stored: StoredDocuments, conflicts: dict[str, str]) -> versioned_documents.ByVersion:
    from assets.games.known_games import known_scenario_versions

    return known_scenario_versions(settings, stored, conflicts)


def _faults(manifest: versioned_documents.Versioned) -> list[dict[str, str]]:
    assert isinstance(manifest, ScenarioManifest)
    for name, value, most in (("first", manifest.seeds.first, LARGEST_FIRST_SEED), ("count", manifest.seeds.count, MOST_SEEDS)):
        if value > most:
            return [{"path": f"seeds.{name}", "message": f"got {str(value)[:80]}; allowed: at most {most}"}]
    return engine_faults(manifest)


SCENARIOS = versioned_documents.DocumentsOfKind(
    "scenario", "scenarios", ScenarioManifest, get_args(ScenarioStatus), _known, _faults, MOST_SCENARIOS_IMPORTED
)


def _id_in_path(
    league: Annotated[str, Path(description="The part of the id before the slash, such as `poker`.")],
    name: Annotated[str, Path(description="The part of the id after the slash, such as `kuhn`.")],
) -> str:
    return f"{league}/{name}"


router = APIRouter()


@router.get("/api/scenarios/templates", tags=["scenarios"], response_model=ScenarioTemplates, responses=UNCHANGED)
def list_templates(request: Request, services: Used, _: Operating) -> Response:
    """The engines that are installed, each with a manifest to start from."""
    return tagged(request, {"templates": scenario_templates(services.settings)})


router.include_router(document_router(SCENARIOS, "/{league}/{name}", _id_in_path))
