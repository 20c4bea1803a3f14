"""The scenarios and personas that can be asked for by name: the shipped ones, and those of DTEF_SCENARIOS and DTEF_PERSONAS."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifests
from dtef_pipeline.games.personas import Persona, latest_personas, read_persona_versions
from resources.settings import Settings, shipped


def known_scenarios(settings: Settings) -> dict[str, ScenarioManifest]:
    """Every manifest by its id; one of DTEF_SCENARIOS takes the place of a shipped one with the same id.

    Raises ConfigError when DTEF_SCENARIOS names no folder, or a manifest has a fault.
    """
    own = _folder("DTEF_SCENARIOS", settings.scenarios)
    found = read_manifests(shipped("scenarios")) if shipped("scenarios").is_dir() else {}
    found |= read_manifests(own) if own else {}
    return dict(sorted(found.items()))


def known_persona_versions(settings: Settings) -> dict[str, Persona]:
    """Every version of every persona by name (`cautious:v2`), in the order of ids and versions.

    Raises ConfigError when DTEF_PERSONAS names a file, a persona has a fault, or a version of DTEF_PERSONAS says something else than the
    shipped one.
    """
    if settings.personas is not None and settings.personas.exists():
        _folder("DTEF_PERSONAS", settings.personas)
    found = read_persona_versions(shipped("personas"))
    for name, persona in read_persona_versions(settings.personas).items() if settings.personas else ():
        if found.get(name, persona) != persona:
            raise ConfigError(
                f"{settings.personas}: {name} differs from the shipped persona of that version; allowed: another version"
            )
        found[name] = persona
    return {one.name: one for one in sorted(found.values(), key=lambda one: (one.id, one.version))}


def known_personas(settings: Settings) -> dict[str, Persona]:
    """The latest version of every persona by id, then every version by name (`cautious:v1`), for what names a version."""
    versions = known_persona_versions(settings)
    return latest_personas(versions.values()) | versions


def _folder(variable: str, folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"{variable} names {folder}, which is not a folder")
    return folder
