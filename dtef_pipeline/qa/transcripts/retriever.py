"""Finding the chunks that a question is about: what every retriever offers, and what those that search a table of chunks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.chunks import index_texts
from dtef_pipeline.qa.transcripts.corpus import MetadataValue
from dtef_pipeline.qa.transcripts.metadata import METADATA_COLUMNS, checked_filter

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
        return index_texts(self.documents)

    def rows(self, where: Mapping[str, str | int] | None = None) -> npt.NDArray[np.intp]:
        """The rows whose metadata equal `where` on all its keys. Raises ConfigError as `checked_filter`."""
        wanted = checked_filter(where)
        key = frozenset(wanted.items())
        if key not in self._rows:
            if len(self._rows) >= _MOST_FILTERS:
                self._rows.clear()
            self._rows[key] = np.flatnonzero(are_allowed(self.documents, wanted))
        return self._rows[key]

    def nearest(self, scores: DocumentScores, rows: npt.NDArray[np.intp], k: int) -> Retrieval:
        """The k rows of the highest scores among `rows`; `scores` has one number for each of them."""
        order = np.argsort(-scores, kind="stable")[:k]
        found = self.documents.take(pa.array(rows[order])).to_pylist()
        return Retrieval(tuple(_source(row, float(score)) for row, score in zip(found, scores[order], strict=True)))


def are_allowed(documents: pa.Table, where: Mapping[str, str | int]) -> npt.NDArray[np.bool_]:
    """(chunks,) whether the metadata of each equal `where` on all its keys. `where`: as of `checked_filter`."""
    mask = np.ones(documents.num_rows, bool)
    for name, value in where.items():
        equal = pc.equal(documents.column(METADATA_COLUMNS[name]), value)
        mask &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
    return mask


def _source(row: Mapping[str, Any], score: float) -> SourceText:
    known = {name: row[key] for name, key in METADATA_COLUMNS.items() if row[key] is not None}
    return SourceText(row["doc_id"], row["page_content"], known, score)


def checked_k(k: object) -> int:
    """How many chunks are wanted. Raises ConfigError unless it is a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        shown = k if k is None or isinstance(k, (bool, int, float)) else f"a {type(k).__name__}"
        raise ConfigError(f"k: got {shown!r}; allowed: a whole number, 1 or more")
    return k
