"""The catalog of engines, each with a manifest that can be changed and sent as a new scenario."""

from __future__ import annotations

from itertools import count
from typing import Any

from fastapi import APIRouter, Request, Response

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody
from dtef_pipeline.api.documents.document_history import SERVER_FIELDS, build_document_body
from dtef_pipeline.api.etags import TAGGED, build_tagged_response
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.games.packs import adapters
from resources.settings import Settings

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
    """One for each engine with a scenario."""

    templates: list[ScenarioTemplate]


@router.get("/api/scenarios/templates", tags=["scenarios"], response_model=ScenarioTemplates, **TAGGED)
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
