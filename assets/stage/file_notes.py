"""Files that partitions are read from: adds their partitions, and reports to Dagster which files have new content."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import dagster as dg

from assets.stage.versions import build_observation_tags, read_observed_versions
from dtef_pipeline.family.record import Family
from dtef_pipeline.keys import Space
from dtef_pipeline.text.number_words import format_count
from resources.notes import FileNote, Notes
from resources.warehouse import Warehouse

_TAKEN_AWAY_VERSION = "removed"
"""The data version of a removed file."""


class AddResult(NamedTuple):
    """The result of adding files."""

    keys: list[str]
    changed: list[str]
    """The keys that are new, or have a changed file."""

    def line(self, noun: str, suffix: str = "") -> str:
        """Describe the result. `noun`: the noun for a partition; `suffix`: follows their number."""
        return f"{format_count(len(self.keys), noun)}{suffix} added, {len(self.changed)} new or changed"


def list_partitions(instance: dg.DagsterInstance, space: Space) -> list[str]:
    """Return the partitions in the order in which they were added."""
    return list(instance.get_dynamic_partitions(space.name))


def add_files(
    instance: dg.DagsterInstance, asset: dg.AssetKey, space: Space, files: Mapping[str, FileNote], keys: Sequence[str]
) -> AddResult:
    """Add partitions, and report to Dagster the data version of each whose files have new content. Repeating it changes nothing.

    `files`: by key, in the order of `keys`, which may contain duplicates.
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
    """Write the notes of a family's partitions, and register them (see `add_files`)."""
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
    """Remove partitions: their rows in every table by partition, their notes (`forget`), and themselves.

    `asset`: of their files; empty if there are none. The response store keeps its responses for partitions added again. An interrupted call
    can be repeated.
    """
    known_keys = set(list_partitions(instance, space))
    tags = build_observation_tags(_TAKEN_AWAY_VERSION)  # Adding the same file again then counts as new.
    for key in keys:
        warehouse.drop(space, key)
        forget(key)
        if asset:
            observation = dg.AssetObservation(dg.AssetKey(asset), partition=key, metadata={"removed": True}, tags=tags)
            instance.report_runless_asset_event(observation)
        if key in known_keys:
            instance.delete_dynamic_partition(space.name, key)
