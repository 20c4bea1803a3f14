"""Finding chunks by what they mean, as an embedder has it, and by meaning and words together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.asking.embeddings import unit
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.bm25 import Bm25Retriever
from dtef_pipeline.qa.transcripts.retriever import (
    DocumentIndex,
    DocumentScores,
    EmbedTexts,
    Retrieval,
    Retriever,
    ScoresDocuments,
    checked_k,
)

RETRIEVERS = ("bm25", "embedding", "hybrid")
"""The retrievers that search a table of chunks."""
FUSION_CONSTANT = 60
"""Added to each rank: how little the first few places differ. Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion."""


class EmbeddingRetriever:
    """The cosine of the vectors of question and chunk, -1 to 1."""

    name = "embedding"
    is_remote = False

    def __init__(self, documents: pa.Table | DocumentIndex, embed: EmbedTexts, vectors: npt.NDArray[Any] | None = None) -> None:
        """`vectors`: those of `index.texts`, (chunks, dimensions), in that order, where they are known already; else `embed` makes them.

        Raises ConfigError where there are no documents, and for vectors of another shape or with numbers that are not finite.
        """
        self.index = documents if isinstance(documents, DocumentIndex) else DocumentIndex(documents)
        self._embed = embed
        texts = self.index.texts
        self._vectors = _unit_vectors(embed(texts) if vectors is None else vectors, len(texts))

    def scores(self, text: str) -> DocumentScores:
        """The cosine of every chunk with the text, in the order of the index."""
        (vector,) = _unit_vectors(self._embed([text]), 1, self._vectors.shape[1])
        cosines: DocumentScores = self._vectors @ vector
        return cosines

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k nearest chunks among those whose metadata equal `where`; all, where there are fewer. Raises as `Bm25Retriever.retrieve`."""
        checked_k(k)
        rows = self.index.rows(where)
        return self.index.nearest(self.scores(text)[rows], rows, k)


class HybridRetriever:
    """Reciprocal rank fusion: the sum over retrievers of 1 / (60 + rank), rank from 1 among the chunks that the filter leaves."""

    name = "hybrid"
    is_remote = False

    def __init__(self, index: DocumentIndex, parts: Sequence[ScoresDocuments]) -> None:
        """`parts`: what the ranks are taken from, all over this index."""
        self.index, self._parts = index, tuple(parts)

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k chunks of the best fused ranks; all, where there are fewer. Raises as `Bm25Retriever.retrieve`."""
        checked_k(k)
        rows = self.index.rows(where)
        fused = np.zeros(len(rows))
        for part in self._parts:
            fused += 1.0 / (FUSION_CONSTANT + _ranks(part.scores(text)[rows]))
        return self.index.nearest(fused, rows, k)


def retriever_of(name: str, documents: pa.Table, embed: EmbedTexts | None = None) -> Retriever:
    """The retriever of a name over a table of chunks. Raises ConfigError for a name that is none of RETRIEVERS, and without an embedder."""
    if name not in RETRIEVERS:
        raise ConfigError(f"retriever {name!r}: allowed: {', '.join(RETRIEVERS)}")
    if name == Bm25Retriever.name:
        return Bm25Retriever(documents)
    if embed is None:
        raise ConfigError(f"retriever {name!r} needs an embedder: allowed without one: {Bm25Retriever.name}")
    index = DocumentIndex(documents)
    by_meaning = EmbeddingRetriever(index, embed)
    return by_meaning if name == EmbeddingRetriever.name else HybridRetriever(index, (Bm25Retriever(index), by_meaning))


def _ranks(scores: DocumentScores) -> npt.NDArray[np.intp]:
    """The place of each score from the highest down, from 1; of equal ones the first comes first."""
    ranks = np.empty(len(scores), np.intp)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _unit_vectors(vectors: npt.NDArray[Any], count: int, dimensions: int | None = None) -> npt.NDArray[np.float64]:
    """The vectors at length 1. Raises ConfigError for another shape than (count, dimensions) and for what is not finite."""
    given = np.asarray(vectors, np.float64)
    if given.ndim != 2 or len(given) != count or not given.shape[1] or (dimensions and given.shape[1] != dimensions):
        raise ConfigError(f"vectors of the shape {given.shape}: allowed: ({count}, {dimensions or 'dimensions'})")
    if not np.isfinite(given).all():
        raise ConfigError("vectors that hold infinity or no number: allowed: finite numbers")
    return unit(given)
