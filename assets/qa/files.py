"""The files that items come from: a partition per part of a suite, and what is noted of it in the warehouse."""

from collections.abc import Sequence

import dagster as dg

from assets.engine.part_files import build_file_source
from assets.stage.file_notes import AddResult, add_noted, list_partitions
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.qa.tables import QA_SPACE
from resources.item_files import ITEM_NOTES, QaSource
from resources.warehouse import Warehouse

DATASET_PART = dg.DynamicPartitionsDefinition(name=QA_SPACE.name)
QA_GROUP = {"group_name": "qa"}
"""Where the assets of the family stand in the UI."""

qa_files = build_file_source(
    "qa",
    DATASET_PART,
    """The file or folder that each part of a suite comes from: one partition per part, observed when it is added (`dtef qa add`).
    Its data version is a hash of the files and of the documents that were given with them: where it is newer than what `qa_items` was made
    from, that partition is stale at once.""",
)


def add_parts(instance: dg.DagsterInstance, warehouse: Warehouse, sources: Sequence[QaSource]) -> AddResult:
    """Make parts known: their notes, their partitions, and which of them hold something new. Done again, it changes nothing."""
    return add_noted(instance, warehouse, FAMILY_BY_NAME["qa"], ITEM_NOTES, sources)


def list_known_parts(instance: dg.DagsterInstance) -> list[str]:
    """The partitions, in the order in which they were added."""
    return list_partitions(instance, QA_SPACE)
