"""Where the partitions of a family come from that the engine assembles: a note per partition, in the warehouse beside the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from resources.notes import Notes


@dataclass(frozen=True, slots=True)
class PartFile:
    """Where a partition comes from. Kept as a small JSON file in the warehouse."""

    key: str
    path: str
    content_hash: str


@cache
def part_notes(family: str) -> Notes[PartFile]:
    """What is noted of each partition of a family."""
    key: Callable[[PartFile], str] = lambda file: file.key  # noqa: E731 - a function that is told apart by nothing
    return Notes(f"{family}_files", PartFile, key, f"`dtef {family} add` writes it anew")


def is_there(file: PartFile) -> bool:
    """Whether the file is where it was added from."""
    return Path(file.path).is_file()
