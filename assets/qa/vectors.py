"""Stored vectors of chunks and queries; each text is embedded only once."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.asking.models import LOCAL_EMBEDDER
from dtef_pipeline.qa.tables import QA_SPACE, QA_VECTORS
from resources.warehouse import Warehouse


class VectorCache:
    """The embedder of a part's texts; vectors of earlier runs are read from `qa_vectors`."""

    def __init__(self, warehouse: Warehouse, key: str) -> None:
        self._warehouse, self._at = warehouse, QA_SPACE.levels(key)
        self._is_new = False

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        """Return stored vectors by hash of the text, read only when needed."""
        rows = self._warehouse.read_or_empty("qa_vectors", **self._at).to_pylist()
        return {row["text_hash"]: row for row in rows if row["embedder"] == LOCAL_EMBEDDER}

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, (texts, dimensions)."""
        from resources.gateway.embedder import embed_locally

        by_hash = {hash_text(text): text for text in texts}
        if missing := {key: text for key, text in by_hash.items() if key not in self._rows}:
            self._is_new = True
            for key, embedding in zip(missing, embed_locally(list(missing.values())), strict=True):
                vector_row = {
                    "embedder": LOCAL_EMBEDDER,
                    "text_hash": key,
                    "vector": embedding.vector.tolist(),
                    "windows": embedding.windows,
                }
                self._rows[key] = {**self._at, **vector_row}
        return np.array([self._rows[hash_text(text)]["vector"] for text in texts], dtype=np.float32)

    def keep(self) -> None:
        """Write the new vectors in addition to the stored ones."""
        if self._is_new:
            rows = [self._rows[key] for key in sorted(self._rows)]
            self._warehouse.write("qa_vectors", pa.Table.from_pylist(rows, schema=QA_VECTORS), **self._at)
            self._is_new = False
