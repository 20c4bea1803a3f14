"""The differences over HTTP between personas (roles of models) and scenarios (games as manifests, with an id such as `poker/kuhn`)."""

from __future__ import annotations

import re
from typing import Annotated, get_args

from fastapi import Path

from dtef_pipeline.api.documents.document_history import DocumentKind, DocumentsByVersion, GameDocument
from dtef_pipeline.api.documents.engine_check import check_engine
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.games.manifest import ScenarioManifest, ScenarioStatus
from dtef_pipeline.games.personas import Persona, PersonaStatus
from resources.settings import Settings
from resources.votes.game_documents import DocumentSnapshot

LARGEST_FIRST_SEED = 2**31 - 1
MAX_SEEDS = 100_000
_TURNING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _load_personas(settings: Settings, snapshot: DocumentSnapshot, conflicts: dict[str, str]) -> DocumentsByVersion:
    from assets.games.game_catalog import load_known_persona_versions

    return {(entry.id, entry.version): entry for entry in load_known_persona_versions(settings, snapshot, conflicts).values()}


def _check_persona(persona: GameDocument) -> list[BodyFault]:
    """Find names that would reverse the text next to them on a terminal or a page."""
    assert isinstance(persona, Persona)
    if not _TURNING.search(name := persona.display_name):
        return []
    message = f"got {name!r}; allowed: a name without control characters and characters that change the direction of writing"
    return [BodyFault("display_name", message)]


def _persona_in_path(persona_id: Annotated[str, Path(description="Id of a persona, such as `cautious`.")]) -> str:
    return persona_id


PERSONAS = DocumentKind(
    "persona",
    "personas",
    Persona,
    get_args(PersonaStatus),
    _load_personas,
    _check_persona,
    place="/{persona_id}",
    id_in_path=_persona_in_path,
)


def _load_scenarios(settings: Settings, snapshot: DocumentSnapshot, conflicts: dict[str, str]) -> DocumentsByVersion:
    from assets.games.game_catalog import load_scenario_versions

    return load_scenario_versions(settings, snapshot, conflicts)


def _check_scenario(manifest: GameDocument) -> list[BodyFault]:
    assert isinstance(manifest, ScenarioManifest)
    for name, value, cap in (("first", manifest.seeds.first, LARGEST_FIRST_SEED), ("count", manifest.seeds.count, MAX_SEEDS)):
        if value > cap:
            return [BodyFault(f"seeds.{name}", f"got {str(value)[:80]}; allowed: at most {cap}")]
    return check_engine(manifest)


def _scenario_in_path(
    league: Annotated[str, Path(description="The part of the id before the slash, such as `poker`.")],
    name: Annotated[str, Path(description="The part of the id after the slash, such as `kuhn`.")],
) -> str:
    return f"{league}/{name}"


SCENARIOS = DocumentKind(
    "scenario",
    "scenarios",
    ScenarioManifest,
    get_args(ScenarioStatus),
    _load_scenarios,
    _check_scenario,
    place="/{league}/{name}",
    id_in_path=_scenario_in_path,
)
