"""Scenarios and personas available by name: shipped, from DTEF_SCENARIOS and DTEF_PERSONAS, and created over HTTP."""

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
from resources.settings import Settings, find_shipped, require_named_path
from resources.votes.game_documents import DocumentSnapshot, GameDocumentKind, read_documents_if_present

_Kept = TypeVar("_Kept", Persona, ScenarioManifest)


def load_known_games(settings: Settings) -> GameDocuments:
    """Load the scenarios in play and all personas. Errors: see `load_scenario_versions` and `load_known_persona_versions`."""
    return GameDocuments(load_known_scenarios(settings), load_known_persona_versions(settings))


def load_known_scenarios(settings: Settings, conflicts: dict[str, str] | None = None) -> dict[str, ScenarioManifest]:
    """Load the version in play of every scenario by its id (`select_manifests_in_play`); a file of DTEF_SCENARIOS replaces a shipped one.

    `conflicts` and errors: see `load_scenario_versions`.
    """
    return select_manifests_in_play(load_scenario_versions(settings, conflicts=conflicts).values())


def find_scenario_version(settings: Settings, name: str, version: int) -> ScenarioManifest:
    """Return a given version. Raises ConfigError, with the existing ones, if it is no longer known; and as `load_scenario_versions`."""
    versions = load_scenario_versions(settings)
    if (manifest := versions.get((name, version))) is None:
        choices = ", ".join(str(number) for scenario, number in versions if scenario == name)
        raise _missing_version_error("scenario", name, version, choices)
    return manifest


def load_scenario_versions(
    settings: Settings, docs: DocumentSnapshot | None = None, conflicts: dict[str, str] | None = None
) -> dict[tuple[str, int], ScenarioManifest]:
    """Load every manifest by id and version, in that order, from files and from HTTP submissions.

    `docs`: documents created over HTTP, by default the present ones. `conflicts`: receives an error by id if a version in a file differs
    from the one created earlier, which then takes precedence; without it the error is raised. Raises ConfigError if DTEF_SCENARIOS is not a
    folder, a manifest is invalid, or there is such a conflict.
    """
    user_folder = _check_folder("DTEF_SCENARIOS", settings.scenarios)
    manifests: dict[str, tuple[ScenarioManifest, str]] = {}
    for folder in (find_shipped("scenarios"), user_folder):
        if folder is not None and folder.is_dir():
            manifests |= {name: (manifest, str(folder / f"{name}.yaml")) for name, manifest in read_manifests(folder).items()}
    versions = {(manifest.id, manifest.version): (manifest, place) for manifest, place in manifests.values()}
    return _add_stored_versions("scenario", ScenarioManifest, versions, settings, docs, conflicts)


def load_known_persona_versions(
    settings: Settings, docs: DocumentSnapshot | None = None, conflicts: dict[str, str] | None = None
) -> dict[str, Persona]:
    """Load every version of every persona by name (`cautious:v2`), ordered by id and version. For arguments see `load_scenario_versions`.

    Raises ConfigError if DTEF_PERSONAS is a file, a persona is invalid, a version in DTEF_PERSONAS differs from the shipped one, or a
    version in a file differs from the one created over HTTP.
    """
    if settings.personas is not None and settings.personas.exists():
        _check_folder("DTEF_PERSONAS", settings.personas)
    personas = {
        name: (item, str(find_shipped("personas"))) for name, item in read_persona_versions(find_shipped("personas")).items()
    }
    for name, persona in read_persona_versions(settings.personas).items() if settings.personas else ():
        if name in personas and personas[name][0] != persona:
            conflict = f"{settings.personas}: {name} differs from the shipped persona of that version; allowed: another version"
            _report_conflict(conflicts, persona.id, conflict)
            continue
        personas[name] = persona, str(settings.personas)
    versions = {(item.id, item.version): (item, place) for item, place in personas.values()}
    return {item.name: item for item in _add_stored_versions("persona", Persona, versions, settings, docs, conflicts).values()}


def load_known_personas(
    settings: Settings, pins: Mapping[str, int] = MappingProxyType({}), conflicts: dict[str, str] | None = None
) -> dict[str, Persona]:
    """Load the version in play of every persona by id (`select_latest_personas`), then every version by name (`cautious:v1`).

    `pins`: versions that replace the one in play, by id. Raises ConfigError if one is no longer known. `conflicts` and further errors: see
    `load_known_persona_versions`.
    """
    versions = load_known_persona_versions(settings, conflicts=conflicts)
    personas = select_latest_personas(versions.values()) | versions
    for name, version in pins.items():
        if (persona := versions.get(f"{name}:v{version}")) is None:
            choices = ", ".join(str(candidate.version) for candidate in versions.values() if candidate.id == name)
            raise _missing_version_error("persona", name, version, choices)
        personas[name] = persona
    return personas


def _missing_version_error(kind: GameDocumentKind, name: str, version: int, choices: str) -> ConfigError:
    return ConfigError(
        f"{kind} {name}: version {version} was requested but is no longer known; existing versions: {choices or 'none'}. Restore the "
        "file of that version, or submit the evaluation again"
    )


def _add_stored_versions(
    kind: GameDocumentKind,
    model: type[_Kept],
    file_versions: Mapping[tuple[str, int], tuple[_Kept, str]],
    settings: Settings,
    docs: DocumentSnapshot | None,
    conflicts: dict[str, str] | None,
) -> dict[tuple[str, int], _Kept]:
    """Combine the documents of files and of the store, in the order of ids and versions, each with its latest status."""
    docs = read_documents_if_present(settings.responses_url) if docs is None else docs
    place = settings.places()["DTEF_RESPONSES"]
    # A URL may contain a password.
    where = "the response database" if "://" in place else f"the response store {place}"
    statuses, versions = docs.map_statuses(kind), {key: content for key, (content, _) in file_versions.items()}
    for record in docs.select_kind(kind):
        key = record.id, record.version
        # A version's content must be the same everywhere, regardless of other statuses.
        status = versions[key].status if key in versions else statuses.get(key)
        try:
            document = model.model_validate({**record.body, "version": record.version, "status": status})
        except ValidationError as error:
            raise ConfigError(
                f"{where}: {kind} {record.id}, version {record.version}: {format_in_one_line(error, model)}; allowed: a {kind} that this "
                "version of dtef-pipeline supports"
            ) from error
        if versions.get(key, document) != document:
            conflict = (
                f"{file_versions[key][1]}: version {record.version} of the {kind} {record.id} differs from that in {where}, which "
                f"{record.who} created over HTTP; allowed: another id or a higher version in the file"
            )
            _report_conflict(conflicts, record.id, conflict)
        versions[key] = document
    for key, status in statuses.items():
        if key in versions:
            versions[key] = versions[key].model_copy(update={"status": status})
    return dict(sorted(versions.items()))


def _report_conflict(conflicts: dict[str, str] | None, document_id: str, message: str) -> None:
    if conflicts is None:
        raise ConfigError(message)
    conflicts[document_id] = message


def _check_folder(variable: str, folder: Path | None) -> Path | None:
    if folder is not None:
        require_named_path(variable, folder, folder=True)
    return folder
