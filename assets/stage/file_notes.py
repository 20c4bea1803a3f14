"""Files that partitions are read from, one or more each: adds their partitions, and reports to Dagster which files have new content."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import dagster as dg

from assets.stage.versions import build_observation_tags, read_observed_versions
from dtef_pipeline.family.record import Family
from dtef_pipeline.keys import Space
from dtef_pipeline.text.quantity_words import format_count
from resources.notes import Notes
from resources.warehouse import Warehouse

_TAKEN_AWAY_VERSION = "removed"
"""The data version of a file that is no longer known."""


class FileNote(Protocol):
    """Where a partition comes from."""

    @property
    def path(self) -> str: ...

    @property
    def content_hash(self) -> str: ...


class AddResult(NamedTuple):
    """What adding files came to."""

    keys: list[str]
    changed: list[str]
    """Those of them that are new, or of which a file has changed."""

    def line(self, noun: str, of: str = "") -> str:
        """What came of it, in words. `noun`: what a partition is called; `of`: what stands behind their number."""
        return f"{format_count(len(self.keys), noun)}{of} added, {len(self.changed)} new or changed"


def list_partitions(instance: dg.DagsterInstance, space: Space) -> list[str]:
    """The partitions, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(space.name))


def add_files(
    instance: dg.DagsterInstance, asset: dg.AssetKey, space: Space, files: Mapping[str, FileNote], keys: Sequence[str]
) -> AddResult:
    """Add partitions, and report to Dagster the data version of each whose files have new content. A second call changes nothing.

    `files`: by key, in the order of `keys`, which may name one twice.
    """
    known_keys = set(list_partitions(instance, space))
    if new := [key for key in keys if key not in known_keys]:
        instance.add_dynamic_partitions(space.name, new)
    versions = read_observed_versions(instance, asset, list(files))
    changed_keys = [key for key, file in files.items() if versions.get(key) != file.content_hash]
    for key in changed_keys:
        metadata = {"path": files[key].path, "content_hash": files[key].content_hash}
        tags = build_observation_tags(files[key].content_hash)
        instance.report_runless_asset_event(dg.AssetObservation(asset, partition=key, metadata=metadata, tags=tags))
    return AddResult(list(keys), changed_keys)


def add_noted(
    instance: dg.DagsterInstance, warehouse: Warehouse, family: Family, notes: Notes[Any], files: Sequence[FileNote]
) -> AddResult:
    """Note where partitions of a family come from, and make them known as of `add_files`."""
    for file in files:
        notes.write(warehouse, file)
    keys = [notes.key_of(file) for file in files]
    asset = dg.AssetKey(f"{family.name}_files")
    return add_files(instance, asset, family.space, dict(zip(keys, files, strict=True)), keys)


def remove_files(
    instance: dg.DagsterInstance,
    warehouse: Warehouse,
    space: Space,
    asset: str,
    forget: Callable[[str], object],
    keys: Sequence[str],
) -> None:
    """Take partitions away: their rows in every table that is kept by them, their notes (`forget`), and themselves.

    `asset`: of the files that they come from; empty: they come from none. The response store keeps what was asked, so that what is added
    again finds it. What was killed half way is done again.
    """
    known_keys = set(list_partitions(instance, space))
    tags = build_observation_tags(_TAKEN_AWAY_VERSION)  # Whoever adds the same file again adds something new.
    for key in keys:
        warehouse.drop(space, key)
        forget(key)
        if asset:
            observation = dg.AssetObservation(dg.AssetKey(asset), partition=key, metadata={"removed": True}, tags=tags)
            instance.report_runless_asset_event(observation)
        if key in known_keys:
            instance.delete_dynamic_partition(space.name, key)
