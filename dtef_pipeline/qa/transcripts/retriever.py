"""Retrievers, which find the chunks that a question is about: in a table of chunks, or by a server with the documented interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from math import log2
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import normalize_vectors
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.transcripts.chunks import build_index_texts
from dtef_pipeline.qa.transcripts.corpus import (
    FILE_FIELD,
    METADATA_COLUMNS,
    METADATA_FIELDS,
    MetadataValue,
    check_filter,
    is_of_field,
    replace_unreadable,
)
from dtef_pipeline.text.shortening import shorten_value

DocumentScores = npt.NDArray[np.float64]
"""One number per row of an index; higher is closer to the question."""
ScoreDocuments = Callable[[str], DocumentScores]
"""Scores all chunks of an index by similarity to a text, in the order of the index."""
EmbedTexts = Callable[[Sequence[str]], npt.NDArray[Any]]
"""Maps texts to their vectors, (texts, dimensions)."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A retrieved chunk, as shown in a prompt."""

    doc_id: str
    page_content: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    """Keys as in files: `NAME`, `YEAR`, ..."""
    score: float | None = None
    """Higher is closer to the question; None: the retriever gives no score."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Retrieved chunks, the nearest first; the first is `source_index` 0."""

    sources: tuple[SourceText, ...] = ()
    problem: str | None = None
    """Why the look-up failed, in words, and sources are those of an earlier one; None: it succeeded, even if nothing was found."""


def match_filter(documents: pa.Table, where: Mapping[str, str | int]) -> npt.NDArray[np.bool_]:
    """Return (chunks,) flags: whether the metadata of each chunk equal `where` on all its keys. `where`: see `check_filter`."""
    mask = np.ones(documents.num_rows, bool)
    for name, value in where.items():
        equal = pc.equal(documents.column(METADATA_COLUMNS[name]), value)
        mask &= pc.fill_null(equal, False).to_numpy(zero_copy_only=False)
    return mask


def _make_source_text(row: Mapping[str, Any], score: float) -> SourceText:
    metadata = {name: row[key] for name, key in METADATA_COLUMNS.items() if row[key] is not None}
    return SourceText(row["doc_id"], row["page_content"], metadata, score)


def check_k(k: object) -> int:
    """Return the requested number of chunks. Raises ConfigError unless it is a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        value = k if k is None or isinstance(k, (bool, int, float)) else f"a {type(k).__name__}"
        raise ConfigError(f"k: got {value!r}; allowed: a whole number, 1 or more")
    return k


BM25_K1, BM25_B = 1.5, 0.75
"""BM25's k1 (saturation of repeated words) and b (penalty for long chunks)."""
_INDEX_WORD = re.compile("[a-z0-9]+")


def split_index_words(text: str) -> list[str]:
    """Split a text into its words for comparison: ASCII letters and digits only, without accents and case."""
    from anyascii import anyascii

    return _INDEX_WORD.findall(anyascii(text.casefold()).lower())


class Bm25Scores:
    """BM25 in Lucene's form: the sum over the words of the question, repeated words included, of

        ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * length / mean length))

    N chunks, n of them with the word, f times in this one, with k1 1.5 and b 0.75. 0 or more; a chunk without any of the words has 0.
    Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s  # type: ignore[import-untyped]

        self._n = len(texts)
        self._model = bm25s.BM25(k1=BM25_K1, b=BM25_B, method="lucene", dtype="float64")
        words = [split_index_words(text) for text in texts]
        self._is_wordless = not any(words)
        if not self._is_wordless:
            self._model.index(words, show_progress=False)

    def scores(self, text: str) -> DocumentScores:
        tokens = [] if self._is_wordless else self._model.get_tokens_ids(split_index_words(text))
        return np.asarray(self._model.get_scores_from_ids(tokens), np.float64) if tokens else np.zeros(self._n)


def make_cosine_scorer(texts: Sequence[str], embed: EmbedTexts) -> ScoreDocuments:
    """Return a scorer by the cosine of question and chunk, -1 to 1."""
    vectors = normalize_vectors(np.asarray(embed(texts), np.float64))

    def score(text: str) -> DocumentScores:
        (vector,) = normalize_vectors(np.asarray(embed([text]), np.float64))
        cosines: DocumentScores = vectors @ vector
        return cosines

    return score


RETRIEVERS = ("bm25", "embedding", "hybrid")
"""Retrievers that search a table of chunks."""
FUSION_CONSTANT = 60
"""Constant added to each rank; a larger one makes the first places more alike. Cormack, Clarke and Buettcher (2009), Reciprocal Rank
Fusion."""


class IndexRetriever:
    """A search of a table of chunks by one scorer, or by several with reciprocal rank fusion.

    A fused score is the sum over scorers of 1 / (60 + rank), with ranks from 1 among the chunks that match the filter. The rarity of a word
    is computed over all chunks. Of chunks with equal scores the one with the smaller id comes first.
    """

    is_remote = False

    def __init__(self, documents: pa.Table, make_scorers: Sequence[Callable[[Sequence[str]], ScoreDocuments]]) -> None:
        """Index `documents`, rows of DOCUMENT_SCHEMA, at least one. Raises ConfigError for a repeated id.

        `make_scorers`: make scorers of the searched texts, in the order of ids.
        """
        if pc.count_distinct(documents.column("doc_id")).as_py() != documents.num_rows:
            raise ConfigError("documents to search: a doc_id occurs twice; allowed: each doc_id once")
        self._documents = documents.sort_by("doc_id").combine_chunks()
        texts = build_index_texts(self._documents)
        self._scorers = [make(texts) for make in make_scorers]
        self._filter: dict[str, str | int] = {}
        self._rows = np.arange(documents.num_rows)
        """The rows that match the latest filter."""

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """Return the k nearest chunks whose metadata equal `where` on all its keys, or all of them if there are fewer.

        Raises ConfigError for a k that is not a whole number of 1 or more, and for a filter with unknown keys or values of the wrong kind.
        """
        check_k(k)
        if (fields := check_filter(where)) != self._filter:
            self._filter, self._rows = fields, np.flatnonzero(match_filter(self._documents, fields))
        parts = [score(text)[self._rows] for score in self._scorers]
        fused = [1.0 / (FUSION_CONSTANT + _rank_scores(part)) for part in parts]
        scores = parts[0] if len(parts) == 1 else np.sum(fused, axis=0)
        order = np.argsort(-scores, kind="stable")[:k]
        records = self._documents.take(pa.array(self._rows[order])).to_pylist()
        return Retrieval(tuple(_make_source_text(row, float(score)) for row, score in zip(records, scores[order], strict=True)))


def make_retriever(name: str, documents: pa.Table, embed: EmbedTexts | None = None) -> IndexRetriever:
    """Return the retriever of a name in RETRIEVERS over rows of DOCUMENT_SCHEMA. Raises ConfigError if it needs an embedder."""
    if embed is None and name != "bm25":
        raise ConfigError(f"retriever {name!r} needs an embedder: allowed without one: bm25")
    by_words = [] if name == "embedding" else [lambda texts: Bm25Scores(texts).scores]
    by_vectors = [partial(make_cosine_scorer, embed=embed)] if name != "bm25" and embed is not None else []
    return IndexRetriever(documents, [*by_words, *by_vectors])


def _rank_scores(scores: DocumentScores) -> npt.NDArray[np.intp]:
    """Return the place of each score from the highest down, from 1; equal scores keep their order."""
    ranks = np.empty(len(scores), np.intp)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


GAIN_RANKS = 10
"""Number of places in nDCG."""


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Scores of the ranking for one question; all 0-1, higher is better."""

    k: int
    precision: float
    """Relevant chunks among the first k, over k."""
    recall: float
    """Relevant chunks among the first k, over all relevant chunks."""
    hit: float
    """1: a relevant chunk is among the first k; 0: none is."""
    mrr: float
    """1 over the rank of the first relevant chunk at any rank; 0: none was found. Its mean over questions is the MRR."""
    ndcg: float
    """Discounted gain of the first ten, sum of 1 / log2(rank + 1) over relevant ones, over the largest that is possible.
    Järvelin and Kekäläinen (2002), with gains of 0 and 1."""


def compute_retrieval_scores(ranking: Sequence[str], relevant: Set[str], k: int) -> RetrievalScores | None:
    """Compute the scores of a ranking, the nearest id first; None if nothing is relevant.

    A repeated id scores nothing but keeps its place. `k`: 1 or more.
    """
    if not relevant:
        return None
    ranks = _list_ranks(ranking, relevant)
    hits = sum(rank <= k for rank in ranks)
    best = _sum_gain(range(1, min(len(relevant), GAIN_RANKS) + 1))
    gain = _sum_gain(rank for rank in ranks if rank <= GAIN_RANKS)
    mrr = 1 / ranks[0] if ranks else 0.0
    return RetrievalScores(k, hits / k, hits / len(relevant), float(hits > 0), mrr, gain / best)


def find_relevant_ids(ids: Sequence[str], texts: Sequence[str], quotes: Iterable[str]) -> set[str]:
    """Return the ids of the texts that contain one of the quotations; runs of white space count as one space."""
    passages = [passage for quote in quotes if (passage := _squeeze_spaces(quote))]
    return {key for key, text in zip(ids, map(_squeeze_spaces, texts), strict=True) if any(quote in text for quote in passages)}


def _squeeze_spaces(text: str) -> str:
    return " ".join(text.split())


def _list_ranks(ranking: Sequence[str], relevant: Set[str]) -> list[int]:
    """Return the ranks, from 1, of the first occurrences of relevant ids."""
    first: dict[str, int] = {}
    for rank, doc_id in enumerate(ranking, 1):
        if doc_id in relevant:
            first.setdefault(doc_id, rank)
    return list(first.values())


def _sum_gain(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)


REMOTE = "remote"
"""Name of the retrievers that use a server."""
NOT_LOOKED_UP = "it was not looked up yet; run `dtef qa run --retriever remote` to look it up"
_ID_DIGITS = 12
_MAX_SOURCES = 1_000


class PostResult(Protocol):
    """The result of a request to a server."""

    @property
    def value(self) -> Any:
        """The reply, decoded from JSON, or None without one."""

    @property
    def problem(self) -> str | None:
        """Why there is no reply, in words without secrets; None if there is one."""


PostPayload = Callable[[Mapping[str, Any]], PostResult]
"""Sends a request as JSON with the server's credentials and waits for the reply. Never raises."""


class RemoteRetriever:
    """Requests chunks from a server. If the request fails, the result has no chunks and the reason."""

    def __init__(self, post: PostPayload, where: str = "the server", model: str | None = None) -> None:
        """`where`: the server's name in problems. `model`: the model to request, `provider/name`, if the server expects one."""
        self._post, self.where, self._model = post, where, model

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """Return the first k chunks that the server finds. Raises ConfigError for an invalid k or filter, before anything is sent."""
        named = {} if self._model is None else {"model": self._model.replace("/", ":", 1)}
        reply = self._post({"k": check_k(k), "filter": check_filter(where), "question": text, **named})
        retrieval = Retrieval(problem=reply.problem) if reply.problem is not None else read_remote(reply.value, self.where)
        return Retrieval(retrieval.sources[:k], retrieval.problem)


class StoredLookUps:
    """Stored results of a server by text; makes no request."""

    is_remote = True

    def __init__(self, found: Mapping[str, Retrieval]) -> None:
        """`found`: results by text, all for the same number of chunks and filter."""
        self.found = found

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """Return the stored result of the text, or a problem if it was not looked up."""
        return self.found.get(text, Retrieval(problem=NOT_LOOKED_UP))


Retriever = IndexRetriever | StoredLookUps
LookUp = Callable[[Sequence[str], int, Mapping[str, str | int]], StoredLookUps]
"""Looks up texts, given the number of chunks and a filter, and returns the result of each."""


def read_remote(value: Any, where: str = "the server") -> Retrieval:
    """Read the context of a reply in the documented form, `{question, context, answer}`. Another form gives a problem; a source without
    text stays a source."""
    context = value.get("context") if isinstance(value, Mapping) else None
    if not isinstance(context, list):
        form = "{question, context: [{page_content, metadata}], answer}"
        return Retrieval(problem=f"{where} replied without a list of documents; allowed: {form}")
    return Retrieval(tuple(map(_read_remote_source, context[:_MAX_SOURCES])))


def _read_remote_source(document: Any) -> SourceText:
    values = document if isinstance(document, Mapping) else {}
    content, fields = values.get("page_content"), values.get("metadata")
    text = replace_unreadable(content) if isinstance(content, str) else ""
    known = fields if isinstance(fields, Mapping) else {}
    metadata = {name: known[name] for name in METADATA_FIELDS if name in known and is_of_field(name, known[name])}
    name = values.get("doc_id")
    doc_id = (
        name if isinstance(name, str) and name.strip() else f"{metadata.get(FILE_FIELD, 'remote')}@{digest(text)[:_ID_DIGITS]}"
    )
    return SourceText(replace_unreadable(doc_id), text, metadata)


_PROVIDER_AND_NAME = re.compile(r"([A-Za-z0-9_-]+):(\S+)")


def normalise_model_string(model: str) -> str:
    """Return LiteLLM's name of a model: `openai:gpt-4o-mini` is `openai/gpt-4o-mini`. Raises ConfigError for anything else."""
    if match := _PROVIDER_AND_NAME.fullmatch(model):
        return f"{match[1]}/{match[2]}"
    provider, slash, name = model.partition("/")
    if slash and provider and name and not re.search(r"\s", model):
        return model
    form = "provider:name (openai:gpt-4o-mini) or provider/name"
    raise ConfigError(f"model: got {shorten_value(model)!r}; allowed: {form}")
