"""The next pair for a reviewer, in a process that serves many reviewers.

Pairs with the fewest votes come first. Each reviewer has another order of those with equally many votes, so that simultaneous reviewers get
different pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from dtef_pipeline.errors import UnknownPair
from dtef_pipeline.identity import digest, normalize_text
from dtef_pipeline.judging.hidden_names import Blinding
from dtef_pipeline.preference.pairing import BlindedPair
from resources.votes.vote_queries import build_waiting_query
from resources.votes.vote_store import VoteStore
from resources.votes.vote_tables import LEFT_SIDE, RIGHT_SIDE, join_sides, paired_responses, pairs, votes

_COUNTED_EXACTLY = 20


class ReviewerProgress(NamedTuple):
    """A reviewer's progress."""

    voted: int
    """Number of pairs with a vote of the reviewer, void ones included: a pair is voted on once."""
    left: int
    is_exact: bool
    """Whether `left` is exact; otherwise some of the remaining pairs may have equal texts and are not served."""


class WaitingPairs:
    """The pairs of a store as reviewers get them. Thread-safe."""

    def __init__(self, store: VoteStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._n_known = -1
        self._names: Blinding | None = None
        self._alike: set[str] = set()
        """Ids of pairs that are not served, because their texts are equal to a reader."""

    def choose_next(self, reviewer_id: str, family: str | None = None, later: Sequence[str] = ()) -> BlindedPair | None:
        """Return a reviewer's next pair without the reviewer's vote, or None if none is left.

        `later`: ids of pairs that come after all others, in this order. Raises StoreError if the store cannot be read.
        """
        with self._lock:
            self._refresh()
            n_votes = {row["pair_id"]: row["n_votes"] for row in self._store.rows(build_waiting_query(reviewer_id, family))}
            first = sorted(n_votes.keys() - set(later), key=lambda pair_id: (n_votes[pair_id], digest(reviewer_id, pair_id)))
            candidates = (*first, *(pair_id for pair_id in later if pair_id in n_votes))
            return next((pair for pair_id in candidates if (pair := self._serve_pair(pair_id)) is not None), None)

    def pair(self, pair_id: str) -> BlindedPair:
        """Return one pair as reviewers get it. Raises UnknownPair, and StoreError as `choose_next`."""
        with self._lock:
            self._refresh()
            if (view := self._serve_pair(pair_id)) is None:
                raise UnknownPair(f"there is no pair {pair_id[:80]!r} that is served")
            return view

    def progress(self, reviewer_id: str) -> ReviewerProgress:
        """Return how many pairs the reviewer has voted on and how many are left (exact if few). Raises StoreError as `choose_next`."""
        with self._lock:
            self._refresh()
            n_voted = self._count(votes, votes.c.reviewer_id == reviewer_id)
            ids = [row["pair_id"] for row in self._store.rows(build_waiting_query(reviewer_id))]
            ids = [pair_id for pair_id in ids if pair_id not in self._alike]
            is_exact = len(ids) <= _COUNTED_EXACTLY
            number = sum(self._serve_pair(pair_id) is not None for pair_id in ids) if is_exact else len(ids)
            return ReviewerProgress(n_voted, number, is_exact)

    def _serve_pair(self, pair_id: str) -> BlindedPair | None:
        """Return the pair as a reviewer gets it, or None if it does not exist or its texts read alike."""
        if pair_id in self._alike:
            return None
        if not self._store.rows(join_sides(sa.select(pairs.c.pair_id)).where(pairs.c.pair_id == pair_id)):
            return None
        pair = self._store.reviewer_view(pair_id, self._names)
        if normalize_text(pair.run_a) == normalize_text(pair.run_b):
            self._alike.add(pair_id)
            return None
        return pair

    def _refresh(self) -> None:
        """Read names and texts again if there are more responses or pairs, which are never changed or removed."""
        n_known = self._count(paired_responses) + self._count(pairs)
        if n_known != self._n_known:
            same_texts = join_sides(sa.select(pairs.c.pair_id)).where(LEFT_SIDE.c.text == RIGHT_SIDE.c.text)
            self._alike = {row["pair_id"] for row in self._store.rows(same_texts)}
            self._n_known, self._names = n_known, self._store.hidden_names()

    def _count(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        (row,) = self._store.rows(sa.select(sa.func.count().label("n")).select_from(table).where(*conditions))
        return int(row["n"])
