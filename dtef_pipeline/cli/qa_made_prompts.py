"""The prompts that a run would make of the items of a part, for commands that ask nobody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.qa.item_rows import stored_examples, stored_items
from dtef_pipeline.qa.prompt_rows import AskedHow, cited_prompts, plain_prompts
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.embedded import retriever_of
from resources.table_reader import TableReader


def made_prompts(reader: TableReader, how: AskedHow, key: str, rows: pa.Table) -> pa.Table:
    """Rows of `qa_prompts`, of these rows of `qa_items`; what is stored of prompts is not looked at, since it may be of other items."""
    at = QA_SPACE.levels(key)
    items = stored_items(rows)
    documents = reader.rows("qa_documents", **at)
    if len(documents):
        return cited_prompts(items, documents, how, retriever_of(how.retriever, documents, _embedded)).qa_prompts
    examples = stored_examples(reader.rows("qa_examples", **at), items[0].type if items else "")
    return plain_prompts(items, examples, how).qa_prompts


def _embedded(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    from resources.gateway.local_embedder import embed_locally

    return np.array([one.vector for one in embed_locally(texts)], dtype=np.float32)
