"""Small JSON notes on each partition's source, in the warehouse next to the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.fs as pafs

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import digest

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
