"""Which files of a folder hold items, and which the examples that prompts may show: told by `test`, `dev` and the like in their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.qa.item_files.loaded import ItemLog, RowFault
from dtef_pipeline.qa.item_files.rows import TABLE_ENDINGS, unreadable

ONE_PART = "all"
"""The part of items that are not divided."""
_SPLIT_NAME = re.compile(
    r"(?:(?P<name>.*)[_-])?(?P<split>test|dev|val|validation|train)(?:-\d{1,9}-of-\d{1,9})?", re.IGNORECASE
)
_TEST = "test"


class SplitFiles(NamedTuple):
    """The files of a folder, in the order of their names."""

    items: list[Path]
    examples: list[Path]


def files_of_split(path: Path, log: ItemLog, *, examples: Sequence[str] = ("dev", "validation")) -> SplitFiles:
    """The files at a path: those of the folder `test` in it, else those in the folder itself that are of no other split; or the one file.

    Args:
        path: a file, or a folder.
        log: gets an error when the folder has no such file.
        examples: the splits that are shown as examples; the first that is there counts.
    """
    if path.is_dir():
        try:
            found = _in_folder(path, examples)
        except OSError as error:
            log.error(unreadable(error), path)
            return SplitFiles([], [])
        if not found.items:
            log.error(RowFault("no_files", "the folder has no file of items", allowed=TABLE_ENDINGS), path)
        return found
    try:
        beside = _in_folder(path.parent, examples).examples
    except OSError:  # a file may be read in a folder that may not be listed
        beside = []
    name, split = _parts_of(path)
    same = [file for file in beside if _parts_of(file)[0] == name and file != path]
    return SplitFiles([path], same if split in (_TEST, "") else [])


def name_without_split(path: Path) -> str:
    """What a file is called less its split and its ending: `abstract_algebra` of `abstract_algebra_test.csv`, `all` of `test.jsonl`."""
    return _parts_of(path)[0] or ONE_PART


def _in_folder(folder: Path, examples: Sequence[str]) -> SplitFiles:
    within = folder / _TEST
    here = _tables(within if within.is_dir() else folder)
    apart = [folder / split for split in examples] if within.is_dir() else []
    apart += [folder.parent / split for split in examples] if folder.name == _TEST else []
    shown = next((files for other in apart if (files := _tables(other))), [])
    shown = shown or next((files for split in examples if (files := _of_split(here, split))), [])
    items = _of_split(here, _TEST) or [file for file in here if not _parts_of(file)[1]]
    return SplitFiles(items, shown)


def _of_split(files: Sequence[Path], split: str) -> list[Path]:
    """The files of a split: where one is called by the split alone, only such files."""
    found = [file for file in files if _parts_of(file)[1] == split]
    return [file for file in found if not _parts_of(file)[0]] or found


def _tables(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted((file for file in files if file.name.lower().endswith(TABLE_ENDINGS)), key=lambda file: file.name)


@lru_cache(maxsize=1024)
def _parts_of(path: Path) -> tuple[str, str]:
    """(name, split) of a file, each empty where the file's name says none."""
    ending = next((ending for ending in TABLE_ENDINGS[::-1] if path.name.lower().endswith(ending)), "")
    stem = path.name[: len(path.name) - len(ending)] if ending else path.stem
    found = _SPLIT_NAME.fullmatch(stem)
    return (found["name"] or "", found["split"].lower()) if found else (stem, "")
