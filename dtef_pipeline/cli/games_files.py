"""Implements `dtef games export` and `import`; the help text is in `dtef_pipeline/cli/games_files_group.py`."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from pathlib import Path

import click
import yaml

from assets.games.known_games import known_persona_versions, known_scenario_versions
from dtef_pipeline.documents import why_no_folder
from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.document_lines import (
    LineDocument,
    LineKind,
    document_lines,
    new_documents,
    read_document_lines,
    version_name,
)
from dtef_pipeline.text.counted import counted
from resources.settings import Settings


def export_personas(file: Path) -> None:
    """Write all personas; a file that ends in .gz is compressed, without the time of writing."""
    _export("persona", known_persona_versions(Settings.from_environment()).values(), file)


def export_scenarios(file: Path) -> None:
    """Likewise, all scenarios."""
    _export("scenario", known_scenario_versions(Settings.from_environment()).values(), file)


def _export(kind: LineKind, documents: Collection[LineDocument], file: Path) -> None:
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
    from resources.game_documents import GameDocumentStore

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
