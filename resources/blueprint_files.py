"""Notes on the source files of blueprints, in the warehouse next to the tables."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from dtef_pipeline.identity import digest
from resources.notes import Notes

if TYPE_CHECKING:
    from resources.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class RubricFile:
    """A blueprint's source file, stored as a small JSON file in the warehouse."""

    blueprint: str
    path: str
    models_dir: str | None
    """Folder of the model collections that the file may name."""
    skip_broken: bool
    """Whether parts with an error are left out; otherwise a file with one is not run."""
    content_hash: str

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted, renamed or moved."""
        return not Path(self.path).is_file()

    @property
    def removal(self) -> str:
        """The command that removes the blueprint, in backquotes for a sentence."""
        return f"`dtef rubric remove {shlex.quote(self.blueprint)}`"


def content_hash(path: Path, models_dir: Path | None) -> str:
    """Return the hash of the file and the collections it may name."""
    parts = [path.read_bytes()]
    if models_dir is not None:
        parts += [file.read_bytes() for file in sorted(models_dir.iterdir()) if file.is_file()]
    return digest(*(hashlib.sha256(part).hexdigest() for part in parts))


NOTES_FOLDER = "rubric_files"
BLUEPRINT_NOTES = Notes(NOTES_FOLDER, RubricFile, lambda file: file.blueprint, "`dtef rubric add` on the file writes it again")


def find_missing_below(warehouse: Warehouse, folders: Iterable[Path]) -> list[RubricFile]:
    """Return blueprints whose file was in one of the folders, at any depth, and no longer exists."""
    tops = [Path(normpath(folder.absolute())) for folder in folders]
    return [
        file
        for file in BLUEPRINT_NOTES.read_all(warehouse)
        if any(Path(normpath(file.path)).is_relative_to(top) for top in tops) and file.is_gone
    ]


def clear_tables(warehouse: Warehouse, tables: Iterable[str], family: str) -> None:
    """Remove all rows of tables over all blueprints, and the family's rows of tables over all families."""
    from resources.warehouse import build_family_levels

    for table in tables:
        folder = warehouse.folder(table, **build_family_levels(table, family))
        if warehouse.fs.get_file_info(folder).type == pafs.FileType.Directory:
            warehouse.fs.delete_dir(folder)
