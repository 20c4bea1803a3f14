"""The source file or folder of each ingested item: one small manifest each, stored in the warehouse."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import digest
from resources.notes import Notes
from resources.warehouse import Warehouse

UNFINISHED = (".part", ".partial", ".tmp", ".filepart", ".crdownload", ".download")
"""Endings of file names that programs use while a copy is incomplete."""
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Source:
    """A round's source, how it was ingested, and its content hash."""

    round: str
    path: str
    adapter: str
    min_n: int
    content_hash: str
    landing: int = 0
    """How often the source was new or changed. A return to earlier content counts again."""
    landed: bool = False
    """Whether the sensor registered it and starts a run, instead of `dtef add`."""
    design_effect: float = 1.0
    """Kish's design effect as stated, 1 or more: sampled people per person of a simple random sample."""
    allowed: tuple[str, ...] = ()
    """Faults that are allowed in it, by the family reader's names."""


def list_source_files(path: Path) -> list[Path]:
    """Return the file, or all non-hidden files below the folder, sorted."""
    if not path.is_dir():
        return [path]
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted(file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts))


def compute_fingerprint(path: Path) -> str:
    """Return a cheap hash of names, sizes and modification times. While it stays the same, nothing need be read again."""
    looks = [
        (str(file.relative_to(path.parent)), (state := file.stat()).st_size, state.st_mtime_ns)
        for file in list_source_files(path)
    ]
    return digest(*looks)


def content_hash(path: Path) -> str:
    """Return 32 digits of SHA-256 over names and bytes of the file, or of all non-hidden files below the folder."""
    total = hashlib.sha256()
    for file in list_source_files(path):
        with file.open("rb") as stream:
            file_hash = hashlib.file_digest(stream, "sha256").digest()
        total.update(str(file.relative_to(path.parent)).encode() + b"\0" + file_hash)
    return total.hexdigest()[:32]


def is_still_arriving(path: Path) -> bool:
    """Return whether a file has the name of an unfinished copy."""
    return any(file.name.lower().endswith(UNFINISHED) for file in list_source_files(path))


ROUND_NOTES: Notes[Source] = Notes(
    "sources",
    lambda **fields: Source(**{**fields, "allowed": tuple(fields.get("allowed", ()))}),
    lambda source: source.round,
    "`dtef add PATH --round ROUND` writes it again",
    name=str,
)


class Sources(Generic[Read]):
    """The manifests under `<warehouse>/sources/`. `reader`: reads a round from a path."""

    def __init__(self, warehouse: Warehouse, reader: Callable[[Path, str], Read]) -> None:
        self.warehouse, self._reader = warehouse, reader

    def register(
        self,
        round_id: str,
        path: Path,
        *,
        adapter: str,
        min_n: int,
        checksum: str | None = None,
        allowed: Iterable[str] = (),
        design_effect: float | None = None,
    ) -> Source:
        """Record the source of a round, replacing even a broken manifest.

        `checksum`: the `content_hash` at which the sensor found it; None if ingested by hand. `design_effect`: see `find_design_effect`.
        """
        before = self.find_previous(round_id)
        file_hash = checksum or content_hash(path)
        source = Source(
            round_id,
            str(path.absolute()),
            adapter,
            min_n,
            file_hash,
            design_effect=self.find_design_effect(round_id, design_effect),
            allowed=tuple(sorted(allowed)),
        )
        is_changed = before is None or replace(before, landing=0, landed=False) != source
        count = before.landing if before else 0
        source = replace(source, landing=count + is_changed, landed=checksum is not None)
        ROUND_NOTES.write(self.warehouse, source)
        return source

    def find_design_effect(self, round_id: str, value: float | None) -> float:
        """Return `value`, or if None the design effect of the last ingest of the same sample, else 1."""
        if value is not None:
            return value
        before = self.find_previous(round_id)
        return before.design_effect if before else 1.0

    def get(self, round_id: str) -> Source | None:
        """Return a round's source, or None if never ingested. Raises WarehouseError if its manifest is broken."""
        return ROUND_NOTES.read(self.warehouse, round_id)

    def find_previous(self, round_id: str) -> Source | None:
        """Return the source that a new one replaces, or None, also for a broken manifest, which need not be preserved."""
        try:
            return self.get(round_id)
        except WarehouseError:
            return None

    def read(self, round_id: str) -> tuple[Source, Read]:
        """Return the round's source with the reader's fresh result.

        Raises WarehouseError if the round was never ingested or its source is gone.
        """
        source = self.get(round_id)
        if source is None:
            raise WarehouseError(f"round {round_id} has no source: register it with `dtef add PATH --round {round_id}`")
        if not Path(source.path).exists():
            raise WarehouseError(
                f"the source of round {round_id} does not exist: {source.path}; restore it, or ingest the round from its new path"
            )
        return source, self._reader(Path(source.path), round_id)
