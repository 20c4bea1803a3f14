"""`/api/scenarios`: games as manifests, with versions, and the engines that play them. An id holds a slash: `/api/scenarios/poker/kuhn`."""

from __future__ import annotations

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
    templates_answered,
    versions_answered,
)
from dtef_pipeline.api.engine_check import engine_faults
from dtef_pipeline.api.etags import tagged
from dtef_pipeline.api.problems import refused_with
from dtef_pipeline.api.scenario_templates import scenario_templates
from dtef_pipeline.api.services import Used
from dtef_pipeline.documents import Part
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus
from resources.game_documents import StoredDocuments
from resources.settings import Settings

router = APIRouter(prefix="/api/scenarios", tags=["scenarios"])
LeagueName = Annotated[str, Path(description="The part of the id before the slash, such as `poker`.")]
NameInLeague = Annotated[str, Path(description="The part of the id after the slash, such as `kuhn`.")]
LARGEST_FIRST_SEED = 2**31 - 1
MOST_SEEDS = 100_000
MOST_SCENARIOS_IMPORTED = 20
"""New ones in a request: each is tried by its engine, which takes a second."""
_SCENARIO_ANSWERED = one_answered(ScenarioManifest)


class ScenarioStep(Part):
    """What becomes of a version of a scenario: experimental, then production, then retired."""

    status: ScenarioStatus
    version: Annotated[int, Field(ge=1, le=versioned.LARGEST_VERSION)] | None = None
    """null, or left out: the latest."""


def _known(settings: Settings, stored: StoredDocuments, conflicts: dict[str, str]) -> versioned.ByVersion:
    from assets.games.known_games import known_scenario_versions

    return known_scenario_versions(settings, stored, conflicts)


def _faults(manifest: versioned.Versioned) -> list[dict[str, str]]:
    assert isinstance(manifest, ScenarioManifest)
    for name, value, most in (("first", manifest.seeds.first, LARGEST_FIRST_SEED), ("count", manifest.seeds.count, MOST_SEEDS)):
        if value > most:
            return [{"path": f"seeds.{name}", "message": f"got {str(value)[:80]}; allowed: at most {most}"}]
    return engine_faults(manifest)


SCENARIOS = versioned.DocumentsOfKind(
    "scenario", "scenarios", ScenarioManifest, get_args(ScenarioStatus), _known, _faults, MOST_SCENARIOS_IMPORTED
)


@router.get("", responses={200: list_answered("scenarios", ScenarioManifest), **SAME_AS_BEFORE})
def list_scenarios(
    request: Request,
    services: Used,
    _: Operating,
    status: ScenarioStatus | None = None,
    cursor: versioned.Cursor = None,
    limit: versioned.Limit = versioned.DOCUMENTS_LISTED,
) -> Response:
    """The latest version of every scenario, of files and made here, in the order of ids."""
    return versioned.listed(SCENARIOS, request, services, status, cursor, limit)


@router.post(
    "",
    status_code=201,
    responses={201: made_answered(ScenarioManifest), **refused_with(409)},
    openapi_extra=body_sent(ScenarioManifest),
)
def make_scenario(services: Used, holder: Operating, given: Annotated[Any, Body()]) -> Response:
    """Make a scenario: version 1, experimental. Its engine has to be able to play it."""
    return versioned.make(SCENARIOS, services, given, holder.name)


@router.get(".jsonl", response_class=Response, responses=LINES_ANSWERED)
def export_scenarios(services: Used, _: Operating) -> Response:
    """All versions of all scenarios, of files and made here, the same bytes as of `dtef games export scenarios`."""
    return versioned.export_answer(SCENARIOS, services)


@router.post(".jsonl", status_code=201, response_model=AddedRecords, responses=refused_with(409), openapi_extra=LINES_SENT)
async def import_scenarios(request: Request, services: Used, holder: Operating) -> Response:
    """Add the scenarios of JSON lines, all or none of them, each with its version and status. 422 names the first line with a fault."""
    return await versioned.import_answer(SCENARIOS, request, services, holder.name)


@router.get("/templates", responses=templates_answered(ScenarioManifest))
def list_templates(request: Request, services: Used, _: Operating) -> Response:
    """The engines that are installed, each with a manifest to start from."""
    return tagged(request, {"templates": scenario_templates(services.settings)})


@router.get("/{league}/{name}", responses={200: _SCENARIO_ANSWERED, **SAME_AS_BEFORE})
def show_scenario(
    request: Request,
    services: Used,
    _: Operating,
    league: LeagueName,
    name: NameInLeague,
    version: versioned.VersionAsked = None,
) -> Response:
    """The latest version, or an earlier one."""
    return versioned.shown(SCENARIOS, request, services, f"{league}/{name}", version)


@router.get("/{league}/{name}/versions", responses=versions_answered(get_args(ScenarioStatus)))
def show_scenario_versions(request: Request, services: Used, _: Operating, league: LeagueName, name: NameInLeague) -> Response:
    """Who made which version, and who said what of its status."""
    return versioned.history(SCENARIOS, request, services, f"{league}/{name}")


@router.put(
    "/{league}/{name}",
    responses={200: _SCENARIO_ANSWERED, **refused_with(409, 412, 428)},
    openapi_extra=change_sent(ScenarioManifest),
)
def change_scenario(
    request: Request,
    services: Used,
    holder: Operating,
    league: LeagueName,
    name: NameInLeague,
    given: Annotated[Any, Body()],
) -> Response:
    """Make the next version, experimental. If-Match names the ETag of the latest one, which stays readable."""
    return versioned.change(SCENARIOS, request, services, f"{league}/{name}", given, holder.name)


@router.post("/{league}/{name}/status", responses={200: _SCENARIO_ANSWERED, **refused_with(409, 412)})
def move_scenario(
    request: Request, services: Used, holder: Operating, league: LeagueName, name: NameInLeague, step: ScenarioStep
) -> Response:
    """Say that an experimental scenario is for production, or retire what is."""
    return versioned.move(SCENARIOS, request, services, f"{league}/{name}", step.status, step.version, holder.name)
