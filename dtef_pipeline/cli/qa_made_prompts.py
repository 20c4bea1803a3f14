"""The prompts that a run would make of the items of a part, for commands that ask nobody."""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.qa.prompt_rows import AskedHow, part_prompts
from dtef_pipeline.qa.space import QA_SPACE
from resources.table_reader import TableReader


def made_prompts(reader: TableReader, how: AskedHow, key: str, rows: pa.Table) -> pa.Table:
    """Rows of `qa_prompts`, of these rows of `qa_items`; what is stored of prompts is not looked at, since it may be of other items."""
    from assets.qa.vectors import KeptVectors

    at = QA_SPACE.levels(key)
    examples, documents = (reader.rows(name, **at) for name in ("qa_examples", "qa_documents"))
    return part_prompts(rows, examples, documents, how, KeptVectors(reader.warehouse, key)).qa_prompts
