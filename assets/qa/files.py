"""The files that items come from: a partition per part of a suite, and what is noted of it in the warehouse."""

import dagster as dg

from assets.engine.part_files import build_file_source
from dtef_pipeline.qa.tables import QA_SPACE

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
