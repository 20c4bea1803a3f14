"""The files of items: a partition per part of a suite, and its record in the warehouse."""

import dagster as dg

from assets.engine.part_files import build_file_source
from dtef_pipeline.qa.tables import QA_SPACE

DATASET_PART = dg.DynamicPartitionsDefinition(name=QA_SPACE.name)
QA_GROUP = {"group_name": "qa"}
"""Group of the family's assets in the UI."""

qa_files = build_file_source(
    "qa",
    DATASET_PART,
    """The file or folder of each part of a suite: one partition per part, observed when it is added (`dtef qa add`). Its data version is a
    hash of the files and of the documents added with them; if it changes, the partition of `qa_items` becomes stale at once.""",
)
