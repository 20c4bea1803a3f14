"""Small JSON notes on each partition's source file or folder, in the warehouse next to the tables."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.fs as pafs

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import digest, partition_key

if TYPE_CHECKING:
    from resources.warehouse import Warehouse

Note = TypeVar("Note")
"""A frozen dataclass of texts, numbers and flags."""


class Notes(Generic[Note]):
    """The notes of one kind, one per partition."""

    def __init__(
        self,
        folder: str,
        kind: Callable[..., Note],
        key: Callable[[Note], str],
        remedy: str,
        name: Callable[[str], str] = digest,
    ) -> None:
        """`folder`: below the warehouse's root; `key`: of a note; `remedy`: how to rewrite a broken note; `name`: of a key's file."""
        self.folder, self._kind, self.key_of, self._remedy, self._name = folder, kind, key, remedy, name

    def read(self, warehouse: Warehouse, key: str) -> Note | None:
        """Return the note of a partition, or None if it has none. Raises WarehouseError if the note is broken."""
        file = self._build_path(warehouse, key)
        return self._read(warehouse, file) if self._is_there(warehouse, file) else None

    def write(self, warehouse: Warehouse, note: Note) -> None:
        """Store a note, replacing the previous one."""
        content: Any = note
        warehouse.put(self._build_path(warehouse, self.key_of(note)), json.dumps(asdict(content), indent=2).encode())

    def delete(self, warehouse: Warehouse, key: str) -> None:
        """Delete the note of a partition, if any."""
        if self._is_there(warehouse, file := self._build_path(warehouse, key)):
            warehouse.fs.delete_file(file)

    def read_all(self, warehouse: Warehouse) -> list[Note]:
        """Return all notes by key, skipping broken ones."""
        folder = pafs.FileSelector(f"{warehouse.root}/{self.folder}", allow_not_found=True)
        infos = warehouse.fs.get_file_info(folder)
        files = [str(info.path) for info in infos if info.base_name.endswith(".json") and info.type == pafs.FileType.File]

        def read_or_none(file: str) -> Note | None:
            try:
                return self._read(warehouse, file)
            except WarehouseError:
                return None

        notes = warehouse.map_files(read_or_none, files)
        return sorted((note for note in notes if note is not None), key=self.key_of)

    def _build_path(self, warehouse: Warehouse, key: str) -> str:
        return f"{warehouse.root}/{self.folder}/{self._name(key)}.json"

    def _is_there(self, warehouse: Warehouse, file: str) -> bool:
        return bool(warehouse.fs.get_file_info(file).type == pafs.FileType.File)

    def _read(self, warehouse: Warehouse, file: str) -> Note:
        with warehouse.fs.open_input_stream(file) as stream:
            text = stream.read()
        try:
            return self._kind(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise WarehouseError(f"{file}: cannot be read: {error}; {self._remedy}") from error


@dataclass(frozen=True, slots=True)
class PartFile:
    """The source of a partition of a family that the engine assembles."""

    key: str
    path: str
    content_hash: str


def open_part_notes(family: str) -> Notes[PartFile]:
    """Return the notes of a family's partitions."""
    return Notes(f"{family}_files", PartFile, attrgetter("key"), f"`dtef {family} add` writes it again")


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


@dataclass(frozen=True, slots=True)
class QaSource:
    """A part's source, stored as a small JSON file in the warehouse."""

    suite: str
    part: str
    path: str
    """The file or folder that the part was added from."""
    corpus: str | None
    """The documents that its items refer to: a file or a folder; None: there are none."""
    suites: str | None
    """The user's own suites file, if one was given; None: the shipped suites."""
    content_hash: str

    @property
    def key(self) -> str:
        """The partition key."""
        return partition_key(self.suite, self.part)

    @property
    def is_gone(self) -> bool:
        """Whether the file or folder was deleted, renamed or moved."""
        return not Path(self.path).exists()


ITEM_NOTES: Notes[QaSource] = Notes("qa_files", QaSource, lambda source: source.key, "`dtef qa add` writes it again")
"""The note of each part."""


def source_hash(*paths: Path | None) -> str:
    """Return the hash of the content of files, and of all files in folders except dotfiles."""
    return digest(*(_hash_files(path) for path in paths if path is not None))


def _hash_files(path: Path) -> list[tuple[str, str]]:
    return [(name, hashlib.sha256(file.read_bytes()).hexdigest()) for name, file in _list_files(path)]


def _list_files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            yield file.relative_to(path).as_posix(), file


FileNote = RubricFile | QaSource | PartFile
"""The source of a partition."""
