"""The catalog of engines: each with a manifest that it can play, to be changed and sent as a new scenario."""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from typing import Any

from pydantic import ValidationError

from dtef_pipeline.api.documents.versioned_documents import MADE_HERE, body_of
from dtef_pipeline.games.manifest import ScenarioManifest, Seeds
from dtef_pipeline.games.packs import adapters
from resources.settings import Settings

_TO_WRITE = "to be written"


def scenario_templates(settings: Settings) -> list[dict[str, Any]]:
    """By name of the engine: `adapter`, `package` in words, `description`, and `manifest` as it is sent to make a scenario.

    The manifest is that of a scenario which is known; an engine that no scenario has yet gets one to fill in. No engine is imported.
    """
    from assets.games.known_games import known_scenarios

    known = known_scenarios(settings)
    found = []
    for name, maker in sorted(adapters().items()):
        # Its own scenario before others that it plays.
        of_engine = sorted(
            (one for one in known.values() if one.adapter_name == name), key=lambda one: (one.id != name, one.id)
        )
        try:
            manifest = _started_from(of_engine[0] if of_engine else _to_fill_in(name), name, known)
        except ValidationError:  # its name is none that a manifest can say
            continue
        found.append({"adapter": name, "package": str(maker), "description": manifest["description"], "manifest": manifest})
    return found


def _started_from(manifest: ScenarioManifest, adapter: str, known: Container[str]) -> dict[str, Any]:
    """The manifest under an id that is free, with the engine said."""
    free = next(name for number in count(2) if (name := f"{adapter}-{number}") not in known)
    found = manifest.model_copy(update={"id": free, "adapter": adapter})
    return {field: value for field, value in body_of(found).items() if field not in MADE_HERE}


def _to_fill_in(adapter: str) -> ScenarioManifest:
    return ScenarioManifest(
        id=adapter,
        version=1,
        status="experimental",
        description=_TO_WRITE,
        rules=_TO_WRITE,
        reply_format=_TO_WRITE,
        seats=["A", "B"],
        seeds=Seeds(first=1, count=100),
        opponents=["random"],
        turn_limit=100,
        on_illegal="forfeit",
    )
