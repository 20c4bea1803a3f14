"""`dtef games list`, `check`, `export` and `import`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import click
import pandas as pd
import yaml

from assets.games.known_games import known_persona_versions, known_scenario_versions, known_scenarios
from dtef_pipeline.cli.terminal import say, terminal_fit
from dtef_pipeline.documents import why_no_folder
from dtef_pipeline.errors import ConfigError, DtefError, SourceError
from dtef_pipeline.games.baselines import baselines_of
from dtef_pipeline.games.document_lines import (
    LineDocument,
    LineKind,
    document_lines,
    new_documents,
    read_document_lines,
    version_name,
)
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.pack_files import check_packs
from dtef_pipeline.games.packs import pack
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.settings import Settings

_LISTED_ALWAYS, _LISTED_WITH_ROOM = ("scenario", "persona", "status", "version"), ("description", "traits")


def list_games(as_json: bool) -> None:
    """Scenarios, then personas."""
    settings = Settings.from_environment()
    manifests = known_scenarios(settings)
    scenarios = [_scenario(one, manifests) for one in manifests.values()]
    personas = [
        {"persona": one.name, "status": one.status, "name": one.display_name, "traits": one.traits}
        for one in known_persona_versions(settings).values()
    ]
    if as_json:
        click.echo(json.dumps({"scenarios": scenarios, "personas": personas}, ensure_ascii=False))
        return
    for rows in (scenarios, personas):
        if rows:
            frame = pd.DataFrame([{name: _in_words(value) for name, value in row.items()} for row in rows])
            kept, first_out = ([name for name in names if name in frame] for names in (_LISTED_ALWAYS, _LISTED_WITH_ROOM))
            click.echo(render(frame, "table", fit=terminal_fit(kept, first_out)) + "\n")
    say("`dtef games play SCENARIO` plays one; a player is human, baseline/NAME, a model, or PERSONA@MODEL")


def check(folder: Path | None) -> int:
    """The exit code: 1 where a pack is not whole."""
    own = None
    if folder is None and (own := Settings.from_environment().scenarios) is not None and not own.is_dir():
        raise ConfigError(f"DTEF_SCENARIOS names {own}, which is not a folder")
    packs = check_packs(folder or Path(__file__).resolve().parents[2], own)
    for one in packs:
        click.echo(f"{one.name}: {'whole' if not one.faults else 'not whole'}{f' ({one.place})' if one.place else ''}")
        for fault in one.faults:
            click.echo(f"  {fault}")
    broken = sum(bool(one.faults) for one in packs)
    click.echo(f"{counted(len(packs), 'scenario')}, {broken} not whole")
    return 1 if broken else 0


def _scenario(one: ScenarioManifest, manifests: Mapping[str, ScenarioManifest]) -> dict[str, Any]:
    return {
        "scenario": one.id,
        "status": one.status,
        "version": one.version,
        "seats": one.seats,
        "seeds": f"{one.seeds.first}-{one.seeds.first + one.seeds.count - 1}",
        "baselines": list(_baselines(one.id, manifests)),
        "description": one.description,
    }


def _baselines(name: str, manifests: Mapping[str, ScenarioManifest]) -> Iterator[str]:
    try:
        yield from baselines_of(pack(name, manifests).scenario)
    except Exception as error:  # an engine of somebody else's may fail in any way
        kind = "" if isinstance(error, DtefError) else f"{type(error).__name__}: "
        say(f"warning: {name} cannot be played: {kind}{error}", err=True)


def _in_words(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def export(what: Literal["personas", "scenarios"], file: Path) -> None:
    """Write all of them; a file that ends in .gz is compressed, without the time of writing."""
    settings = Settings.from_environment()
    kind: LineKind = "persona" if what == "personas" else "scenario"
    documents: Collection[LineDocument] = (
        known_persona_versions(settings).values() if what == "personas" else known_scenario_versions(settings).values()
    )
    data = document_lines(kind, documents).encode()
    try:
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"{counted(len(documents), kind)} in {file}")


def import_scenarios(file: Path, who: str | None) -> None:
    """Add those of a file to the response store: all that are not there yet, or none."""
    # These bring the web framework and pandas.
    from dtef_pipeline.api.scenario_routes import SCENARIOS
    from dtef_pipeline.api.versioned import import_documents
    from dtef_pipeline.cli.preference_votes import user_name
    from resources.votes.game_documents import GameDocumentStore

    settings = Settings.from_environment()
    with GameDocumentStore(settings.responses_url) as store:
        done = import_documents(SCENARIOS, settings, store, _bytes_of(file), str(file), who or user_name())
        name = store.database.name
    added = ", ".join(counted(count, kind.replace("_", " ")) for kind, count in done.added.items()) or "nothing"
    click.echo(f"{name}: {added} added from {file}, {done.known:,} there already")


def import_personas(file: Path) -> int:
    """The exit code, 0. Everything is read and checked before anything is written."""
    settings = Settings.from_environment()
    folder = settings.personas
    if folder is None:
        raise ConfigError("DTEF_PERSONAS is not set: allowed: a folder, which personas are written to")
    given = read_document_lines("persona", _bytes_of(file), str(file))
    new = new_documents(given, known_persona_versions(settings).values(), str(file))
    files = {folder / f"{one.id}.v{one.version}.yaml": one for one in new.values()}
    for line, path in zip(new, files, strict=True):
        if path.exists():
            raise SourceError(
                f"{path} holds another persona: give that file another name",
                where=str(file),
                line=line,
                arrived=version_name(new[line]),
                allowed="a version whose file is not there yet",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be made: {why_no_folder(folder, error)}") from error
    _write(files)
    click.echo(f"{counted(len(new), 'persona')} written to {folder}, {len(given) - len(new)} there already")
    return 0


def _write(files: dict[Path, LineDocument]) -> None:
    """All files or, where one cannot be written, none."""
    drafts = {path.with_suffix(".draft"): path for path in files}
    try:
        for draft, path in drafts.items():
            draft.write_text(_yaml_of(files[path]), encoding="utf-8")
        for draft, path in drafts.items():
            draft.rename(path)
    except OSError as error:
        for path in (*drafts, *files):
            path.unlink(missing_ok=True)
        raise ConfigError(f"{error.filename} cannot be written: {error.strerror}") from error


def _yaml_of(document: LineDocument) -> str:
    return yaml.safe_dump(document.model_dump(), allow_unicode=True, sort_keys=False, width=120)


def _bytes_of(file: Path) -> bytes:
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(
            f"cannot be read: {error}", where=str(file), allowed="JSON lines, in a file .gz compressed"
        ) from error
