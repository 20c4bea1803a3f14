"""The files, personas and scenarios of games: for `dtef games add`, `check`, `list` and `remove`, and `dtef export`."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from assets.games.game_catalog import load_known_persona_versions, load_known_scenarios, load_scenario_versions
from dtef_pipeline.cli.family_verbs import Addition, AddReport, CheckReport, FamilyFiles
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.documents import explain_missing_folder
from dtef_pipeline.errors import ConfigError, DtefError, SourceError
from dtef_pipeline.games.contract import list_baselines
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import (
    LineDocument,
    LineKind,
    check_packs,
    detect_line_kind,
    find_new_documents,
    format_version_name,
    read_document_lines,
    write_document_lines,
)
from dtef_pipeline.games.packs import pack
from dtef_pipeline.text.number_words import format_count
from resources.file_systems import write_text
from resources.settings import Settings, require_named_path
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.stage.file_notes import AddResult


def _list_documents(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    settings = Settings.read_environment()
    manifests = load_known_scenarios(settings)
    return {
        "scenarios": [_describe_scenario(manifest, manifests) for manifest in manifests.values()],
        "personas": [
            {"persona": persona.name, "status": persona.status, "name": persona.display_name, "traits": persona.traits}
            for persona in load_known_persona_versions(settings).values()
        ],
    }


def _check(folder: Path | None) -> CheckReport:
    extra_folder = None
    if folder is None and (extra_folder := Settings.read_environment().scenarios) is not None:
        require_named_path("DTEF_SCENARIOS", extra_folder, folder=True)
    packs = check_packs(folder or Path(__file__).resolve().parents[3], extra_folder)
    lines = []
    for files in packs:
        lines.append(
            f"{files.name}: {'not complete' if files.faults else 'complete'}{f' ({files.place})' if files.place else ''}"
        )
        lines += [f"  {fault}" for fault in files.faults]
    broken = sum(bool(files.faults) for files in packs)
    document = [
        {"scenario": files.name, "place": str(files.place or ""), "faults": list(map(str, files.faults))} for files in packs
    ]
    return CheckReport(document, [*lines, f"{format_count(len(packs), 'scenario')}, {broken} not complete"], not broken)


def _describe_scenario(manifest: ScenarioManifest, manifests: Mapping[str, ScenarioManifest]) -> dict[str, Any]:
    return {
        "scenario": manifest.id,
        "status": manifest.status,
        "version": manifest.version,
        "seats": manifest.seats,
        "seeds": f"{manifest.seeds.first}-{manifest.seeds.first + manifest.seeds.count - 1}",
        "baselines": list(_list_baselines(manifest.id, manifests)),
        "description": manifest.description,
    }


def _list_baselines(name: str, manifests: Mapping[str, ScenarioManifest]) -> Iterator[str]:
    try:
        yield from list_baselines(pack(name, manifests).scenario)
    except Exception as error:  # a third-party engine may raise any exception
        kind = "" if isinstance(error, DtefError) else f"{type(error).__name__}: "
        say(f"warning: {name} cannot be played: {kind}{error}", err=True)


def export_personas(file: Path) -> None:
    _export("persona", load_known_persona_versions(Settings.read_environment()).values(), file)


def export_scenarios(file: Path) -> None:
    _export("scenario", load_scenario_versions(Settings.read_environment()).values(), file)


def _export(kind: LineKind, documents: Collection[LineDocument], file: Path) -> None:
    """Write all documents. A file that ends in .gz is compressed, without a timestamp."""
    data = write_document_lines(kind, documents).encode()
    try:
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"{format_count(len(documents), kind)} in {file}")


def _read(warehouse: Warehouse, file: Path, user: str | None) -> list[Addition]:
    data = _read_bytes(file)
    kind = detect_line_kind(data)
    if kind == "persona" and user is not None:
        raise ConfigError("--by works with scenarios only, since no record is kept of personas, which are files")

    lines: list[str] = []

    def add(instance: Any) -> AddResult:
        from assets.stage.file_notes import AddResult

        lines.append(_add_personas(file, data) if kind == "persona" else _add_scenarios(file, data, user))
        return AddResult([], [])

    return [Addition(add, lambda _: AddReport(lines))]


def _add_scenarios(file: Path, data: bytes, user: str | None) -> str:
    """Add the new scenarios of a file to the response store, all or none. Returns a summary."""
    # These import the web framework and pandas.
    from dtef_pipeline.api.documents.document_history import SCENARIOS, import_documents
    from dtef_pipeline.cli.preference.preference_votes import get_user_name
    from resources.votes.game_documents import GameDocumentStore

    settings = Settings.read_environment()
    with GameDocumentStore(settings.responses_url) as store:
        result = import_documents(SCENARIOS, settings, store, data, str(file), user or get_user_name())
        name = store.database.name
    summary = ", ".join(format_count(count, kind.replace("_", " ")) for kind, count in result.added.items()) or "nothing"
    return f"{name}: {summary} added from {file}, {result.known:,} stored before"


def _add_personas(file: Path, data: bytes) -> str:
    """Write the new personas of a file, and return a summary. Everything is checked before anything is written."""
    settings = Settings.read_environment()
    folder = settings.personas
    if folder is None:
        raise ConfigError("DTEF_PERSONAS is not set; set it to the folder to write personas to")
    documents = read_document_lines("persona", data, str(file))
    new = find_new_documents(documents, load_known_persona_versions(settings).values(), str(file))
    files = {folder / f"{persona.id}.v{persona.version}.yaml": persona for persona in new.values()}
    for line, path in zip(new, files, strict=True):
        if path.exists():
            raise SourceError(
                f"{path} holds another persona; rename that file",
                where=str(file),
                line=line,
                arrived=format_version_name(new[line]),
                allowed="a version whose file is not there yet",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be made: {explain_missing_folder(folder, error)}") from error
    for path, persona in files.items():
        write_text(path, yaml.safe_dump(persona.model_dump(), allow_unicode=True, sort_keys=False, width=120))
    return f"{format_count(len(new), 'persona')} written to {folder}, {len(documents) - len(new)} stored before"


def _read_bytes(file: Path) -> bytes:
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(
            f"cannot be read: {error}", where=str(file), allowed="JSON lines, in a file .gz compressed"
        ) from error


GAMES_FILES = FamilyFiles(
    noun="scenario",
    adds="dtef games run",
    read=_read,
    check=_check,
    list_tables=_list_documents,
    counted_rows={"episodes": "episode"},
    list_hint="`dtef games play SCENARIO` plays one; a player is human, baseline/NAME, a model, or PERSONA@MODEL",
)
