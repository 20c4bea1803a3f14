"""Where the partitions of a family come from that the engine assembles: a note per partition, in the warehouse beside the tables."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from resources.notes import Notes


@dataclass(frozen=True, slots=True)
class PartFile:
    """Where a partition comes from. Kept as a small JSON file in the warehouse."""

    key: str
    path: str
    content_hash: str


def open_part_notes(family: str) -> Notes[PartFile]:
    """What is noted of each partition of a family."""
    return Notes(f"{family}_files", PartFile, attrgetter("key"), f"`dtef {family} add` writes it again")
