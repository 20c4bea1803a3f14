"""The prompts that a run would make of the items of a part, for commands that ask nobody."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from dtef_pipeline.qa.prompt_rows import AskedHow, part_prompts
from dtef_pipeline.qa.space import QA_SPACE
from resources.settings import Settings
from resources.warehouse import Warehouse


def made_prompts(warehouse: Warehouse, how: AskedHow, key: str, rows: pa.Table) -> pa.Table:
    """Rows of `qa_prompts`, of these rows of `qa_items`; what is stored of prompts is not looked at, since it may be of other items.

    Those that wait for a server to look something up have no messages.
    """
    from assets.qa.lookups import KeptLookUps
    from assets.qa.vectors import KeptVectors

    at = QA_SPACE.levels(key)
    examples, documents = (warehouse.rows(name, **at) for name in ("qa_examples", "qa_documents"))
    vectors, look_ups = KeptVectors(warehouse, key), KeptLookUps(warehouse, key)
    return part_prompts(
        rows, examples, documents, how, vectors, partial(look_ups.expected, Settings.from_environment())
    ).qa_prompts
