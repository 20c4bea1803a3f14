"""The files of a folder with items and those with examples for prompts, by `test`, `dev` and the like in their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.qa.item_files.item_log import ItemLog, RowFault
from dtef_pipeline.qa.item_files.rows import TABLE_ENDINGS, make_unreadable_fault

ONE_PART = "all"
"""Part of suites without subjects."""
_SPLIT_NAME = re.compile(r"(?:(?P<name>.*)[_-])?(?P<split>test|dev|val|validation|train)", re.IGNORECASE)
_SHARD = re.compile(r"[-_.](?P<number>\d{1,9})-of-(?P<count>\d{1,9})(?:-[0-9a-f]{8,40})?\Z", re.IGNORECASE)
"""End of the name of one of several files of one table: `test-00000-of-00002`, optionally followed by a hash."""
_TEST = "test"


class SplitFiles(NamedTuple):
    """Files of a folder, in the order of their names."""

    items: list[Path]
    examples: list[Path]


def find_split_files(path: Path, log: ItemLog, *, examples: Sequence[str] = ("dev", "validation")) -> SplitFiles:
    """Find the files at a path: a single file, those of its folder `test`, or those in the folder itself that are of no other split.

    Args:
        path: a file, or a folder.
        log: receives an error if the folder has no such file.
        examples: splits to use as examples; the first that exists counts.
    """
    if path.is_dir():
        try:
            files = _split_folder(path, examples)
        except OSError as error:
            log.log_error(make_unreadable_fault(error), path)
            return SplitFiles([], [])
        if not files.items:
            log.log_error(RowFault("no_files", "the folder has no item files", allowed=TABLE_ENDINGS), path)
        _warn_of_missing_shards(files.items, log)
        return files
    try:
        neighbours = _split_folder(path.parent, examples).examples
    except OSError:  # a file may be read in a folder that may not be listed
        neighbours = []
    name, split = _split_file_name(path)
    items = _list_all_shards(path)
    _warn_of_missing_shards(items, log)
    siblings = [file for file in neighbours if _split_file_name(file)[0] == name and file != path]
    return SplitFiles(items, siblings if split in (_TEST, "") else [])


def name_without_split(path: Path) -> str:
    """Return a file's name without its split and ending: `abstract_algebra` for `abstract_algebra_test.csv`, `all` for `test.jsonl`."""
    return _split_file_name(path)[0] or ONE_PART


def is_later_shard(file: Path, before: Path) -> bool:
    """Return whether a file is a later shard of the same table."""
    shard, prior = _read_shard(file), _read_shard(before)
    is_same = file.parent == before.parent and _split_file_name(file) == _split_file_name(before)
    return shard is not None and prior is not None and is_same and shard.total == prior.total and shard.number > prior.number


class _Shard(NamedTuple):
    number: int
    total: int


def _read_shard(path: Path) -> _Shard | None:
    match = _SHARD.search(_strip_ending(path))
    return _Shard(int(match["number"]), int(match["count"])) if match else None


def _list_all_shards(path: Path) -> list[Path]:
    """Return the file, or all shards of its table, in order."""
    shard = _read_shard(path)
    if shard is None:
        return [path]
    try:
        neighbours = _list_tables(path.parent)
    except OSError:  # a file may be read in a folder that may not be listed
        return [path]
    return [file for file in neighbours if file == path or is_later_shard(file, path) or is_later_shard(path, file)]


def _warn_of_missing_shards(files: Sequence[Path], log: ItemLog) -> None:
    present: dict[tuple[tuple[str, str], int], list[Path]] = {}
    for file in files:
        if shard := _read_shard(file):
            present.setdefault((_split_file_name(file), shard.total), []).append(file)
    for (_, count), shards in present.items():
        if len(shards) < count:
            fault = RowFault(
                "shards", "further files of the same table are missing", found=f"{len(shards)} of {count}", allowed="all"
            )
            log.log_warning(fault, shards[0])


def _split_folder(folder: Path, examples: Sequence[str]) -> SplitFiles:
    test_folder = folder / _TEST
    tables = _list_tables(test_folder if test_folder.is_dir() else folder)
    siblings = [folder / split for split in examples] if test_folder.is_dir() else []
    siblings += [folder.parent / split for split in examples] if folder.name == _TEST else []
    example_files = next((files for sibling in siblings if (files := _list_tables(sibling))), [])
    example_files = example_files or next((files for split in examples if (files := _select_split(tables, split))), [])
    items = _select_split(tables, _TEST) or [file for file in tables if not _split_file_name(file)[1]]
    return SplitFiles(items, example_files)


def _select_split(files: Sequence[Path], split: str) -> list[Path]:
    """Return the files of a split; if some are named only by the split, only those."""
    matches = [file for file in files if _split_file_name(file)[1] == split]
    return [file for file in matches if not _split_file_name(file)[0]] or matches


def _list_tables(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted((file for file in files if file.name.lower().endswith(TABLE_ENDINGS)), key=lambda file: file.name)


@lru_cache(maxsize=1024)
def _split_file_name(path: Path) -> tuple[str, str]:
    """Return (name, split) of a file, each empty if the file name has none."""
    stem = _SHARD.sub("", _strip_ending(path))
    match = _SPLIT_NAME.fullmatch(stem)
    return (match["name"] or "", match["split"].lower()) if match else (stem, "")


def _strip_ending(path: Path) -> str:
    ending = next((ending for ending in TABLE_ENDINGS[::-1] if path.name.lower().endswith(ending)), "")
    return path.name[: len(path.name) - len(ending)] if ending else path.stem
