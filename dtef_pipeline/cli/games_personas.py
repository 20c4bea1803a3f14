"""What `dtef games personas` does; the words are in `dtef_pipeline/cli/games_personas_group.py`."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import click
import yaml

from assets.games.known_games import known_persona_versions
from dtef_pipeline.documents import why_no_folder
from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.document_lines import new_personas, persona_lines, read_persona_lines
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.text.counted import counted
from resources.settings import Settings


def export(file: Path) -> None:
    """Write all personas; a file that ends in .gz is compressed, without the time of writing."""
    versions = known_persona_versions(Settings.from_environment())
    data = persona_lines(versions.values()).encode()
    try:
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"{counted(len(versions), 'persona')} in {file}")


def take_in(file: Path) -> int:
    """The exit code, 0. Everything is read and checked before anything is written."""
    settings = Settings.from_environment()
    folder = settings.personas
    if folder is None:
        raise ConfigError("DTEF_PERSONAS is not set: allowed: a folder, which personas are written to")
    given = read_persona_lines(_text_of(file), str(file))
    new = new_personas(given, known_persona_versions(settings), str(file))
    files = {folder / f"{one.id}.v{one.version}.yaml": one for one in new.values()}
    for line, path in zip(new, files, strict=True):
        if path.exists():
            raise SourceError(
                f"{path} holds another persona: give that file another name",
                where=str(file),
                line=line,
                arrived=new[line].name,
                allowed="a version whose file is not there yet",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be made: {why_no_folder(folder, error)}") from error
    _write(files)
    click.echo(f"{counted(len(new), 'persona')} written to {folder}, {len(given) - len(new)} there already")
    return 0


def _write(files: dict[Path, Persona]) -> None:
    """All files or, where one cannot be written, none."""
    drafts = {path.with_suffix(".draft"): path for path in files}
    try:
        for draft, path in drafts.items():
            draft.write_text(_as_yaml(files[path]), encoding="utf-8")
        for draft, path in drafts.items():
            draft.rename(path)
    except OSError as error:
        for path in (*drafts, *files):
            path.unlink(missing_ok=True)
        raise ConfigError(f"{error.filename} cannot be written: {error.strerror}") from error


def _as_yaml(persona: Persona) -> str:
    return yaml.safe_dump(persona.model_dump(), allow_unicode=True, sort_keys=False, width=120)


def _text_of(file: Path) -> str:
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(
            f"cannot be read: {error}", where=str(file), allowed="JSON lines, in a file .gz compressed"
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SourceError(f"not UTF-8 (byte 0x{error.object[error.start]:02x})", where=str(file), line=line) from error
