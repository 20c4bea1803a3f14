"""The catalog of engines, each with a manifest that can be changed and sent as a new scenario."""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody
from dtef_pipeline.api.documents.document_history import SERVER_FIELDS, build_document_body
from dtef_pipeline.api.etags import TAGGED, build_tagged_response
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.games.manifest import ScenarioManifest, Seeds
from dtef_pipeline.games.packs import adapters
from resources.settings import Settings

_PLACEHOLDER = "to be written"
router = APIRouter()


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
    """One for each engine."""

    templates: list[ScenarioTemplate]


@router.get("/api/scenarios/templates", tags=["scenarios"], response_model=ScenarioTemplates, **TAGGED)
def list_templates(request: Request, services: ServicesDep, _: OperatorToken) -> Response:
    """The installed engines, each with a manifest to start from."""
    return build_tagged_response(request, {"templates": scenario_templates(services.settings)})


def scenario_templates(settings: Settings) -> list[dict[str, Any]]:
    """Return by name of the engine: `adapter`, `package` in words, `description`, and `manifest` in the form for creating a scenario.

    The manifest is that of a known scenario; an engine without a scenario has one to fill in. No engine is imported.
    """
    from assets.games.game_catalog import load_known_scenarios

    scenarios = load_known_scenarios(settings)
    templates = []
    for name, maker in sorted(adapters().items()):
        # Its own scenario before others that it plays.
        games = sorted(
            (game for game in scenarios.values() if game.adapter_name == name), key=lambda game: (game.id != name, game.id)
        )
        try:
            manifest = _make_template(games[0] if games else _make_blank_manifest(name), name, scenarios)
        except ValidationError:  # its name is none that a manifest can say
            continue
        templates.append({"adapter": name, "package": str(maker), "description": manifest["description"], "manifest": manifest})
    return templates


def _make_template(manifest: ScenarioManifest, adapter: str, names: Container[str]) -> dict[str, Any]:
    """Return the manifest with a free id and the engine's name."""
    free = next(name for number in count(2) if (name := f"{adapter}-{number}") not in names)
    draft = manifest.model_copy(update={"id": free, "adapter": adapter})
    return {field: value for field, value in build_document_body(draft).items() if field not in SERVER_FIELDS}


def _make_blank_manifest(adapter: str) -> ScenarioManifest:
    return ScenarioManifest(
        id=adapter,
        version=1,
        status="experimental",
        description=_PLACEHOLDER,
        rules=_PLACEHOLDER,
        reply_format=_PLACEHOLDER,
        seats=["A", "B"],
        seeds=Seeds(first=1, count=100),
        opponents=["random"],
        turn_limit=100,
        on_illegal="forfeit",
    )
