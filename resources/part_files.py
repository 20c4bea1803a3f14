"""Notes on the sources of partitions in families that the engine assembles, in the warehouse next to the tables."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from resources.notes import Notes


@dataclass(frozen=True, slots=True)
class PartFile:
    """A partition's source, stored as a small JSON file in the warehouse."""

    key: str
    path: str
    content_hash: str


def open_part_notes(family: str) -> Notes[PartFile]:
    """Return the notes of a family's partitions."""
    return Notes(f"{family}_files", PartFile, attrgetter("key"), f"`dtef {family} add` writes it again")
