"""Finding the chunks that a question is about: what every retriever offers, and what those that search a table of chunks share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import normalize_vectors
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.chunks import build_index_texts
from dtef_pipeline.qa.transcripts.metadata import METADATA_COLUMNS, MetadataValue, check_filter

DocumentScores = npt.NDArray[np.float64]
"""One number per row of an index: the higher, the nearer to the question."""
EmbedTexts = Callable[[Sequence[str]], npt.NDArray[Any]]
"""Texts to their vectors, (texts, dimensions)."""
_MOST_FILTERS = 256


@dataclass(frozen=True, slots=True)
class SourceText:
    """A chunk that was found, as a prompt shows it."""

    doc_id: str
    page_content: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    """Keys as in files: `NAME`, `YEAR`, ..."""
    score: float | None = None
    """Higher is nearer to the question; None: the retriever does not say."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found, the nearest first: place 0 is `source_index` 0."""

    sources: tuple[SourceText, ...] = ()
    problem: str | None = None
    """Why nothing could be looked up, in words; None: it could, though nothing may have been found."""
    is_earlier: bool = False
    """Whether there is a problem now, and the sources are those that were found before it."""


class Retriever(Protocol):
    """Finds the chunks that a question is about."""

    name: str
    """`bm25`, `embedding`, `hybrid` or `remote`."""
    is_remote: bool
    """Whether what it finds stands in no table of documents here."""

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k nearest chunks whose metadata equal `where` on all its keys; all of them where there are fewer."""


class ScoresDocuments(Protocol):
    """Says of every chunk of an index how near it is to a text."""

    def scores(self, text: str) -> DocumentScores:
        """One number per row of the index, in its order."""


class DocumentIndex:
    """A table of chunks in the order of their ids, so that of two chunks that are equally near the one with the smaller id comes first."""

    def __init__(self, documents: pa.Table) -> None:
        """`documents`: rows of DOCUMENT_SCHEMA, in any order. Raises ConfigError when there are none, or an id comes twice."""
        if not documents.num_rows:
            raise ConfigError("no documents to search: allowed: one or more")
        if pc.count_distinct(documents.column("doc_id")).as_py() != documents.num_rows:
            raise ConfigError("documents to search: an id comes twice; allowed: each doc_id once")
        self.documents = documents.sort_by("doc_id").combine_chunks()
        self._rows: dict[frozenset[tuple[str, str | int]], npt.NDArray[np.intp]] = {}

    @property
    def texts(self) -> list[str]:
        """What is searched of each chunk."""
        return build_index_texts(self.documents)

    def rows(self, where: Mapping[str, str | int] | None = None) -> npt.NDArray[np.intp]:
        """The rows whose metadata equal `where` on all its keys. Raises ConfigError as `check_filter`."""
        fields = check_filter(where)
        key = frozenset(fields.items())
        if key not in self._rows:
            if len(self._rows) >= _MOST_FILTERS:
                self._rows.clear()
            self._rows[key] = np.flatnonzero(match_filter(self.documents, fields))
        return self._rows[key]

    def nearest(self, scores: DocumentScores, rows: npt.NDArray[np.intp], k: int) -> Retrieval:
        """The k rows of the highest scores among `rows`; `scores` has one number for each of them."""
        order = np.argsort(-scores, kind="stable")[:k]
        records = self.documents.take(pa.array(rows[order])).to_pylist()
        return Retrieval(tuple(_make_source_text(row, float(score)) for row, score in zip(records, scores[order], strict=True)))


def match_filter(documents: pa.Table, where: Mapping[str, str | int]) -> npt.NDArray[np.bool_]:
    """(chunks,) whether the metadata of each equal `where` on all its keys. `where`: as of `check_filter`."""
    mask = np.ones(documents.num_rows, bool)
    for name, value in where.items():
        equal = pc.equal(documents.column(METADATA_COLUMNS[name]), value)
        mask &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
    return mask


def _make_source_text(row: Mapping[str, Any], score: float) -> SourceText:
    metadata = {name: row[key] for name, key in METADATA_COLUMNS.items() if row[key] is not None}
    return SourceText(row["doc_id"], row["page_content"], metadata, score)


def check_k(k: object) -> int:
    """How many chunks are wanted. Raises ConfigError unless it is a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        value = k if k is None or isinstance(k, (bool, int, float)) else f"a {type(k).__name__}"
        raise ConfigError(f"k: got {value!r}; allowed: a whole number, 1 or more")
    return k


BM25_K1, BM25_B = 1.5, 0.75
"""How soon a repeated word stops to count for more, and how far a long chunk is held against it."""
_INDEX_WORD = re.compile("[a-z0-9]+")


def split_index_words(text: str) -> list[str]:
    """The words of a text as they are compared: without accents and case, letters and digits of ASCII alone."""
    from anyascii import anyascii

    return _INDEX_WORD.findall(anyascii(text.casefold()).lower())


class Bm25Retriever:
    """BM25 in Lucene's form: the sum over the words of the question (a repeated word counts as often as it stands there) of

        ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * length / mean length))

    N chunks, n of them with the word, f times in this one, with k1 1.5 and b 0.75. 0 or more; a chunk without any of the words has 0.
    Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond.
    """

    name = "bm25"
    is_remote = False

    def __init__(self, documents: pa.Table | DocumentIndex) -> None:
        """`documents`: rows of DOCUMENT_SCHEMA. Raises ConfigError where there are none."""
        import bm25s  # type: ignore[import-untyped]

        self.index = documents if isinstance(documents, DocumentIndex) else DocumentIndex(documents)
        self._model = bm25s.BM25(k1=BM25_K1, b=BM25_B, method="lucene", dtype="float64")
        words = [split_index_words(text) for text in self.index.texts]
        self._is_wordless = not any(words)
        if not self._is_wordless:
            self._model.index(words, show_progress=False)

    def scores(self, text: str) -> DocumentScores:
        """The score of every chunk, in the order of the index."""
        tokens = [] if self._is_wordless else self._model.get_tokens_ids(split_index_words(text))
        if not tokens:
            return np.zeros(self.index.documents.num_rows)
        return np.asarray(self._model.get_scores_from_ids(tokens), np.float64)

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k nearest chunks among those whose metadata equal `where`; all, where there are fewer. How rare a word is, all chunks tell.

        Raises ConfigError for a k that is not a whole number of 1 or more, and for a filter with unknown keys or values of the wrong kind.
        """
        check_k(k)
        rows = self.index.rows(where)
        return self.index.nearest(self.scores(text)[rows], rows, k)


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
        self._vectors = _scale_to_unit(embed(texts) if vectors is None else vectors, len(texts))

    def scores(self, text: str) -> DocumentScores:
        """The cosine of every chunk with the text, in the order of the index."""
        (vector,) = _scale_to_unit(self._embed([text]), 1, self._vectors.shape[1])
        cosines: DocumentScores = self._vectors @ vector
        return cosines

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k nearest chunks among those whose metadata equal `where`; all, where there are fewer. Raises as `Bm25Retriever.retrieve`."""
        check_k(k)
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
        check_k(k)
        rows = self.index.rows(where)
        scores = np.zeros(len(rows))
        for part in self._parts:
            scores += 1.0 / (FUSION_CONSTANT + _rank_scores(part.scores(text)[rows]))
        return self.index.nearest(scores, rows, k)


def make_retriever(name: str, documents: pa.Table, embed: EmbedTexts | None = None) -> Retriever:
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


def _rank_scores(scores: DocumentScores) -> npt.NDArray[np.intp]:
    """The place of each score from the highest down, from 1; of equal ones the first comes first."""
    ranks = np.empty(len(scores), np.intp)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _scale_to_unit(vectors: npt.NDArray[Any], count: int, dimensions: int | None = None) -> npt.NDArray[np.float64]:
    """The vectors at length 1. Raises ConfigError for another shape than (count, dimensions) and for what is not finite."""
    matrix = np.asarray(vectors, np.float64)
    if matrix.ndim != 2 or len(matrix) != count or not matrix.shape[1] or (dimensions and matrix.shape[1] != dimensions):
        raise ConfigError(f"vectors of the shape {matrix.shape}: allowed: ({count}, {dimensions or 'dimensions'})")
    if not np.isfinite(matrix).all():
        raise ConfigError("vectors that hold infinity or no number: allowed: finite numbers")
    return normalize_vectors(matrix)
