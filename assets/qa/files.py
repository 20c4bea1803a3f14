"""The files that items come from: a partition per part of a suite, and what is noted of it in the warehouse."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import dagster as dg

from assets.stage.partitions import OWNERS
from assets.stage.versions import observation_tags, observed_versions
from dtef_pipeline.qa.space import QA_SPACE
from resources.item_files import ITEM_NOTES, QaSource
from resources.warehouse import Warehouse

DATASET_PART = dg.DynamicPartitionsDefinition(name=QA_SPACE.name)
QA_GROUP = {"group_name": "qa"}
"""Where the assets of the family stand in the UI."""
_PART_TAKEN_AWAY = "removed"
"""The data version of a file that is not known any more."""

qa_files = dg.AssetSpec(
    "qa_files",
    description="""The file or folder that each part of a suite comes from: one partition per part, observed when it is added (`dtef qa add`).
    Its data version is a hash of the files and of the documents that were given with them: where it is newer than what `qa_items` was made
    from, that partition is stale at once.""",
    group_name="qa",
    owners=OWNERS,
    kinds={"file"},
    partitions_def=DATASET_PART,
)


class AddedParts(NamedTuple):
    """What adding files came to."""

    keys: list[str]
    changed: list[str]
    """Those of them that are new, or of which a file has changed."""


def add_parts(instance: dg.DagsterInstance, warehouse: Warehouse, sources: Sequence[QaSource]) -> AddedParts:
    """Make parts known: their notes, their partitions, and which of them hold something new. Done again, it changes nothing."""
    keys = [source.key for source in sources]
    for source in sources:
        ITEM_NOTES.write(warehouse, source)
    known = set(known_parts(instance))
    if new := [key for key in keys if key not in known]:
        instance.add_dynamic_partitions(QA_SPACE.name, new)
    return AddedParts(keys, _observe_parts(instance, {source.key: source for source in sources}))


def remove_parts(instance: dg.DagsterInstance, warehouse: Warehouse, keys: Sequence[str]) -> None:
    """Take parts away: their rows in every table that is kept by part, their notes and their partitions.

    The response store keeps what was asked, so that a part that is added again finds it. What was killed half way is done again.
    """
    known = set(known_parts(instance))
    for key in keys:
        warehouse.drop(QA_SPACE, key)
        ITEM_NOTES.delete(warehouse, key)
        # Whoever adds the same file again adds something new.
        instance.report_runless_asset_event(
            dg.AssetObservation(
                qa_files.key, partition=key, metadata={"removed": True}, tags=observation_tags(_PART_TAKEN_AWAY)
            )
        )
        if key in known:
            instance.delete_dynamic_partition(QA_SPACE.name, key)


def known_parts(instance: dg.DagsterInstance) -> list[str]:
    """The partitions, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(QA_SPACE.name))


def _observe_parts(instance: dg.DagsterInstance, sources: Mapping[str, QaSource]) -> list[str]:
    """Tell Dagster the data version of each part whose files hold something new; which those are."""
    seen = observed_versions(instance, qa_files.key, list(sources))
    changed = [key for key, source in sources.items() if seen.get(key) != source.content_hash]
    for key in changed:
        found = {"path": sources[key].path, "content_hash": sources[key].content_hash}
        tags = observation_tags(sources[key].content_hash)
        instance.report_runless_asset_event(dg.AssetObservation(qa_files.key, partition=key, metadata=found, tags=tags))
    return changed
