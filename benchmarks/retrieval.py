"""Retrieval over real interviews: seconds to index and to find, how often the evidence is found, and what checking quotations takes.

Prints, for a folder of interviews with `questions.json` in it: reading and chunks, BM25 with and without the name of the interview, and with
`--embed N` MiniLM and the fusion of both, over the first N interviews alone, since embedding takes minutes.

Run: `python benchmarks/retrieval.py FOLDER [--copies N] [--embed N]`. `--copies`: so many times the corpus, for times at a larger size.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.qa.transcripts.bm25 import Bm25Retriever
from dtef_pipeline.qa.transcripts.chunks import INDEX_FIELDS, Chunk, chunks_of, documents_table
from dtef_pipeline.qa.transcripts.citations import check_citations
from dtef_pipeline.qa.transcripts.corpus_files import load_corpus
from dtef_pipeline.qa.transcripts.embedded import EmbeddingRetriever, HybridRetriever
from dtef_pipeline.qa.transcripts.metadata import METADATA_COLUMNS
from dtef_pipeline.qa.transcripts.retrieval_scores import RetrievalScores, relevant_ids, retrieval_scores
from dtef_pipeline.qa.transcripts.retriever import Retriever
from resources.gateway.local_embedder import embed_locally

K = 10


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    made = work()
    return made, time.perf_counter() - started


def shown(what: str, retriever: Retriever, documents: pa.Table, pairs: Sequence[dict[str, Any]]) -> None:
    """One line: how well the retriever finds the evidence, and the times of a question."""
    ids, texts = documents["doc_id"].to_pylist(), documents["page_content"].to_pylist()
    scores: list[RetrievalScores] = []
    seconds = []
    for pair in pairs:
        found, _ = timed(lambda pair=pair: retriever.retrieve(pair["question"]["text"], documents.num_rows))
        seconds.append(timed(lambda pair=pair: retriever.retrieve(pair["question"]["text"], K))[1])
        score = retrieval_scores([one.doc_id for one in found.sources], relevant_ids(ids, texts, pair["quotes"]), K)
        scores += [score] if score else []
    hits, means = (
        sum(score.hit for score in scores),
        [fmean(getattr(score, name) for score in scores) for name in ("mrr", "ndcg")],
    )
    times = f"{1000 * median(seconds):.2f} ms, at most {1000 * max(seconds):.2f} ms"
    print(f"{what}: hit@{K} {hits:.0f} of {len(scores)}, MRR {means[0]:.3f}, nDCG@10 {means[1]:.3f}; a search takes {times}")


def nameless(documents: pa.Table) -> pa.Table:
    """The chunks as if nothing were known of the interviews."""
    for column in (METADATA_COLUMNS[name] for name in INDEX_FIELDS):
        place = documents.schema.get_field_index(column)
        documents = documents.set_column(place, documents.schema.field(column), pa.nulls(documents.num_rows, pa.string()))
    return documents


def copied(chunks: Sequence[Chunk], copies: int) -> list[Chunk]:
    return [replace(chunk, file=f"{copy}-{chunk.file}" if copy else chunk.file) for copy in range(copies) for chunk in chunks]


def embedded(chunks: Sequence[Chunk], pairs: Sequence[dict[str, Any]], files: Sequence[str]) -> None:
    """MiniLM, and its fusion with BM25, over some of the interviews."""
    documents = documents_table([chunk for chunk in chunks if chunk.file in files])
    asked = [pair for pair in pairs if pair["evidence"][0]["file"] in files]

    def embed(texts: Sequence[str]) -> Any:
        return np.stack([one.vector for one in embed_locally(texts)])

    words = Bm25Retriever(documents)
    meaning, seconds = timed(lambda: EmbeddingRetriever(words.index, embed))
    print(f"embedding: {documents.num_rows} chunks in {seconds:.0f} s, {1000 * seconds / documents.num_rows:.0f} ms each")
    shown("bm25 over these", words, documents, asked)
    shown("embedding", meaning, documents, asked)
    shown("hybrid", HybridRetriever(words.index, (words, meaning)), documents, asked)


def quotations(documents: pa.Table, pairs: Sequence[dict[str, Any]]) -> None:
    """What looking up the quotations takes, exact ones and ones that are nowhere, in ten chunks each."""
    retriever = Bm25Retriever(documents)
    contexts = [retriever.retrieve(pair["question"]["text"], K).sources for pair in pairs]
    for what, quotes in (("exact", [pair["quotes"][0] for pair in pairs]), ("not found", ["so said nobody " * 8] * len(pairs))):
        cited = [[{"source_index": place, "quote": quote} for place in range(K)] for quote in quotes]
        checked, seconds = timed(lambda cited=cited: [check_citations(*both) for both in zip(contexts, cited, strict=True)])
        count = sum(map(len, checked))
        print(f"citations, {what}: {count} in {seconds:.2f} s, {count / seconds:,.0f}/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--embed", type=int, default=0)
    options = parser.parse_args()
    pairs = json.loads((options.folder / "questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    corpus, seconds = timed(lambda: load_corpus(options.folder))
    chunks, cutting = timed(lambda: copied(chunks_of(corpus.transcripts), options.copies))
    documents = documents_table(chunks)
    words = documents["n_words"].to_pylist()
    print(f"read {len(corpus.transcripts)} interviews in {seconds:.2f} s, cut in {cutting:.2f} s")
    print(f"{documents.num_rows} chunks, {median(words):.0f} words in the middle, {max(words)} at most")
    Bm25Retriever(documents.slice(0, 1))  # imports bm25s
    retriever, seconds = timed(lambda: Bm25Retriever(documents))
    print(f"bm25: indexed in {seconds:.2f} s")
    shown("bm25", retriever, documents, pairs)
    plain = nameless(documents)
    shown("bm25 without names", Bm25Retriever(plain), plain, pairs)
    quotations(documents, pairs)
    if options.embed:
        embedded(chunks, pairs, [one.file for one in corpus.transcripts[: options.embed]])


if __name__ == "__main__":
    main()
