"""Scenarios and personas that can be asked for by name: those shipped, of DTEF_SCENARIOS and DTEF_PERSONAS, and made over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import ValidationError

from dtef_pipeline.documents import format_in_one_line
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifests, select_manifests_in_play
from dtef_pipeline.games.personas import Persona, read_persona_versions, select_latest_personas
from dtef_pipeline.games.site.game_labels import GameDocuments
from resources.settings import Settings, find_shipped
from resources.votes.game_documents import DocumentSnapshot, GameDocumentKind, read_documents_if_present

_Kept = TypeVar("_Kept", Persona, ScenarioManifest)


def load_known_games(settings: Settings) -> GameDocuments:
    """Scenarios in play and all personas, as the report shows them. Raises as `load_scenario_versions` and `load_known_persona_versions`."""
    return GameDocuments(load_known_scenarios(settings), load_known_persona_versions(settings))


def load_known_scenarios(settings: Settings, conflicts: dict[str, str] | None = None) -> dict[str, ScenarioManifest]:
    """The version in play of every scenario by its id (`select_manifests_in_play`); a file of DTEF_SCENARIOS takes the place of a shipped one.

    `conflicts`, and what it raises: as `load_scenario_versions`.
    """
    return select_manifests_in_play(load_scenario_versions(settings, conflicts=conflicts).values())


def find_scenario_version(settings: Settings, name: str, version: int) -> ScenarioManifest:
    """A certain version. Raises ConfigError, with those there are, where it is no longer known; and as `load_scenario_versions`."""
    versions = load_scenario_versions(settings)
    if (found := versions.get((name, version))) is None:
        there = ", ".join(str(number) for known, number in versions if known == name)
        raise _missing_version_error("scenario", name, version, there)
    return found


def load_scenario_versions(
    settings: Settings, stored: DocumentSnapshot | None = None, conflicts: dict[str, str] | None = None
) -> dict[tuple[str, int], ScenarioManifest]:
    """Every manifest by its id and version, in their order: the one that a file has, and those made over HTTP.

    Args:
        settings: where files and store are.
        stored: those made over HTTP; None: as of now.
        conflicts: takes, by id, what is wrong where a version of a file says something else than the one made before it, which then holds. None:
            that is an error.

    Raises ConfigError when DTEF_SCENARIOS names no folder, a manifest has a fault, or there is such a version.
    """
    own = _check_folder("DTEF_SCENARIOS", settings.scenarios)
    found: dict[str, tuple[ScenarioManifest, str]] = {}
    for folder in (find_shipped("scenarios"), own):
        if folder is not None and folder.is_dir():
            found |= {name: (one, str(folder / f"{name}.yaml")) for name, one in read_manifests(folder).items()}
    in_files = {(one.id, one.version): (one, place) for one, place in found.values()}
    return _add_stored_versions("scenario", ScenarioManifest, in_files, settings, stored, conflicts)


def load_known_persona_versions(
    settings: Settings, stored: DocumentSnapshot | None = None, conflicts: dict[str, str] | None = None
) -> dict[str, Persona]:
    """Every version of every persona by name (`cautious:v2`), in the order of ids and versions. Arguments as of `load_scenario_versions`.

    Raises ConfigError when DTEF_PERSONAS names a file, a persona has a fault, or a version of DTEF_PERSONAS says something else than the
    shipped one, or one of a file something else than the one made over HTTP.
    """
    if settings.personas is not None and settings.personas.exists():
        _check_folder("DTEF_PERSONAS", settings.personas)
    found = {
        name: (one, str(find_shipped("personas"))) for name, one in read_persona_versions(find_shipped("personas")).items()
    }
    for name, persona in read_persona_versions(settings.personas).items() if settings.personas else ():
        if name in found and found[name][0] != persona:
            conflict = f"{settings.personas}: {name} differs from the shipped persona of that version; allowed: another version"
            _report_conflict(conflicts, persona.id, conflict)
            continue
        found[name] = persona, str(settings.personas)
    in_files = {(one.id, one.version): (one, place) for one, place in found.values()}
    return {one.name: one for one in _add_stored_versions("persona", Persona, in_files, settings, stored, conflicts).values()}


def load_known_personas(
    settings: Settings, pinned: Mapping[str, int] = MappingProxyType({}), conflicts: dict[str, str] | None = None
) -> dict[str, Persona]:
    """The version in play of every persona by id (`select_latest_personas`), then every version by name (`cautious:v1`).

    `pinned`: by id, the version that the id stands for in its place. Raises ConfigError where one is no longer known.
    `conflicts`, and what it raises besides: as `load_known_persona_versions`.
    """
    versions = load_known_persona_versions(settings, conflicts=conflicts)
    found = select_latest_personas(versions.values()) | versions
    for name, version in pinned.items():
        if (one := versions.get(f"{name}:v{version}")) is None:
            there = ", ".join(str(known.version) for known in versions.values() if known.id == name)
            raise _missing_version_error("persona", name, version, there)
        found[name] = one
    return found


def _missing_version_error(kind: GameDocumentKind, name: str, version: int, there: str) -> ConfigError:
    return ConfigError(
        f"{kind} {name}: version {version} was asked for, and is no longer known; there are: {there or 'none'}; "
        "restore the file of that version, or submit the evaluation again"
    )


def _add_stored_versions(
    kind: GameDocumentKind,
    model: type[_Kept],
    in_files: Mapping[tuple[str, int], tuple[_Kept, str]],
    settings: Settings,
    stored: DocumentSnapshot | None,
    conflicts: dict[str, str] | None,
) -> dict[tuple[str, int], _Kept]:
    """The documents of files and of the store, in the order of ids and versions, each with the status that was said last."""
    stored = read_documents_if_present(settings.responses_url) if stored is None else stored
    place = settings.places()["DTEF_RESPONSES"]
    # A URL may hold a password.
    where = "the response database" if "://" in place else f"the response store {place}"
    statuses, found = stored.map_statuses(kind), {key: one for key, (one, _) in in_files.items()}
    for kept in stored.of(kind):
        key = kept.id, kept.version
        # Whatever was said of its status besides: what a version is made of has to be the same everywhere.
        status = found[key].status if key in found else statuses.get(key)
        try:
            made = model.model_validate({**kept.body, "version": kept.version, "status": status})
        except ValidationError as error:
            raise ConfigError(
                f"{where}: {kind} {kept.id}, version {kept.version}: {format_in_one_line(error, model)}; "
                "allowed: what this version of dtef-pipeline knows"
            ) from error
        if found.get(key, made) != made:
            conflict = (
                f"{in_files[key][1]}: the {kind} {kept.id} has in version {kept.version} another content than in {where}, where "
                f"{kept.who} made it over HTTP; allowed: another id or a higher version in the file"
            )
            _report_conflict(conflicts, kept.id, conflict)
        found[key] = made
    for key, status in statuses.items():
        if key in found:
            found[key] = found[key].model_copy(update={"status": status})
    return dict(sorted(found.items()))


def _report_conflict(conflicts: dict[str, str] | None, document_id: str, said: str) -> None:
    if conflicts is None:
        raise ConfigError(said)
    conflicts[document_id] = said


def _check_folder(variable: str, folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"{variable} names {folder}, which is not a folder")
    return folder
