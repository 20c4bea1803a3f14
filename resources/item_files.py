"""Notes on the sources of qa items, per part, in the warehouse next to the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dtef_pipeline.identity import digest, partition_key
from resources.notes import Notes


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
