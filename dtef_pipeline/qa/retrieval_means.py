"""How well chunks of documents were found: the means of `qa_retrieval` per part and condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FOUND_BY = ("suite", "part", "condition")
_RETRIEVAL_SCORES = ("recall", "precision", "hit", "mrr", "ndcg")
RETRIEVAL_COUNT = "n_items"
RETRIEVAL_COUNT_TOLD = "Items that name quotes, which the means are over"


def retrieval_means(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per part and condition: the mean of each score over items, 0-1, higher is better, and the number of items.

    `rows`: of `qa_retrieval`, one per item and condition.
    """
    groups = rows.astype(dict.fromkeys(_FOUND_BY, str)).groupby(list(_FOUND_BY), sort=True)
    return groups[list(_RETRIEVAL_SCORES)].mean().assign(**{RETRIEVAL_COUNT: groups.size()}).reset_index()
