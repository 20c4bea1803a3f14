"""Notes on the sources of qa items, per part, in the warehouse beside the tables."""

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
    """The file, or the folder of files, that it was added from."""
    corpus: str | None
    """The documents that it is about: a file or a folder; None: it is about none."""
    suites: str | None
    """The file of the user's own suites that was given with it; None: those that are shipped."""
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
"""What is noted of each part."""


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
