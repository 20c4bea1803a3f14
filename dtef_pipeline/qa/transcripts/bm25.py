"""Finding chunks by the words that they share with a question: BM25, the default."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dtef_pipeline.qa.transcripts.retriever import DocumentIndex, DocumentScores, Retrieval, checked_k

BM25_K1, BM25_B = 1.5, 0.75
"""How soon a repeated word stops to count for more, and how far a long chunk is held against it."""
_INDEX_WORD = re.compile("[a-z0-9]+")


def index_words(text: str) -> list[str]:
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
        words = [index_words(text) for text in self.index.texts]
        self._is_wordless = not any(words)
        if not self._is_wordless:
            self._model.index(words, show_progress=False)

    def scores(self, text: str) -> DocumentScores:
        """The score of every chunk, in the order of the index."""
        known = [] if self._is_wordless else self._model.get_tokens_ids(index_words(text))
        if not known:
            return np.zeros(self.index.documents.num_rows)
        return np.asarray(self._model.get_scores_from_ids(known), np.float64)

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The k nearest chunks among those whose metadata equal `where`; all, where there are fewer. How rare a word is, all chunks tell.

        Raises ConfigError for a k that is no whole number of 1 or more, and for a filter with unknown keys or values of the wrong kind.
        """
        checked_k(k)
        rows = self.index.rows(where)
        return self.index.nearest(self.scores(text)[rows], rows, k)
