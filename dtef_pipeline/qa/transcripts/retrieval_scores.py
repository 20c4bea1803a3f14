"""Scores of retrievers: how well they find the chunks with the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import log2

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

    A repeated id scores nothing but keeps its place. Raises ValueError for k below 1.
    """
    if k < 1:
        raise ValueError(f"k: got {k}; allowed: 1 or more")
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
